import { $, el, num, sv } from "./dom.js";
import { D, cols, present } from "./data.js";
import { S, on, setCol } from "./state.js";
import { headPoint } from "./glyph.js";
import { headButton } from "./relations.js";
import { saver } from "./save.js";
// Two runs of one architecture: the chosen column in both, and the heads that changed most.
const V = D.compare;
const chosen = () => { const c = cols.get(S.col); return c?.of ? c : cols.get(`diff-${S.col}`) || D.columns.find(x => x.of) || D.columns.find(x => x.id.startsWith("change-")); };
function compareScatter(c, w) {
  const first = cols.get(c.of), h = Math.round(w * .72), pad = 34, all = [...first.values, ...c.other].filter(v => v != null), a = Math.min(...all), b = Math.max(...all), at = (v, room) => pad + (v - a) / (b - a || 1) * (room - 2 * pad);
  const own = present.filter(p => c.values[p.i] != null);
  return sv("svg", { width: w, height: h, role: "group", "aria-label": `${first.title} in both models` }, sv("path", { d: `M${pad} ${h - pad}L${w - pad} ${pad}`, class: "axis" }), sv("text", { x: w - pad, y: h - 6, "text-anchor": "end", text: `${D.model} →` }), sv("text", { x: 4, y: 14, text: `↑ ${V.name}` }), sv("text", { x: pad, y: h - 6, text: num(a, first.fmt) }), sv("text", { x: w - pad + 4, y: pad - 4, text: num(b, first.fmt) }),
    own.map(p => headPoint(p.i, at(first.values[p.i], w), h - at(c.other[p.i], h))));
}
function changeTable(c) {
  const far = c.id === "change-cosine" ? v => -v : Math.abs, rows = present.filter(p => c.values[p.i] != null).sort((p, q) => far(c.values[q.i]) - far(c.values[p.i])).slice(0, 10);
  const cells = i => c.of ? [cols.get(c.of).values[i], c.other[i], c.values[i]] : [c.values[i], c.lo?.[i], c.hi?.[i]], names = c.of ? [D.model, V.name, "difference"] : [c.title, "low", "high"];
  return el("table", {}, el("thead", {}, el("tr", {}, ["head", ...names].map((t, k) => el("th", { scope: "col", class: k ? "r" : "", text: t })))), el("tbody", {}, rows.map(p => el("tr", {}, el("td", {}, headButton(p.i)), cells(p.i).map((v, k) => el("td", { class: "r", text: num(v, c.of && k < 2 ? cols.get(c.of).fmt : c.fmt) }))))));
}
function drawCompare() {
  const c = chosen();
  if (!c) return;
  $("#chname").textContent = c.of ? cols.get(c.of).title : c.title;
  $("#chscatter").replaceChildren(...(c.of ? [compareScatter(c, Math.max(240, Math.min(520, $("#chscatter").clientWidth || 420)))] : []));
  $("#chtable").replaceChildren(changeTable(c));
}
export function compare() {
  if (!V) return;
  const names = D.columns.filter(c => c.of || c.id.startsWith("change-"));
  $("#compare").hidden = false;
  $("#compare").replaceChildren(el("div", { class: "bar" }, el("h2", { id: "ch", text: `${D.model} and ${V.name}` }), saver(() => $("#chbox"), "comparison", () => [["column", "head", "first", "second", "difference"], ...D.columns.filter(c => c.of).flatMap(c => present.map(h => [c.of, h.id, cols.get(c.of).values[h.i], c.other[h.i], c.values[h.i]]))])),
    el("p", { class: "sub" }, el("span", { id: "chname" }), " in both models: on the line nothing changed. Follows the column of the grid; ", names.slice(0, 4).map((c, k) => [k ? ", " : "colour by ", el("button", { class: "inline", text: c.title, onclick: () => setCol(c.id) })]), "."),
    V.roles.length ? el("p", { class: "sub" }, ["won", "lost"].flatMap(way => { const own = V.roles.filter(r => r[3] === way); return [` ${own.length} roles ${way}`, own.length ? ": " : ". ", own.slice(0, 8).flatMap(([i, role, label], k) => [k ? ", " : "", headButton(i), ` ${role} (${label})`]), own.length > 8 ? " and more." : own.length ? "." : ""]; })) : "",
    el("div", { class: "halves", id: "chbox" }, el("div", { id: "chscatter" }), el("div", { class: "scroll", id: "chtable", tabindex: 0, role: "region", "aria-label": "Heads that changed most" })));
  drawCompare(); on("col size", drawCompare);
}
