import { $, $$, el, num, option } from "./dom.js";
import { D, absent, byId, cols, heads, mainRole, roleNames, show } from "./data.js";
import { css, inkOn, shade } from "./colour.js";
import { S, mark, on, select, setCol } from "./state.js";
import { sign } from "./glyph.js";
import { saver } from "./save.js";
// Layer by head, one grid a stack; colour is the chosen column, the glyph is the role.
const label = (c, i) => `${heads[i].id}, ${absent.has(i) ? "removed" : roleNames(i)}` + (c ? `, ${c.title} ${c.values[i] == null ? "not measured" : `${show(c, i)}, rank ${c.rank[i]} of ${c.known}`}` : "");

function gridCell(h) {
  const r = mainRole(h.i);
  return mark(h.i, el("div", { class: "cell", role: "gridcell", tabindex: h.i === S.head ? 0 : -1 }, sign(r.role, r.dir)));
}
function row(s, layer) {
  return el("div", { class: "row", role: "row" }, el("span", { class: "lab", role: "rowheader", text: layer }),
    Array.from({ length: s.heads }, (_, k) => gridCell(heads[s.first + layer * s.heads + k])),
    el("span", { class: "lm", "data-layer": layer, role: "presentation" }, el("b"), el("i")));
}
function gridStack(s) {
  const every = s.heads > 16 ? 4 : 1;
  const top = el("div", { class: "row top", "aria-hidden": "true" }, el("span"), Array.from({ length: s.heads }, (_, k) => el("span", { class: "lab", text: k % every ? "" : k })), el("span", { class: "lab mean", text: D.stacks.length > 1 ? "" : "mean" }));
  const grid = el("div", { class: "grid", role: "grid", "aria-label": `${s.title}: layer by head` }, Array.from({ length: s.layers }, (_, l) => row(s, l)));
  return el("div", { class: "stack", "data-stack": s.id, css: { "--h": s.heads, "flex-grow": s.heads, "--cap": `${Math.max(16, Math.min(40, 560 / s.layers))}px` } }, D.stacks.length > 1 && el("h3", { text: s.title }), top, grid);
}
function paint() {
  const c = cols.get(S.col);
  for (const node of $$(".cell")) {
    const i = +node.dataset.head, v = c?.values[i];
    node.setAttribute("aria-label", label(c, i));
    node.classList.toggle("na", v == null);
    const rgb = v == null ? null : shade(c, v);
    node.style.backgroundColor = rgb ? css(rgb) : "";
    node.style.color = rgb ? inkOn(rgb) : "";
  }
  for (const s of D.stacks) for (const bar of $$(`[data-stack=${s.id}] .lm`)) means(s, bar, c);
}
function means(s, bar, c) {
  const first = s.first + bar.dataset.layer * s.heads, own = (c?.values || []).slice(first, first + s.heads).filter(v => v != null);
  const mean = own.length ? own.reduce((a, b) => a + b) / own.length : null, [a, b] = c?.domain || [0, 1];
  bar.title = mean == null ? "not measured" : `mean of layer ${bar.dataset.layer}: ${num(mean, c.fmt)}`;
  bar.children[0].style.width = `${mean == null ? 0 : Math.max(1, 24 * Math.min(1, Math.abs(mean) / Math.max(Math.abs(a), Math.abs(b))))}px`;
  bar.children[1].textContent = mean == null ? "" : num(mean, c.fmt);
}
function arrows(e) {
  const at = e.target.closest(".cell"), move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -99], End: [0, 99] }[e.key];
  if (!at || !move) return;
  e.preventDefault();
  const h = heads[+at.dataset.head], k = D.stacks.findIndex(s => s.id === h.stack), s = D.stacks[k];
  const layer = Math.max(0, Math.min(s.layers - 1, h.layer + move[0])), index = h.index + move[1], aside = Math.abs(move[1]) === 1 && D.stacks[k + move[1]];
  if ((index < 0 || index >= s.heads) && aside) select(byId.get(`${aside.id}.${Math.min(layer, aside.layers - 1)}.${index < 0 ? aside.heads - 1 : 0}`), true);
  else select(byId.get(`${s.id}.${layer}.${Math.max(0, Math.min(s.heads - 1, index))}`), true);
}
export function grid() {
  $("#inst").classList.toggle("many", D.stacks.length > 1 || D.stacks[0].heads > 16);
  $("#grid").replaceChildren(...D.stacks.map(gridStack));
  $("#grid").addEventListener("keydown", arrows);
  $("#save-grid").replaceWith(saver(() => $("#grid"), "heads"));
  const groups = new Map();
  for (const c of D.columns) if (c.known) groups.set(c.group, [...groups.get(c.group) || [], c]);
  $("#col").replaceChildren(...[...groups].map(([name, own]) => el("optgroup", { label: name }, own.map(c => option(c.id, c.title, c.id === S.col)))));
  $("#col").addEventListener("change", e => setCol(e.target.value));
  paint();
  on("col", () => { $("#col").value = S.col; paint(); });
  on("theme", paint);
  on("head", () => $$(".cell").forEach(n => { n.tabIndex = +n.dataset.head === S.head ? 0 : -1; }));
}
