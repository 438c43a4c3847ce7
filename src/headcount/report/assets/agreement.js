import { $, el, num, option, plural, range, sv, unmeasured } from "./dom.js";
import { D, cols, missing, present } from "./data.js";
import { css, inkOn, shade } from "./colour.js";
import { on } from "./state.js";
import { headPoint } from "./glyph.js";
import { saver } from "./save.js";
// Do measures rank heads alike? One cell a pair, then the heads behind the chosen cell, by rank.
const G = D.agreement, SCALE = { diverging: true, domain: [-1, 1] };
let pair = null, agStack = "all";
const found = (a, b) => G.rows.find(r => r[2] === agStack && (r[0] === a && r[1] === b || r[0] === b && r[1] === a));
const title = id => cols.get(id)?.title || id[0].toUpperCase() + id.slice(1);
function agCell(a, b, r) {
  if (a === b) return el("td", { class: "self" });
  if (!r || r[3] == null) return el("td", {}, el("div", { class: "ph", title: "not measured" }, el("span", { class: "vh", text: "not measured" })));
  const rgb = shade(SCALE, r[3]);
  return el("td", {}, el("button", { "aria-pressed": pair?.includes(a) && pair.includes(b), "aria-label": `${title(a)} and ${title(b)}: ${num(r[3])}`, text: num(r[3]), css: { "background-color": css(rgb), color: inkOn(rgb) }, onclick: () => { pair = [a, b]; drawAgreement(); } }));
}
function agMatrix() {
  const m = G.measures;
  return el("table", { class: "agm" }, el("tbody", {}, m.slice(1).map((a, k) => el("tr", {}, el("th", { scope: "row", text: title(a) }, !cols.has(a) && " ", !cols.has(a) && el("span", { class: "tag", text: "not measured" })), m.slice(0, k + 1).map(b => agCell(a, b, found(a, b))))), el("tr", { class: "low" }, el("td"), m.slice(0, -1).map(b => el("th", { scope: "col", text: title(b) })))));
}
function rankScatter() {
  const box = $("#agscatter"), w = Math.max(240, Math.min(460, box.clientWidth || 400)), tall = Math.round(w * .72), pad = 30;
  const [b, a] = pair.map(id => cols.get(id));
  const own = present.filter(h => (agStack === "all" || h.stack === agStack) && a?.values[h.i] != null && b?.values[h.i] != null), n = own.length;
  const ranks = c => { const o = [...own].sort((p, q) => (c.direction === "lower" ? 1 : -1) * (c.values[p.i] - c.values[q.i])); return new Map(o.map((h, k) => [h.i, k])); }, rx = ranks(a), ry = ranks(b);
  const at = (k, room) => pad + k / Math.max(1, n - 1) * (room - 2 * pad);
  box.replaceChildren(sv("svg", { width: w, height: tall, role: "group", "aria-label": `Heads by rank: ${a.title} across, ${b.title} down` }, sv("path", { d: `M${pad - 10} ${pad - 10}V${tall - pad + 10}M${pad - 10} ${pad - 10}H${w - pad + 10}`, class: "axis" }),
    sv("text", { x: pad - 8, y: pad - 16, text: `1st by ${a.title} → last` }), sv("text", { transform: `translate(8 ${pad - 6}) rotate(90)`, text: `1st by ${b.title} → last` }),
    own.map(h => headPoint(h.i, at(rx.get(h.i), w), at(ry.get(h.i), tall)))));
  const r = found(...pair);
  $("#agnote").textContent = `${a.title} and ${b.title}: ${G.kind} ${num(r[3])}${range(r[4], r[5])} over ${plural(r[6], "head")}, heads resampled. Corner top left: both call it important.`;
}
function drawAgreement() {
  $("#agmatrix").replaceChildren(agMatrix());
  if (pair && cols.has(pair[0]) && cols.has(pair[1]) && found(...pair)) rankScatter();
}
const agCsv = () => [["first", "second", "stack", "value", "low", "high", "heads"], ...G.rows];
export function agreement() {
  const box = $("#agreement"), h2 = el("h2", { id: "ah", text: "Do measures of importance agree?" });
  if (!G) { box.replaceChildren(h2, unmeasured("Two scores or more are needed.", missing("agreement")?.[2])); return; }
  const first = G.rows.find(r => r[2] === "all" && cols.has(r[0]) && cols.has(r[1]) && r[0] !== "confidence") || G.rows[0];
  pair = [first[0], first[1]];
  const stacks = [...new Set(G.rows.map(r => r[2]))];
  box.replaceChildren(el("div", { class: "bar" }, h2, saver(() => $("#agbox"), "agreement", agCsv), stacks.length > 1 && el("select", { "aria-label": "Heads compared", onchange: e => { agStack = e.target.value; drawAgreement(); } }, stacks.map(s => option(s, s === "all" ? "all heads" : s)))),
    el("p", { class: "sub", text: "1: the same order of heads; 0: unrelated. Choose a cell to see the heads behind it." }),
    el("div", { class: "halves", id: "agbox" }, el("div", { class: "scroll", id: "agmatrix" }), el("div", {}, el("div", { id: "agscatter" }), el("p", { class: "note", id: "agnote" }))));
  drawAgreement(); on("theme size", drawAgreement);
}
