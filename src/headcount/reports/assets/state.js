import { $, $$, clamp, el, put } from "./dom.js";
import { D, absent, byId, cols, hasRole, heads, kinds, roleNames, standing, verdicts } from "./data.js";
// One state, kept in the address, so that a finding is a link: #enc.2.8
export const S = {
  head: D.opening.head, hover: null, col: D.opening.paint, role: null, order: D.strip?.order ?? 0, step: 0, loose: null,
  ex: 0, tok: null, held: false, keep: .8, specials: false, byRow: false, view: null, unit: "pieces",
};
const listeners = {};
export const on = (kinds, f) => kinds.split(" ").forEach(k => (listeners[k] ||= []).push(f));
export const emit = kind => (listeners[kind] || []).forEach(f => f());
// Views draw themselves once, in the order of their modules; from then on they follow the state.
export const views = [];
export const view = (draw, kinds) => { views.push(draw); if (kinds) on(kinds, draw); };

export function readHash() {
  try {
    const text = decodeURIComponent(location.hash.slice(1)), said = new URLSearchParams(text);
    const head = byId.get(byId.has(text) ? text : said.get("head")), ex = D.exhibits.findIndex(e => e.id === said.get("ex"));
    if (head != null && !absent.has(head)) S.head = head;
    if (cols.has(said.get("col")) || said.get("col") === "role") S.col = said.get("col");
    if (ex >= 0) { S.ex = ex; S.picked = true; }
    S.role = kinds.has(said.get("role")) ? said.get("role") : null;
    const set = D.jobs?.find(r => r.set === said.get("set"))?.members, left = D.strip?.stops.find(s => s.step == null && String(s.left) === said.get("left"))?.gone;
    if (set || left) goWithout(set || left, set ? `set=${said.get("set")}` : `left=${said.get("left")}`);
    else if (D.curve && said.has("step")) goStep(...said.get("step").split(".").map(Number));
  } catch { /* a frame without an address */ }
}
// The column that charts show: the grid may show roles instead.
export const lens = () => cols.get(S.col) || cols.get(D.opening.col);
function remember() {
  const ex = D.exhibits[S.ex], parts = [`head=${heads[S.head].id}`, S.col && `col=${S.col}`, ex && `ex=${encodeURIComponent(ex.id)}`, S.role && `role=${S.role}`, S.loose ? S.loose.replace(/ /g, "+") : S.step && `step=${S.order}.${S.step}`];
  try { history.replaceState(null, "", "#" + parts.filter(Boolean).join("&")); } catch { /* the same */ }
}

// Every mark of a head registers here, and hover, selection, filter and pruning are classes on marks.
const marks = heads.map(() => new Set());
export function mark(i, node) { node.dataset.head = i; marks[i].add(node); dress(node, i); return node; }
let goneNow = new Set();
function dress(node, i) {
  const c = node.classList;
  c.toggle("sel", i === S.head); c.toggle("hov", i === S.hover);
  c.toggle("dim", S.role != null && !hasRole(i, S.role)); c.toggle("gone", goneNow.has(i) || absent.has(i));
  if (node.getAttribute("role") === "gridcell") node.setAttribute("aria-selected", i === S.head);
}
function repaint(some) {
  for (const i of some) if (i != null) for (const node of marks[i]) node.isConnected ? dress(node, i) : marks[i].delete(node);
}
const repaintAll = () => repaint(heads.keys());

function hover(i) { if (S.hover !== i) { const was = S.hover; S.hover = i; repaint([was, i]); emit("hover"); } }
export function select(i, focus) {
  if (i == null || absent.has(i)) return;
  const was = S.head;
  if (i !== was) {
    S.head = i; S.tok = null; S.held = false;
    repaint([was, i]); emit("head"); remember();
    put("#live", `${heads[i].id}: ${verdicts(i).map(v => `${v.role}, ${v.detail}`).join("; ") || roleNames(i)}`);
  }
  if (focus) $(`.cell[data-head="${i}"]`)?.focus();
}
export function setCol(id) { S.col = id; emit("col"); remember(); }
export function setRole(role) { S.role = S.role === role ? null : role; repaintAll(); emit("role"); remember(); }
export function setExhibit(k) { Object.assign(S, { picked: true, ex: (k + D.exhibits.length) % D.exhibits.length, tok: null, held: false, view: null }); emit("ex"); remember(); }
function goStep(order, step) {
  if (!D.curve?.[order]?.points[step]) return;
  S.order = order; S.step = step; S.loose = null;
  goneNow = new Set(D.curve[order].points.slice(0, step + 1).flatMap(p => p.gone));
}
// Heads that go together, whatever order they are in; the key is what the address says of them.
function goWithout(list, key) { S.step = 0; S.loose = key; goneNow = new Set(list); }
export function showWithout(list, key) { goWithout(list, key); repaintAll(); emit("step"); remember(); }
export function setStep(order, step) { goStep(order, step); repaintAll(); emit("step"); remember(); }
// Of a group of buttons those are pressed that say what the state is: pressed("view", "lines").
export const pressed = (key, value) => $$(`[data-${key}]`).forEach(b => b.setAttribute("aria-pressed", b.dataset[key] === String(value)));

// The pointer and the keys, for all marks at once.
const headAt = e => { const t = e.target.closest?.("[data-head]"); return t ? +t.dataset.head : null; };
function tip(e, i) {
  const box = $("#tip"), c = lens();
  box.classList.toggle("on", i != null);
  if (i == null) return;
  put("#tip", el("b", { text: heads[i].id }), ` ${roleNames(i)}`, c && [el("br"), standing(c, i)]);
  const { offsetWidth: w, offsetHeight: h } = box, y = e.clientY + 18;
  box.style.left = `${clamp(e.clientX + 14, 8, innerWidth - w - 8)}px`;
  box.style.top = `${y + h > innerHeight ? e.clientY - h - 10 : y}px`;
}
function keys(e) {
  const point = e.target.closest?.("svg [data-head]");
  if (point && /^(Enter| )$/.test(e.key)) { e.preventDefault(); select(+point.dataset.head); }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
  const ids = [...D.roles ? ["role"] : [], ...cols.keys()], step = { c: 1, C: -1 }[e.key], turn = { "]": 1, "[": -1 }[e.key];
  if (e.key === "Escape") { S.held = false; S.tok = null; if (S.role) setRole(S.role); emit("token"); }
  if (e.key === "?") $("#keys").showModal();
  if (turn && D.exhibits.length) setExhibit(S.ex + turn);
  if (step && ids.length) setCol(ids[(ids.indexOf(S.col) + step + ids.length) % ids.length]);
}
export function listen() {
  document.addEventListener("pointerover", e => { const i = headAt(e); hover(i); tip(e, i); });
  document.addEventListener("pointerleave", () => hover(null));
  document.addEventListener("focusin", e => { const i = headAt(e); if (i != null) hover(i); });
  document.addEventListener("click", e => select(headAt(e)));
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", () => { readHash(); repaintAll(); "head col ex role step".split(" ").forEach(emit); });
  let width = innerWidth, timer;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; clearTimeout(timer); timer = setTimeout(() => emit("size"), 120); } });
}
