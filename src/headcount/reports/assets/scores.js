import { $, $$, clamp, el, num, put, sv } from "./dom.js";
import { D, byGroup, heads, show, stackOf, tag } from "./data.js";
import { S, on, setCol, view } from "./state.js";
// One strip a column: every head a tick, drawn once; the pointer alone moves with the selection.
const line = (cls, d) => sv("path", { class: cls, d, "vector-effect": "non-scaling-stroke" });
const strips = D.columns.filter(c => !c.of).map(c => {
  const [a, b] = c.domain, x = v => (100 * clamp((v - a) / (b - a), 0, 1)).toFixed(2), s = { c, x, group: c.group, span: line("span"), at: line("at"), value: el("span", { class: "v" }), rank: el("span", { class: "k" }) };
  const ticks = [...new Set(c.values.filter(v => v != null).map(x))].map(p => `M${p} 6v6`).join("");
  s.row = el("div", { class: "st", "data-col": c.id }, el("button", { title: `${c.meaning} ${c.paper}`, text: c.title, onclick: () => { setCol(c.id); $("#over").scrollIntoView({ block: "nearest" }); } }),
    sv("svg", { viewBox: "0 0 100 18", preserveAspectRatio: "none", "aria-hidden": "true" }, c.diverging && line("zero", `M${x(0)} 1v16`), line("ticks", ticks), s.span, s.at), s.value, s.rank);
  return s;
});
function update() {
  const i = S.head, stack = stackOf(heads[i].stack);
  put("#scoresof", heads[i].id);
  for (const { c, x, row, span, at, value, rank } of strips) {
    const v = c.values[i], low = c.lo?.[i], high = c.hi?.[i];
    row.hidden = c.values.slice(stack.first, stack.end).every(u => u == null);
    row.classList.toggle("ph", v == null);
    at.setAttribute("d", v == null ? "" : `M${x(v)} 1v16`);
    span.setAttribute("d", low == null ? "" : `M${x(low)} 9H${x(high)}`);
    value.textContent = v == null ? "" : show(c, i);
    value.title = low == null ? "" : `95% interval ${num(low, c.fmt)} to ${num(high, c.fmt)}`;
    rank.textContent = v == null ? c.id === "removal_step" ? "stays" : "not measured" : `${c.rank[i]}/${c.known}`;
  }
  for (const group of $$("#scores section")) group.hidden = $$(".st", group).every(r => r.hidden);
  $("#nowhere").hidden = !stack.silent;
  put("#nowhere", tag("not measured"), ` ${stack.silent}`);
}
const current = () => strips.forEach(s => s.row.classList.toggle("cur", s.c.id === S.col));
view(() => {
  put("#scores", byGroup(strips).map(([name, own]) => el("section", {}, el("h3", { text: name }), own.map(s => s.row))));
  update(); current(); on("head", update); on("col", current);
});
