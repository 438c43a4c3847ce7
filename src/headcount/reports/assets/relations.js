import { el, num, pct, plural, pval, put, sv } from "./dom.js";
import { D, gap, heads, unmeasured } from "./data.js";
import { S, view } from "./state.js";
import { headButton } from "./glyph.js";
import { tables } from "./save.js";
// Accuracy with its interval against the best fixed offset; bold is a verdict of the head.
const R = D.relations, ARROW = { "dep->head": "↑", "head->dep": "↓", "head<-dep": "⇡" };
function read([k, accuracy, low, high, p_adjusted, status]) {
  const q = R.questions[k];
  return { ...q, accuracy, low, high, p_adjusted, gain: accuracy - (q.baseline ?? 0), good: !status, status: R.status[status] };
}
function span(r) {
  const x = v => `${(100 * v).toFixed(1)}%`, line = (cls, x1, x2, y1 = 9, y2 = 9) => sv("line", { x1, x2, y1, y2, class: cls });
  return sv("svg", { width: "100%", height: 18, role: "img", "aria-label": `${pct(r.accuracy)}, 95% interval ${pct(r.low)} to ${pct(r.high)}, baseline ${pct(r.baseline)}`, class: r.good ? "good" : "plain" },
    line("axis", 0, "100%"), r.low != null && line("range", x(r.low), x(r.high)), r.baseline != null && line("base", x(r.baseline), x(r.baseline), 2, 16), sv("circle", { cx: x(r.accuracy), cy: 9, r: 3.6, class: "mean" }));
}
const ofHead = r => el("div", { class: `rl ${r.good ? "hit" : ""}`, title: `${r.relation}${r.meaning ? ` (${r.meaning})` : ""} ${r.direction}: ${r.status}; n = ${r.n}, offset ${num(r.offset, "+.0f")}, ${pval(r.p_adjusted)}` },
  el("span", { text: r.relation }), span(r), el("span", { class: "v", text: `${pct(r.accuracy)} ${ARROW[r.direction] || ""}` }));
view(() => {
  const rows = R?.heads[S.head] || [];
  put("#rels", rows.length ? rows.map(row => ofHead(read(row))) : R ? el("p", { class: "note", text: "Does not apply: relations are judged between the words of one text." }) : unmeasured("relations"));
}, "head");

// The table: title, what it is sorted by, what it shows.
const COLUMNS = [
  ["Relation", r => r.relation, r => [r.relation, r.meaning && el("span", { class: "ud", text: r.meaning })]], ["Direction", r => r.direction], ["Best head", r => r.i, r => headButton(r.i)], ["Accuracy", r => r.accuracy, r => pct(r.accuracy)],
  ["95% interval", null, span], ["Best offset", r => r.baseline, r => `${pct(r.baseline)} at ${num(r.offset, "+.0f")}`], ["Gain", r => r.gain, r => num(100 * r.gain, "+.0f")],
  ["p, corrected", r => r.p_adjusted ?? 2, r => pval(r.p_adjusted).replace(/p (= )?/, "")], ["n", r => r.n], ["Verdict", null, r => r.status],
];
let order = { by: 6, sign: -1 }, few = false;
const sortBy = by => { order = { by, sign: by === order.by ? -order.sign : by > 2 && by !== 7 ? -1 : 1 }; relationTable(); };
const columnTitle = ([name, f], k) => el("th", { class: k > 4 && k < 9 ? "r" : "", scope: "col", "aria-sort": !f ? null : k !== order.by ? "none" : order.sign < 0 ? "descending" : "ascending" }, f ? el("button", { text: name, onclick: () => sortBy(k) }) : el("span", { class: k === 4 ? "vh" : "", text: name }));
const tableRow = r => el("tr", { class: r.good ? "strong" : "weak" }, COLUMNS.map(([, f, shown = f], k) => el(k ? "td" : "th", { scope: k ? null : "row", class: k === 4 ? "wide" : k === 9 ? "why" : k > 4 ? "r" : "" }, shown(r))));
function relationTable() {
  const all = R.best.map(([i, ...row]) => ({ i, ...read(row) })), f = COLUMNS[order.by][1], scarce = all.filter(r => r.status === "too few cases"), rows = few ? all : all.filter(r => !scarce.includes(r));
  rows.sort((a, b) => order.sign * (f(a) < f(b) ? -1 : f(a) > f(b) ? 1 : 0));
  put("#reltable", el("thead", {}, el("tr", {}, COLUMNS.map(columnTitle))), el("tbody", {}, rows.map(tableRow)));
  put("#relfew", scarce.length > 0 && el("button", { class: "btn", text: `${few ? "Fold away" : "Show"} ${plural(scarce.length, "relation")} with too few cases`, onclick: () => { few = !few; relationTable(); } }));
}
view(() => {
  if (!R) { gap("#relations", "relations"); return; }
  put("#relsub", R.note);
  relationTable();
  const keys = ["relation", "direction", "accuracy", "low", "high", "baseline", "offset", "p_adjusted", "n"];
  tables.relations = () => [["head", ...keys], ...R.best.map(([i, ...row]) => { const r = read(row); return [heads[i].id, ...keys.map(key => r[key])]; })];
});
