import { $, $$, clamp, el, num, option, put, when } from "./dom.js";
import { D, byGroup, byId, cols, heads, mainRole, roleNames, sort, stackOf, standing } from "./data.js";
import { shade, tint } from "./colour.js";
import { S, mark, on, select, setCol, view } from "./state.js";
import { headSign } from "./glyph.js";
// Layer by head, one grid a stack; colour is the chosen column, the glyph is the role.
const each = (n, f) => Array.from({ length: n }, (_, k) => f(k));
const cell = i => mark(i, el("div", { class: "cell", role: "gridcell", tabindex: i === S.head ? 0 : -1 }, headSign(i)));
const row = (s, layer) => el("div", { class: "row", role: "row" }, el("span", { class: "lab", role: "rowheader", text: layer }),
  each(s.heads, k => cell(s.first + layer * s.heads + k)), el("span", { class: "lm", "data-layer": layer, role: "presentation" }, el("b"), el("i")));
function gridStack(s) {
  const every = s.heads > 16 ? 4 : 1, many = D.stacks.length > 1, cap = clamp(560 / s.layers, 26, 40);
  return el("div", { class: "stack", "data-stack": s.id, css: { "--h": s.heads, "flex-grow": s.heads, "--cap": `${cap}px` } }, many && el("h3", { text: s.title }),
    el("div", { class: "row top", "aria-hidden": "true" }, el("span"), each(s.heads, k => el("span", { class: "lab", text: k % every ? "" : k })), el("span", { class: "lab mean", text: "mean" })),
    el("div", { class: "grid", role: "grid", "aria-label": `${s.title}: layer by head` }, each(s.layers, layer => row(s, layer))));
}
function paint() {
  $("#grid").classList.toggle("byroles", S.col === "role");
  const c = cols.get(S.col);
  for (const node of $$(".cell")) {
    const i = +node.dataset.head, v = c?.values[i], role = mainRole(i).role;
    node.setAttribute("aria-label", [heads[i].id, roleNames(i), c && standing(c, i)].filter(Boolean).join(", "));
    node.classList.toggle("na", v == null && S.col !== "role");
    node.className = node.className.replace(/ ?\b(byrole|does|rests|none|r-\S+)/g, "") + (S.col === "role" ? ` byrole ${sort(role)} r-${role}` : "");
    tint(node, v == null ? null : shade(c, v));
  }
  for (const s of D.stacks) for (const bar of $$(`[data-stack=${s.id}] .lm`)) means(s, bar, c);
}
function means(s, bar, c) {
  const first = s.first + bar.dataset.layer * s.heads, own = (c?.values || []).slice(first, first + s.heads).filter(v => v != null);
  const mean = own.length ? own.reduce((a, b) => a + b) / own.length : null, [a, b] = c?.domain || [0, 1], told = mean == null ? "" : num(mean, c.fmt);
  bar.title = told ? `mean of layer ${bar.dataset.layer}: ${told}` : "not measured";
  bar.children[0].style.width = `${24 * Math.min(1, Math.abs(mean ?? 0) / Math.max(Math.abs(a), Math.abs(b)))}px`;
  bar.children[1].textContent = told;
}
function arrows(e) {
  const at = e.target.closest(".cell"), move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -99], End: [0, 99] }[e.key];
  if (!at || !move) return;
  e.preventDefault();
  const h = heads[+at.dataset.head], s = stackOf(h.stack), index = h.index + move[1];
  const aside = Math.abs(move[1]) === 1 && (index < 0 || index >= s.heads) && D.stacks[D.stacks.indexOf(s) + move[1]], to = aside || s;
  const column = aside ? (index < 0 ? to.heads - 1 : 0) : clamp(index, 0, s.heads - 1);
  select(byId.get(`${to.id}.${clamp(h.layer + move[0], 0, to.layers - 1)}.${column}`), true);
}
view(() => {
  const [s] = D.stacks, many = D.stacks.length > 1;
  $("#inst").classList.toggle("many", many || s.heads > 16);
  $("#inst").classList.toggle("wide", D.stacks.reduce((n, t) => n + t.heads, 0) > 26);
  $("#over").classList.toggle("tall", !many && s.layers > 1.5 * s.heads);
  put("#grid", D.stacks.map(gridStack));
  when("#grid", "keydown", arrows);
  put("#col", D.roles && option("role", "Role", S.col === "role"), byGroup(D.columns.filter(c => c.known)).map(([label, own]) => el("optgroup", { label }, own.map(c => option(c.id, c.title, c.id === S.col)))));
  when("#col", "change", e => setCol(e.target.value));
  paint();
  on("col", () => { $("#col").value = S.col; });
  on("col theme", paint);
  on("head", () => $$(".cell").forEach(n => { n.tabIndex = +n.dataset.head === S.head ? 0 : -1; }));
});
