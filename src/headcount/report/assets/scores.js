import { $, el, num, sv } from "./dom.js";
import { D, heads, show, stackOf } from "./data.js";
import { S, on, setCol } from "./state.js";
// One strip a column: every head a tick, drawn once; the pointer alone moves with the selection.
const strips = [];
function strip(c) {
  const [a, b] = c.domain, x = v => (100 * Math.max(0, Math.min(1, (v - a) / (b - a)))).toFixed(2);
  const ticks = [...new Set(c.values.filter(v => v != null).map(x))].map(p => `M${p} 6v6`).join("");
  const s = { c, x, line: sv("path", { class: "span", "vector-effect": "non-scaling-stroke" }), at: sv("path", { class: "at", "vector-effect": "non-scaling-stroke" }), value: el("span", { class: "v" }), rank: el("span", { class: "k" }) };
  s.row = el("div", { class: "st", "data-col": c.id }, el("button", { title: `${c.meaning} ${c.paper}`, text: c.title, onclick: () => setCol(c.id) }),
    sv("svg", { viewBox: "0 0 100 18", preserveAspectRatio: "none", "aria-hidden": "true" }, c.diverging && sv("path", { d: `M${x(0)} 1v16`, class: "zero", "vector-effect": "non-scaling-stroke" }), sv("path", { d: ticks, class: "ticks", "vector-effect": "non-scaling-stroke" }), s.line, s.at), s.value, s.rank);
  return s;
}
function update() {
  const st = stackOf(heads[S.head].stack), n = st.layers * st.heads, nowhere = new Map();
  for (const s of strips) {
    const { c, x, row } = s, v = c.values[S.head], here = c.values.slice(st.first, st.first + n).some(u => u != null);
    row.hidden = !here;
    if (!here) { const why = c.note?.split(`${st.id}: `)[1]?.split("; ")[0] || ""; nowhere.set(why, [...nowhere.get(why) || [], c.title]); }
    row.classList.toggle("ph", v == null);
    s.at.setAttribute("d", v == null ? "" : `M${x(v)} 1v16`);
    s.line.setAttribute("d", v == null || c.lo?.[S.head] == null ? "" : `M${x(c.lo[S.head])} 9H${x(c.hi[S.head])}`);
    s.value.textContent = v == null ? "" : show(c, S.head);
    s.value.title = c.lo?.[S.head] == null ? "" : `95 % interval ${num(c.lo[S.head], c.fmt)} to ${num(c.hi[S.head], c.fmt)}`;
    s.rank.textContent = v == null ? "not measured" : `${c.rank[S.head]}/${c.known}`;
  }
  for (const g of $("#scores").children) if (g.matches("section")) g.hidden = ![...g.querySelectorAll(".st")].some(r => !r.hidden);
  const none = $("#nowhere");
  none.hidden = !nowhere.size;
  none.replaceChildren(el("span", { class: "tag", text: "not measured" }), ` for ${st.title.toLowerCase()}: ${[...nowhere].map(([why, names]) => names.join(", ") + (why && ` (${why})`)).join("; ")}.`);
}
const current = () => strips.forEach(s => s.row.classList.toggle("cur", s.c.id === S.col));
export function scores() {
  const groups = new Map();
  for (const c of D.columns) if (!c.of) { const s = strip(c); strips.push(s); groups.set(c.group, [...groups.get(c.group) || [], s.row]); }
  $("#scores").replaceChildren(...[...groups].map(([name, rows]) => el("section", {}, el("h4", { text: name }), rows)), el("p", { class: "note ph unmeasured", id: "nowhere" }));
  update(); current(); on("head", update); on("col", current);
}
