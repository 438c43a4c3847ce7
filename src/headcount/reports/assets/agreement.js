import { $, el, num, option, plural, put, range, sv, when } from "./dom.js";
import { D, cols, gap, present, ranked, tag } from "./data.js";
import { shade, tint } from "./colour.js";
import { headChart, words } from "./chart.js";
import { on, view } from "./state.js";
import { headPoint } from "./glyph.js";
import { tables } from "./save.js";
// Do measures rank heads alike? One cell a pair, then the heads behind the chosen cell, by rank.
const G = D.agreement, SCALE = { diverging: true, domain: [-1, 1] };
let pair = [], agStack = "all";
const found = (a, b) => G.rows.find(r => r[2] === agStack && (r[0] === a && r[1] === b || r[0] === b && r[1] === a));
const measure = id => cols.get(id)?.title || id[0].toUpperCase() + id.slice(1);
function agCell(a, b) {
  const value = found(a, b)?.[3];
  if (value == null) return el("td", {}, el("div", { class: "ph", title: "not measured" }, el("span", { class: "vh", text: "not measured" })));
  const button = el("button", { "aria-pressed": pair.includes(a) && pair.includes(b), "aria-label": `${measure(a)} and ${measure(b)}: ${num(value)}`, text: num(value), onclick: () => { pair = [a, b]; drawAgreement(); } });
  tint(button, shade(SCALE, value));
  return el("td", {}, button);
}
function agMatrix() {
  const m = G.measures, row = (a, k) => el("tr", {}, el("th", { scope: "row", text: measure(a) }, !cols.has(a) && [" ", tag("not measured")]), m.slice(0, k + 1).map(b => agCell(a, b)));
  return el("table", { class: "agm" }, el("tbody", {}, m.slice(1).map(row), el("tr", { class: "low" }, el("td"), m.slice(0, -1).map(b => el("th", { scope: "col", text: measure(b) })))));
}
function rankScatter() {
  const w = Math.max(240, Math.min(460, $("#agscatter").clientWidth || 400)), tall = Math.round(w * .72), pad = 30, [down, across] = pair.map(id => cols.get(id));
  const own = present.filter(h => (agStack === "all" || h.stack === agStack) && [down, across].every(c => c.values[h.i] != null));
  const places = (c, room) => new Map(ranked(c, own).map((h, k) => [h.i, pad + k / Math.max(1, own.length - 1) * (room - 2 * pad)])), x = places(across, w), y = places(down, tall);
  put("#agscatter", headChart(w, tall, `Heads by rank: ${across.title} across, ${down.title} down`, sv("path", { d: `M${pad - 10} ${tall - pad + 10}V${pad - 10}H${w - pad + 10}`, class: "axis" }),
    words(pad - 8, pad - 16, `1st by ${across.title} → last`), sv("text", { transform: `translate(8 ${pad - 6}) rotate(90)`, text: `1st by ${down.title} → last` }), own.map(h => headPoint(h.i, x.get(h.i), y.get(h.i)))));
  const [, , , value, low, high, n] = found(...pair);
  put("#agnote", `${across.title} and ${down.title}: ${G.kind} ${num(value)}${range(low, high)} over ${plural(n, "head")}, heads resampled. Top left: both call it important.`);
}
function drawAgreement() {
  put("#agmatrix", agMatrix());
  if (pair.every(id => cols.has(id)) && found(...pair)) rankScatter();
}
view(() => {
  if (!G) { gap("#agreement", "agreement"); return; }
  const stacks = [...new Set(G.rows.map(r => r[2]))];
  pair = (G.rows.find(r => r[2] === "all" && cols.has(r[0]) && cols.has(r[1]) && r[0] !== "confidence") || G.rows[0]).slice(0, 2);
  put("#agstack", stacks.map(s => option(s, s === "all" ? "all heads" : s)));
  $("#agstack").hidden = stacks.length < 2;
  when("#agstack", "change", e => { agStack = e.target.value; drawAgreement(); });
  tables.agreement = () => [["first", "second", "stack", "value", "low", "high", "heads"], ...G.rows];
  drawAgreement(); on("theme size", drawAgreement);
});
