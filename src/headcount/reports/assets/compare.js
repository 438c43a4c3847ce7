import { $, el, num, put, sv } from "./dom.js";
import { D, addColumn, cols, present } from "./data.js";
import { headChart, words } from "./chart.js";
import { S, view } from "./state.js";
import { headButton, headPoint } from "./glyph.js";
import { tables } from "./save.js";
// Two runs of one architecture: the chosen column in both, and the heads that changed most.
const V = D.compare;
// Every shared column also as the second's value less the first's.
function difference(c, { values: other, lo = null, hi = null }) {
  const values = c.values.map((v, i) => v == null || other[i] == null ? null : other[i] - v), far = Math.max(1e-9, ...values.map(v => Math.abs(v ?? 0)));
  return { ...c, id: `diff-${c.id}`, of: c.id, group: "Second less first", title: `Δ ${c.title}`, values, other, lo, hi, p: null, diverging: true, domain: [-far, far],
    more: `more in ${V.name}`, fmt: "+" + c.fmt.replace("+", ""), meaning: `${c.title} in ${V.name} less that in ${D.model}. ${c.meaning}` };
}
for (const c of [...V.changes, ...Object.entries(V.columns).filter(([id]) => cols.has(id)).map(([id, other]) => difference(cols.get(id), other))]) { D.columns.push(c); addColumn(c); }
const changes = D.columns.filter(c => c.of || c.id.startsWith("change-"));

function compareScatter(c) {
  const w = Math.max(240, Math.min(520, $("#chscatter").clientWidth || 420)), h = Math.round(w * .72), pad = 34, first = cols.get(c.of), own = present.filter(p => c.values[p.i] != null);
  const all = own.flatMap(p => [first.values[p.i], c.other[p.i]]), a = Math.min(...all), b = Math.max(...all), at = (v, room) => pad + (v - a) / (b - a || 1) * (room - 2 * pad);
  return headChart(w, h, `${first.title} in both models`, sv("path", { d: `M${pad} ${h - pad}L${w - pad} ${pad}`, class: "axis" }), words(w - pad, h - 6, `${D.model} →`, "end"), words(4, 14, `↑ ${V.name}`),
    words(pad, h - 6, num(a, first.fmt)), words(w, pad - 8, num(b, first.fmt), "end"), own.map(p => headPoint(p.i, at(first.values[p.i], w), h - at(c.other[p.i], h))));
}
function changeTable(c) {
  const far = c.id === "change-cosine" ? v => -v : Math.abs, rows = present.filter(p => c.values[p.i] != null).sort((p, q) => far(c.values[q.i]) - far(c.values[p.i])).slice(0, 10), first = cols.get(c.of);
  const names = first ? [D.model, V.name, "difference"] : [c.title, "low", "high"], cells = i => first ? [num(first.values[i], first.fmt), num(c.other[i], first.fmt), num(c.values[i], c.fmt)] : [c.values[i], c.lo?.[i], c.hi?.[i]].map(v => num(v, c.fmt));
  return el("table", {}, el("thead", {}, el("tr", {}, ["head", ...names].map((text, k) => el("th", { scope: "col", class: k ? "r" : "", text })))),
    el("tbody", {}, rows.map(p => el("tr", {}, el("td", {}, headButton(p.i)), cells(p.i).map(text => el("td", { class: "r", text }))))));
}
function moved(way) {
  const own = V.roles.filter(r => r[3] === way), named = own.slice(0, 8).map(([i, role, label], k) => [k ? ", " : ": ", headButton(i), ` ${role} (${label})`]);
  return [`${own.length} roles ${way}`, named, own.length > 8 ? " and more. " : ". "];
}
view(() => {
  const c = cols.get(S.col)?.of || S.col?.startsWith("change-") ? cols.get(S.col) : cols.get(`diff-${S.col}`) || changes[0];
  if (!c) return;
  put("#chname", c.of ? cols.get(c.of).title : c.title);
  put("#chscatter", c.of && compareScatter(c));
  put("#chtable", changeTable(c));
}, "col size");
view(() => {
  $("#compare").hidden = false;
  put("#chroles", V.roles.length ? ["won", "lost"].map(moved) : "");
  tables.comparison = () => [["column", "head", "first", "second", "difference"], ...changes.filter(c => c.of).flatMap(c => present.map(h => [c.of, h.id, cols.get(c.of).values[h.i], c.other[h.i], c.values[h.i]]))];
});
