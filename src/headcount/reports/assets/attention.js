import { $, $$, clamp, el, num, option, pct, plural, put, sv, visible, when } from "./dom.js";
import { D, heads, unmeasured } from "./data.js";
import { ramp, tint } from "./colour.js";
import { colourBar, drawing, words } from "./chart.js";
import { S, emit, on, pressed, setExhibit, view } from "./state.js";
import { hasMap, mapOf, paintMap } from "./maps.js";
import { evidenceOf, tellingExhibit } from "./evidence.js";
import { bipartite, lightLinks } from "./links.js";
// One head on one exhibit: matrix and lines share the tokens that ask; long texts are shaded instead.
let A = null, attTurn = 0;
const LONG = 40, WIDE = 28, phone = () => innerWidth <= 640;

async function drawAttention() {
  const mine = ++attTurn, stage = $("#stage"), there = hasMap(S.head, S.ex);
  $("#ctl").hidden = !D.exhibits.length;
  $("#ex").value = S.ex;
  $("#rd").hidden = !there;
  if (!there) { A = null; put("#stage", unmeasured("exhibits", D.exhibits.length ? "This exhibit has no map of this head." : "No exhibit is in this page, so there is no attention to look at.")); return; }
  const m = await mapOf(S.head, S.ex, S.unit === "words"), proof = await evidenceOf(S.head, S.ex);
  if (mine !== attTurn) return;
  const [asks, answers] = D.exhibits[S.ex].sides[heads[S.head].stack], size = Math.max(m.q, m.k), one = phone() || size > WIDE, wanted = S.view || (size > LONG ? "text" : size > WIDE && !phone() ? "matrix" : "lines");
  A = { m, proof: placed(m, proof), one, view: wanted === "matrix" && !one ? "lines" : wanted, two: asks !== answers, faint: m.to.map(t => t.special && !S.specials) };
  stage.className = `stage ${A.view} ${one ? "one" : ""}`;
  $('[data-view="matrix"]').hidden = !one;  // side by side while there is room
  $("#keepbox").hidden = A.view !== "lines";
  pressed("view", A.view); pressed("unit", S.unit);
  for (const b of $$("[data-flip]")) b.setAttribute("aria-pressed", S[b.dataset.flip]);
  put("#stage", A.view === "text" ? flowing() : bipartite(A, stage.clientWidth, one, token, matrix));
  put("#seen", seen(proof));
  point(S.tok); scale();
}
// Where the proof lies among the tokens or words that are shown.
function placed(m, proof) {
  const span = (units, tokens) => { const found = units.map((u, k) => u.of.some(t => tokens.includes(t)) ? k : -1).filter(k => k >= 0); return [found[0], found.at(-1) + 1]; };
  return (proof?.pairs || []).map(p => ({ hit: p.hit, r: span(m.from, p.rows), c: span(m.to, p.cols) }));
}
// "Here 3 of 3 det arcs, from the head to the dependent; over the corpus 0.98 (n = 112)."
function seen(proof) {
  if (!proof) return null;
  const { v, what, how, hits, pairs } = proof;
  return [el("b", { text: `Here ${hits} of ${plural(pairs.length, what)}` }), `, ${how}; over the corpus ${num(v.value)}${v.n ? ` (n = ${v.n})` : ""}. `, el("span", { class: "note", text: `Outlined where it is expected${hits < pairs.length ? ", dashed where it is missed" : ""}.` })];
}
// The matrix; it is also the way into long texts.
function matrix(w, h) {
  const canvas = el("canvas", { "aria-hidden": "true", css: { width: `${w}px`, height: `${h}px` } });
  const at = e => clamp(Math.floor((e.clientY - canvas.getBoundingClientRect().top) / h * A.m.q), 0, A.m.q - 1);
  paintMap(canvas, A.m, A.faint, S.byRow);
  canvas.addEventListener("pointermove", e => glance(at(e)));
  canvas.addEventListener("click", e => hold(at(e)));
  A.cross = el("div", { class: "xh", css: { height: `${h / A.m.q}px` } });
  const x = w / A.m.k, y = h / A.m.q, boxes = A.proof.map(({ r, c, hit }) => sv("rect", { x: c[0] * x + .75, y: r[0] * y + .75, width: (c[1] - c[0]) * x - 1.5, height: (r[1] - r[0]) * y - 1.5, class: `proof ${hit ? "" : "missed"}` }));
  return el("div", { class: "mx", css: { width: `${w}px` } }, canvas, sv("svg", { width: w, height: h, class: "proofs", "aria-hidden": "true" }, boxes), A.cross);
}
// Only tokens that ask, those with a row, can be pointed at.
function token(unit, r, css = {}) {
  const about = { class: `tok${unit.special ? " sp" : ""}`, title: unit.text, text: visible(unit.text), css };
  if (r == null) return el("span", about);
  const look = () => glance(r);
  return el("button", { ...about, tabindex: r === (S.tok ?? 0) ? 0 : -1, onpointerenter: look, onfocus: look, onclick: () => hold(r), onkeydown: e => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
    if (step) { e.preventDefault(); A.asks[clamp(r + step, 0, A.m.q - 1)].focus(); }
  } });
}
// Long texts: the text that asks, and the one that answers, which may be the same.
function flowing() {
  const { m, two } = A, w = $("#stage").clientWidth, side = Math.min(430, phone() ? w : w * .52) / Math.max(m.q, m.k);
  A.asks = m.from.map((t, r) => token(t, r));
  A.answers = two ? m.to.map(t => token(t)) : A.asks;
  const text = (name, nodes) => el("div", { class: "flow", role: "group", "aria-label": name, tabindex: two && nodes === A.answers ? 0 : null }, two && el("h3", { text: name }), nodes);
  return [matrix(side * m.k, side * m.q), el("div", { class: "flows" }, text(two ? "asks" : "tokens; focus one to see where it looks", A.asks), two && text("answers", A.answers))];
}
function glance(r) { if (!S.held) point(r); }
function hold(r) { S.held = !(S.held && S.tok === r); point(r); }
function point(r) {
  if (!A) return;
  S.tok = r;
  A.asks.forEach((b, k) => { b.classList.toggle("on", k === r); b.setAttribute("aria-pressed", S.held && k === r); if (r != null) b.tabIndex = k === r ? 0 : -1; });
  A.cross.hidden = r == null;
  A.cross.style.top = `${100 * r / A.m.q}%`;
  A.answers.forEach((b, c) => { const w = r == null || A.faint[c] ? 0 : A.m.w[r * A.m.k + c]; tint(b, w > .004 ? ramp(Math.sqrt(w)) : null); });
  lightLinks(A, r);
  put("#read", r == null ? summary(A.m) : readout(A.m, r));
}
function summary(m) {
  const special = m.w.reduce((sum, v, c) => m.to[c % m.k].special ? sum + v : sum, 0);
  const sizes = A.two ? `${m.q} ask, ${m.k} answer` : `${m.q} ${S.unit === "words" ? "words" : "tokens"}`;
  return `${sizes}. ${pct(special / m.q)} of this head’s attention here is on special tokens${A.faint.some(Boolean) ? ", which are faded and not linked" : ""}.`;
}
function readout(m, r) {
  const code = text => el("code", { text: visible(text) }), top = m.to.map((t, c) => [m.w[r * m.k + c], t.text]).sort((a, b) => b[0] - a[0]).slice(0, 5);
  return [code(m.from[r].text), ` (${r}) → `, top.map(([w, text], k) => [k ? ", " : "", code(text), ` ${num(w, ".3f")}`]), S.held ? " · held" : ""];
}
function scale() {
  const w = 96, at = S.byRow ? [[0, "0"], [1, "row max"]] : [[0, "0"], [.5, ".25"], [1, "1"]];
  put("#scale", drawing(w + 24, 24, `colour: square root of the ${S.byRow ? "share of the row’s largest weight" : "weight"}`, colourBar(8, 0, w, ramp), at.map(([t, text]) => words(8 + t * w, 19, text, t && S.byRow ? "end" : "middle"))));
}
function choose({ target: { dataset: { view: shown, unit, flip } } }) {
  if (shown) S.view = shown;
  else if (unit) S.unit = unit;
  else if (flip) S[flip] = !S[flip];
  else return;
  if (!shown) S.tok = null;
  drawAttention(); emit("words");
}
view(() => {
  put("#ex", D.exhibits.map((e, k) => option(k, e.title)));
  when("#ex", "change", e => setExhibit(+e.target.value));
  when("#ctl", "click", choose);
  when("#keep", "input", e => { S.keep = e.target.value / 100; put("#keepv", pct(S.keep)); drawAttention(); });
  $("#units").hidden = !D.exhibits.some(e => Object.values(e.texts).some(t => t.words));
  when("#stage", "pointerleave", () => glance(null));
  const follow = async () => {
    const head = S.head, ex = S.picked || !D.exhibits.length ? S.ex : await tellingExhibit(head, S.ex);
    if (head !== S.head) return;
    const moved = ex !== S.ex;
    S.ex = ex;
    await drawAttention();
    if (moved) emit("words");
  };
  on("head", follow);
  on("theme size ex", drawAttention);
  on("token", () => point(null));
  return follow();
});
