import { el, sv, visible } from "./dom.js";
import { S } from "./state.js";
// Who asks at the left, who answers at the right: cross-attention needs no other view.
const LABELS = 64;
const MOST = 12, ALL = 700;

// Of each row the links that cover the wanted share of what is not faded.
function kept(A, r) {
  const own = A.m.to.map((_, c) => [A.faint[c] ? 0 : A.m.w[r * A.m.k + c], c]).sort((a, b) => b[0] - a[0]), whole = own.reduce((s, x) => s + x[0], 0);
  let sum = 0;
  return own.slice(0, MOST).filter(([w]) => { const wanted = sum < S.keep * whole && w > 0; sum += w; return wanted; });
}
function lines(A, w, rh, height) {
  const all = A.m.from.flatMap((_, r) => kept(A, r).map(([v, c]) => [v, r, c])).sort((a, b) => a[0] - b[0]).slice(-ALL);
  const y = k => (k + .5) * rh;
  A.lines = sv("svg", { width: w, height, "aria-hidden": "true" }, all.map(([v, r, c]) => sv("path", { d: `M0 ${y(r)}C${w * .42} ${y(r)} ${w * .58} ${y(c)} ${w} ${y(c)}`, class: "link", "stroke-width": (.6 + 3.4 * Math.sqrt(v)).toFixed(2), "stroke-opacity": Math.min(1, .12 + 1.1 * v).toFixed(2), "data-r": r })));
  return el("div", { class: "ln" }, A.lines);
}
export function lightLinks(A, r) {
  for (const path of A.lines?.children || []) { const on = +path.dataset.r === r; path.style.opacity = r == null || on ? 1 : .05; path.style.strokeOpacity = r != null && on ? Math.max(.5, path.getAttribute("stroke-opacity")) : ""; }
}
const longest = list => Math.min(116, Math.max(...list.map(t => Math.min(14, visible(t.text).length))) * 7.3 + 14);

export function bipartite(A, W, phone, token, matrix) {
  const { m } = A, lf = longest(m.from), lt = longest(m.to), alone = A.view === "matrix";
  const rh = phone ? (alone ? Math.min(24, (W - lf) / m.k) : 18) : Math.max(9, Math.min(18, (W - lf - lt - 110) / m.k)), mw = rh * m.k, tall = rh * Math.max(m.q, m.k);
  const small = { height: `${rh}px`, "line-height": `${rh}px`, "font-size": `${Math.min(12, rh - 2)}px` };
  const put = (t, r, asking) => { const node = token(t, r, asking); for (const k in small) node.style.setProperty(k, small[k]); return node; };
  A.asks = m.from.map((t, r) => put(t, r, true));
  A.answers = m.to.map((t, c) => put(t, c, false));
  const over = sv("svg", { width: mw, height: LABELS, "aria-hidden": "true", class: "cl" }, rh >= 9 && m.to.map((t, c) => sv("text", { transform: `translate(${(c + .7) * rh} ${LABELS - 4}) rotate(-60)`, class: A.faint[c] ? "sp" : "", text: visible(t.text).slice(0, 11) })));
  const from = el("div", { class: "tk", css: { width: `${lf}px` }, role: "group", "aria-label": "tokens that ask" }, el("span", { class: "axl", text: A.two ? "asks" : "from" }), A.asks);
  const whole = el("div", { class: "mxbox" }, over, matrix(mw, rh * m.q));
  if (phone && alone) return [from, whole];
  const to = el("div", { class: "tk to", css: { width: `${lt}px` }, "aria-hidden": "true" }, el("span", { class: "axl", text: A.two ? "answers" : "to" }), A.answers);
  const wide = Math.max(60, W - (phone ? 0 : mw) - lf - lt - 2);
  return phone ? (matrix(1, 1), [from, lines(A, wide, rh, tall), to]) : [whole, from, lines(A, wide, rh, tall), to];
}
