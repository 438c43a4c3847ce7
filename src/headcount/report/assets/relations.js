import { $, el, num, pct, pval, sv, unmeasured } from "./dom.js";
import { D, heads, mainRole, missing } from "./data.js";
import { S, mark, on } from "./state.js";
import { sign } from "./glyph.js";
import { saver } from "./save.js";
// Accuracy with its interval against the best fixed offset; bold only where it is well above and tested.
const R = D.relations, GAIN = .1;
const asked = k => { const [stack, relation, direction, n, baseline, offset] = R.questions[k]; return { stack, relation, direction, n, baseline, offset }; };
const stands = ([, acc, , , p], q) => acc - (q.baseline ?? 0) >= GAIN && p != null && p < .05;
const ARROW = { "dep->head": "↑", "head->dep": "↓", "head<-dep": "⇡" };

export function span(lo, hi, at, base, good, name) {
  const x = v => `${(100 * v).toFixed(1)}%`, tone = good ? "good" : "plain";
  return sv("svg", { width: "100%", height: 18, role: "img", "aria-label": name, class: tone }, sv("line", { x1: 0, x2: "100%", y1: 9, y2: 9, class: "axis" }),
    lo != null && sv("line", { x1: x(lo), x2: x(hi), y1: 9, y2: 9, class: "range" }), base != null && sv("line", { x1: x(base), x2: x(base), y1: 2, y2: 16, class: "base" }), sv("circle", { cx: x(at), cy: 9, r: 3.6, class: "mean" }));
}
const spoken = (row, q) => `${pct(row[1])}, 95 % interval ${pct(row[2])} to ${pct(row[3])}, baseline ${pct(q.baseline)}`;
function ofHead() {
  const rows = R?.heads[S.head] || [];
  $("#rnote").textContent = rows.length ? "| best fixed offset, ↑ to its head" : "";
  if (!rows.length) { $("#rels").replaceChildren(unmeasured(R ? "No relation was asked of this stack." : "Which relations of words it follows.", R ? null : missing("relations")?.[2])); return; }
  $("#rels").replaceChildren(...rows.map(row => {
    const q = asked(row[0]), good = stands(row, q);
    return el("div", { class: `rl ${good ? "hit" : ""}`, title: `${q.relation} ${q.direction}, n = ${q.n}, offset ${num(q.offset, "+.0f")}, ${pval(row[4])}` }, el("span", { text: q.relation }), span(row[2], row[3], row[1], q.baseline, good, spoken(row, q)), el("span", { class: "v", text: `${pct(row[1])} ${ARROW[q.direction] || ""}` }));
  }));
}
const COLUMNS = [["Relation", r => r.q.relation], ["Direction", r => r.q.direction], ["Best head", r => r.i], ["Accuracy", r => r.row[1]], ["", null], ["Best offset", r => r.q.baseline], ["Gain", r => r.gain], ["p, corrected", r => r.row[4] ?? 2], ["n", r => r.q.n]];
let order = [6, -1];
export const headButton = i => mark(i, el("button", { class: "hd", "aria-label": heads[i].id }, sign(mainRole(i).role, mainRole(i).dir), el("span", { class: "id", text: heads[i].id })));
function relationTable() {
  const rows = R.best.map(([i, ...row]) => { const q = asked(row[0]); return { i, row, q, gain: row[1] - (q.baseline ?? 0), good: stands(row, q) }; });
  const f = COLUMNS[order[0]][1], by = order[2] ? f : r => f(r) + 9 * r.good + 3 * (r.row[4] != null);
  rows.sort((a, b) => order[1] * (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0));
  const th = ([name, f], k) => f ? el("th", { class: k > 4 ? "r" : "", scope: "col", "aria-sort": k === order[0] ? (order[1] < 0 ? "descending" : "ascending") : "none" }, el("button", { text: name, onclick: () => { order = [k, k === order[0] ? -order[1] : k > 2 && k !== 7 ? -1 : 1, true]; relationTable(); } })) : el("th", {}, el("span", { class: "vh", text: "95 % interval" }));
  const line = r => el("tr", { class: r.good ? "strong" : "weak" }, el("th", { scope: "row", text: r.q.relation }), el("td", { text: r.q.direction }), el("td", {}, headButton(r.i)), el("td", { text: pct(r.row[1]) }), el("td", { class: "wide" }, span(r.row[2], r.row[3], r.row[1], r.q.baseline, r.good, spoken(r.row, r.q))), el("td", { class: "r", text: `${pct(r.q.baseline)} at ${num(r.q.offset, "+.0f")}` }), el("td", { class: "r", text: num(100 * r.gain, "+.0f") }), el("td", { class: "r", text: pval(r.row[4]).replace("p ", "").replace("= ", "") }), el("td", { class: "r", text: r.q.n }));
  $("#reltable").replaceChildren(el("thead", {}, el("tr", {}, COLUMNS.map(th))), el("tbody", {}, rows.map(line)));
}
const relationCsv = () => [["head", "relation", "direction", "accuracy", "low", "high", "baseline", "offset", "p_adjusted", "n"], ...R.best.map(([i, k, ...f]) => { const q = asked(k); return [heads[i].id, q.relation, q.direction, f[0], f[1], f[2], q.baseline, q.offset, f[3], q.n]; })];
export function relations() {
  const box = $("#relations"), title = el("h2", { id: "eh", text: "Which relations of words have a head" });
  if (R) {
    box.replaceChildren(el("div", { class: "bar" }, title, saver(() => $("#reltable"), "relations", relationCsv)), el("p", { class: "sub", text: `The best head of each relation${R.split === "report" ? ", chosen on one half of the sentences and measured on the other," : ""} against the best fixed offset. Faded rows are less than 10 points above it, or not beyond chance after correction for ${R.tests.toLocaleString("en")} tests.` }), el("div", { class: "scroll", role: "region", "aria-label": "Relations", tabindex: 0 }, el("table", { id: "reltable" })));
    relationTable();
  } else box.replaceChildren(title, unmeasured("Relations need text with trees.", missing("relations")?.[2]));
  ofHead(); on("head", ofHead);
}
