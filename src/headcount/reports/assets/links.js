import { clamp, el, sv, visible } from "./dom.js";
import { S } from "./state.js";
// Who asks at the left, who answers at the right: cross-attention needs no other view.
const LABELS = 64, MOST = 12, ALL = 700;

// Of each row the links that cover the wanted share of what is not faded.
function kept(A, r) {
  const own = A.m.to.map((_, c) => [A.faint[c] ? 0 : A.m.w[r * A.m.k + c], r, c]).sort((a, b) => b[0] - a[0]), wanted = S.keep * own.reduce((sum, x) => sum + x[0], 0);
  let sum = 0;
  return own.slice(0, MOST).filter(([w]) => { const keep = sum < wanted && w > 0; sum += w; return keep; });
}
function lines(A, w, tall, height) {
  const all = A.m.from.flatMap((_, r) => kept(A, r)).sort((a, b) => a[0] - b[0]).slice(-ALL), y = k => (k + .5) * tall;
  A.lines = all.map(([v, r, c]) => sv("path", { d: `M0 ${y(r)}C${w * .42} ${y(r)} ${w * .58} ${y(c)} ${w} ${y(c)}`, class: "link", "stroke-width": (.6 + 3.4 * Math.sqrt(v)).toFixed(2), "stroke-opacity": Math.min(1, .12 + 1.1 * v).toFixed(2), "data-r": r }));
  const mid = ([from, to]) => (from + to) / 2 * tall, known = A.proof.map(({ r, c, hit }) => sv("path", { d: `M0 ${mid(r)}C${w * .42} ${mid(r)} ${w * .58} ${mid(c)} ${w} ${mid(c)}`, class: `proof line ${hit ? "" : "missed"}` }));
  return el("div", { class: "ln" }, sv("svg", { width: w, height, "aria-hidden": "true" }, A.lines, known));
}
export function lightLinks(A, r) {
  for (const path of A.lines || []) { path.classList.toggle("lit", +path.dataset.r === r); path.classList.toggle("out", r != null && +path.dataset.r !== r); }
}
const longest = list => Math.min(116, Math.max(...list.map(t => Math.min(14, visible(t.text).length))) * 7.3 + 14);
const short = text => text.length > 11 ? `${text.slice(0, 10)}…` : text;

// Where there is room for one alone, the style sheet leaves out the matrix, or all but it.
export function bipartite(A, W, phone, token, matrix) {
  const { m } = A, lf = longest(m.from), lt = longest(m.to), alone = A.view === "matrix";
  const tall = phone ? (alone ? Math.min(24, (W - lf) / m.k) : m.q > 28 ? 15 : 18) : clamp((W - lf - lt - 110) / m.k, 9, 18), mw = tall * m.k;
  const css = { height: `${tall}px`, "line-height": `${tall}px`, "font-size": `${Math.min(12, tall - 2)}px` };
  A.asks = m.from.map((t, r) => token(t, r, css));
  A.answers = m.to.map(t => token(t, null, css));
  const over = sv("svg", { width: mw, height: LABELS, "aria-hidden": "true", class: "cl" }, m.to.map((t, c) => sv("text", { transform: `translate(${(c + .7) * tall} ${LABELS - 4}) rotate(-60)`, class: A.faint[c] ? "sp" : "", text: short(visible(t.text)) })));
  const side = (width, cls, name, list, attributes) => el("div", { class: `tk ${cls}`, css: { width: `${width}px` }, ...attributes }, el("span", { class: "axl", text: name }), list);
  return [el("div", { class: "mxbox" }, over, matrix(mw, tall * m.q)),
    side(lf, "", A.two ? "asks" : "from", A.asks, { role: "group", "aria-label": "tokens that ask" }),
    lines(A, Math.max(60, W - (phone ? 0 : mw) - lf - lt - 2), tall, tall * Math.max(m.q, m.k)),
    side(lt, "to", A.two ? "answers" : "to", A.answers, { "aria-hidden": "true" })];
}
