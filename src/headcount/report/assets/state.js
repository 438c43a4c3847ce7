import { $, $$, el } from "./dom.js";
import { D, absent, byId, cols, hasRole, heads, kinds, roleNames, show, verdicts } from "./data.js";
// One state, kept in the address, so that a finding is a link: #enc.2.8, or #head=enc.2.8&col=entropy&ex=own-001
export const S = { head: D.opening.head, hover: null, col: D.opening.col, role: null, order: D.go?.order ?? 0, step: 0, ex: 0, tok: null, held: false, keep: .8, specials: false, byRow: false, view: null, words: false };
const listeners = {};
export const on = (kinds, f) => kinds.split(" ").forEach(k => (listeners[k] ||= []).push(f));
export const emit = kind => (listeners[kind] || []).forEach(f => f());

export function readHash() {
  try {
    const text = decodeURIComponent(location.hash.slice(1)), words = new URLSearchParams(text);
    const head = byId.get(byId.has(text) ? text : words.get("head")), ex = D.exhibits.findIndex(e => e.id === words.get("ex"));
    if (head != null && !absent.has(head)) S.head = head;
    if (cols.has(words.get("col"))) S.col = words.get("col");
    if (ex >= 0) S.ex = ex;
  } catch { /* a frame without an address */ }
}
function remember() {
  const ex = D.exhibits[S.ex], parts = [`head=${heads[S.head].id}`, S.col && `col=${S.col}`, ex && `ex=${encodeURIComponent(ex.id)}`];
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
export const repaintAll = () => repaint(heads.keys());
export const isGone = i => goneNow.has(i);

export function hover(i) { if (S.hover !== i) { const was = S.hover; S.hover = i; repaint([was, i]); emit("hover"); } }
export function select(i, focus) {
  if (i == null || absent.has(i)) return;
  const was = S.head;
  if (i !== was) {
    S.head = i; S.tok = null; S.held = false;
    repaint([was, i]); emit("head"); remember();
    $("#live").textContent = `${heads[i].id}: ${verdicts(i).map(v => `${kinds.get(v.role).title}, ${v.detail}`).join("; ") || roleNames(i)}`;
  }
  if (focus) $(`.cell[data-head="${i}"]`)?.focus();
}
export function setCol(id) { S.col = id; emit("col"); remember(); }
export function setRole(role) { S.role = S.role === role ? null : role; repaintAll(); emit("role"); }
export function setExhibit(k) { S.ex = (k + D.exhibits.length) % D.exhibits.length; S.tok = null; S.held = false; S.view = null; emit("ex"); remember(); }
export function setStep(order, step) {
  S.order = order; S.step = step;
  goneNow = new Set((D.curve?.[order]?.points || []).slice(0, step + 1).flatMap(p => p.gone));
  repaintAll(); emit("step");
}

// ---------- the pointer and the keys, for all marks at once
const headAt = e => { const t = e.target.closest?.("[data-head]"); return t ? +t.dataset.head : null; };
function tip(e, i) {
  const box = $("#tip"), quiet = i == null || e.target.closest(".dh");
  box.classList.toggle("on", !quiet);
  if (quiet) return;
  const c = cols.get(S.col);
  box.replaceChildren(el("b", { text: heads[i].id }), ` ${absent.has(i) ? "was removed" : roleNames(i)}`, el("br"), c ? `${c.title} ${c.values[i] == null ? "not measured" : `${show(c, i)}, rank ${c.rank[i]} of ${c.known}`}` : "");
  const { offsetWidth: w, offsetHeight: h } = box, y = e.clientY + 18;
  box.style.left = `${Math.max(8, Math.min(innerWidth - w - 8, e.clientX + 14))}px`;
  box.style.top = `${y + h > innerHeight ? e.clientY - h - 10 : y}px`;
}
export function listen() {
  document.addEventListener("pointerover", e => { const i = headAt(e); hover(i); tip(e, i); });
  document.addEventListener("pointerleave", () => hover(null));
  document.addEventListener("focusin", e => { const i = headAt(e); if (i != null) hover(i); });
  document.addEventListener("click", e => { const i = headAt(e); if (i != null) select(i); });
  document.addEventListener("keydown", e => {
    const point = e.target.closest?.("svg [data-head]");
    if (point && /^(Enter| )$/.test(e.key)) { e.preventDefault(); select(+point.dataset.head); }
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
    const ids = D.columns.map(c => c.id), step = { c: 1, C: -1 }[e.key], turn = { "]": 1, "[": -1 }[e.key];
    if (e.key === "Escape") { S.held = false; S.tok = null; if (S.role) setRole(S.role); emit("token"); }
    if (e.key === "?") $("#keys").showModal();
    if (turn && D.exhibits.length) setExhibit(S.ex + turn);
    if (step && ids.length) setCol(ids[(ids.indexOf(S.col) + step + ids.length) % ids.length]);
  });
  addEventListener("hashchange", () => { const was = S.head; readHash(); repaint([was, S.head]); emit("head"); emit("col"); emit("ex"); });
  let width = innerWidth, timer;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; clearTimeout(timer); timer = setTimeout(() => emit("size"), 120); } });
}
export const pressed = (query, test) => $$(query).forEach(b => b.setAttribute("aria-pressed", test(b)));
