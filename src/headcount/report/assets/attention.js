import { $, el, num, option, pct, sv, unmeasured, visible } from "./dom.js";
import { D, missing } from "./data.js";
import { css, inkOn, ramp } from "./colour.js";
import { S, emit, on, pressed, setExhibit } from "./state.js";
import { hasMap, mapOf, paintMap } from "./maps.js";
import { bipartite, lightLinks } from "./links.js";
import { saver } from "./save.js";
// One head on one exhibit: matrix and lines share the tokens that ask; long texts are shaded instead.
let A = null;
let attTurn = 0;
const LONG = 40, phone = () => innerWidth <= 640;
const toggle = (text, key, title) => el("button", { class: "btn", "data-key": key, "aria-pressed": S[key], title, text, onclick: () => { S[key] = !S[key]; S.tok = null; drawAttention(); emit("words"); } });

function controls() {
  const views = [["lines", "Lines"], ["matrix", "Matrix"], ["text", "Text"]];
  $("#ctl").replaceChildren(
    el("select", { id: "ex", "aria-label": "Exhibit", onchange: e => setExhibit(+e.target.value) }, D.exhibits.map((e, k) => option(k, e.title, k === S.ex))),
    el("span", { class: "seg", role: "group", "aria-label": "View" }, views.map(([id, text]) => el("button", { class: `btn ${id === "matrix" ? "onlyphone" : ""}`, "data-view": id, text, onclick: () => { S.view = id; drawAttention(); } }))),
    D.exhibits.some(e => Object.values(e.texts).some(t => t.words)) && el("span", { class: "seg", role: "group", "aria-label": "Unit" }, ["Pieces", "Words"].map(text => el("button", { class: "btn", "data-words": text, text, onclick: () => { S.words = text === "Words"; S.tok = null; drawAttention(); emit("words"); } }))),
    toggle("Specials", "specials", "Link special tokens too"), toggle("Row contrast", "byRow", "Colour each row up to its own largest weight"),
    el("label", { id: "keepbox" }, "links for", el("input", { type: "range", id: "keep", min: 30, max: 99, value: 100 * S.keep, oninput: e => { S.keep = e.target.value / 100; $("#keepv").textContent = pct(S.keep); drawAttention(); } }), el("span", { id: "keepv", text: pct(S.keep) })),
    saver(() => $("#stage"), "attention"));
}
async function drawAttention() {
  const mine = ++attTurn, stage = $("#stage");
  if (!hasMap(S.head, S.ex)) {
    A = null; $("#ctl").hidden = !D.exhibits.length; $("#read").textContent = ""; $("#scale").replaceChildren();
    stage.replaceChildren(unmeasured(D.exhibits.length ? "This exhibit has no map of this head." : "No exhibit is in this page, so there is no attention to look at.", missing("exhibits")?.[2]));
    return;
  }
  const m = await mapOf(S.head, S.ex, S.words);
  if (mine !== attTurn) return;
  const e = D.exhibits[S.ex], [asks, answers] = e.sides[D.stacks.find(s => S.head >= s.first && S.head < s.first + s.layers * s.heads).id];
  const long = Math.max(m.q, m.k) > LONG, view = S.view === "matrix" && !phone() ? "lines" : S.view || (long ? "text" : "lines");
  A = { m, view, two: asks !== answers, faint: m.to.map(t => t.special && !S.specials), asks: [], answers: [] };
  stage.className = `stage ${view}`;
  $("#keepbox").hidden = view !== "lines";
  pressed("[data-view]", b => b.dataset.view === view);
  pressed("[data-words]", b => (b.dataset.words === "Words") === S.words);
  pressed("[data-key]", b => S[b.dataset.key]);
  stage.replaceChildren(...(view === "text" ? flowing() : bipartite(A, stage.clientWidth, phone(), token, matrix)));
  stage.onpointerleave = () => { if (!S.held) point(null); };
  point(S.tok); scale();
}
// The matrix; it is also the way into long texts.
function matrix(w, h) {
  const canvas = el("canvas", { "aria-hidden": "true", css: { width: `${w}px`, height: `${h}px` } });
  paintMap(canvas, A.m, A.faint, S.byRow);
  A.cross = el("div", { class: "xh", css: { height: `${h / A.m.q}px` } });
  const at = ev => Math.max(0, Math.min(A.m.q - 1, Math.floor((ev.clientY - canvas.getBoundingClientRect().top) / h * A.m.q)));
  canvas.addEventListener("pointermove", ev => { if (!S.held) point(at(ev)); });
  canvas.addEventListener("click", ev => hold(at(ev)));
  return el("div", { class: "mx", css: { width: `${w}px` } }, canvas, A.cross);
}
function token(unit, r, asking) {
  const node = el(asking ? "button" : "span", { class: `tok${unit.special ? " sp" : ""}`, title: unit.text, text: visible(unit.text) });
  if (asking) {
    node.tabIndex = r === (S.tok ?? 0) ? 0 : -1;
    node.addEventListener("pointerenter", () => { if (!S.held) point(r); });
    node.addEventListener("focus", () => { if (!S.held) point(r); });
    node.addEventListener("click", () => hold(r));
    node.addEventListener("keydown", ev => { const d = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[ev.key]; if (d) { ev.preventDefault(); A.asks[Math.max(0, Math.min(A.m.q - 1, r + d))].focus(); } });
  }
  return node;
}
// Long texts: the text that asks, and the one that answers, which may be the same.
function flowing() {
  const { m, two } = A, w = $("#stage").clientWidth, side = Math.min(430, phone() ? w : w * .52), k = side / Math.max(m.q, m.k);
  A.asks = m.from.map((t, r) => token(t, r, true));
  A.answers = two ? m.to.map((t, c) => token(t, c, false)) : A.asks;
  const text = (name, nodes) => el("div", { class: "flow", role: "group", "aria-label": name, tabindex: two && nodes === A.answers ? 0 : null }, two && el("h4", { text: name }), nodes);
  return [matrix(k * m.k, k * m.q), el("div", { class: "flows" }, text(two ? "asks" : "tokens; focus one to see where it looks", A.asks), two && text("answers", A.answers))];
}
function point(r) {
  if (!A) return;
  S.tok = r;
  const { m, view, faint } = A, weight = c => r == null || faint[c] ? 0 : m.w[r * m.k + c];
  A.asks.forEach((b, k) => { b.classList.toggle("on", k === r); b.setAttribute("aria-pressed", S.held && k === r); if (r != null) b.tabIndex = k === r ? 0 : -1; });
  A.cross.style.display = r == null ? "none" : "block";
  if (r != null) A.cross.style.top = `${100 * r / m.q}%`;
  A.answers.forEach((b, c) => {
    const w = weight(c), rgb = w > .004 ? ramp(Math.sqrt(w)) : null;
    b.style.backgroundColor = rgb ? css(rgb) : ""; b.style.color = rgb ? inkOn(rgb) : "";
  });
  if (view !== "text") lightLinks(A, r);
  readout(r);
}
function hold(r) { S.held = !(S.held && S.tok === r); point(r); }
function readout(r) {
  const { m, faint } = A, box = $("#read"), code = t => el("code", { text: visible(t) });
  if (r == null) {
    let special = 0;
    for (let a = 0; a < m.q; a++) for (let c = 0; c < m.k; c++) if (m.to[c].special) special += m.w[a * m.k + c];
    const sizes = A.two ? `${m.q} ask, ${m.k} answer` : `${m.q} ${S.words ? "words" : "tokens"}`;
    box.replaceChildren(`${sizes}. ${pct(special / m.q)} of this head’s attention here is on special tokens${faint.some(Boolean) ? ", which are faded and not linked" : ""}. Point at a token, or Tab to it; click or Enter holds it, Esc lets go.`);
    return;
  }
  const top = m.to.map((t, c) => [m.w[r * m.k + c], t.text]).sort((a, b) => b[0] - a[0]).slice(0, 5);
  box.replaceChildren(code(m.from[r].text), ` (${r}) → `, ...top.flatMap(([w, t], k) => [k ? ", " : "", code(t), ` ${num(w, ".3f")}`]), S.held ? " · held" : "");
}
function scale() {
  const w = 96, steps = 32, at = S.byRow ? [[0, "0"], [1, "row max"]] : [[0, "0"], [.5, ".25"], [1, "1"]];
  $("#scale").replaceChildren(sv("svg", { width: w + 24, height: 24, role: "img", "aria-label": S.byRow ? "colour scale, each row up to its own largest" : "colour scale, square root, 0 to 1" },
    Array.from({ length: steps }, (_, k) => sv("rect", { x: 8 + k * w / steps, width: w / steps + .5, height: 7, fill: css(ramp(k / (steps - 1))) })),
    at.map(([t, text]) => sv("text", { x: 8 + t * w, y: 19, "text-anchor": t === 1 && S.byRow ? "end" : "middle", text }))));
}
export function attention() {
  controls(); on("head theme size", drawAttention); on("ex", () => { controls(); drawAttention(); });
  on("token", () => { if (A) point(null); });
  return drawAttention();
}
