import { $, el, put } from "./dom.js";
import { D, absent, heads, mainRole, present, roleNames, sort } from "./data.js";
import { mark, on, view } from "./state.js";
import { hasMap, paintMap, rawMap } from "./maps.js";
// Every head's mean map at one glance: the kept sentences, each stretched to the same square, the largest weight of each cell.
const SIDE = 20;
const seenIn = i => D.exhibits.flatMap((_, ex) => hasMap(i, ex) ? [ex] : []);
async function meanMap(i) {
  const own = seenIn(i), w = new Float32Array(SIDE * SIDE);
  for (const ex of own) {
    const m = await rawMap(i, ex), bin = (at, n) => [Math.floor(at * n / SIDE), Math.max(Math.floor(at * n / SIDE) + 1, Math.floor((at + 1) * n / SIDE))];
    for (let r = 0; r < SIDE; r++) for (let c = 0; c < SIDE; c++) {
      const [r0, r1] = bin(r, m.q), [c0, c1] = bin(c, m.k);
      let most = 0;
      for (let a = r0; a < r1; a++) for (let b = c0; b < c1; b++) most = Math.max(most, m.w[a * m.k + b]);
      w[r * SIDE + c] += most / own.length;
    }
  }
  return { q: SIDE, k: SIDE, w };
}
const canvases = new Map();
const thumb = i => {
  const canvas = el("canvas", { width: SIDE, height: SIDE, "aria-hidden": "true" });
  canvases.set(i, canvas);
  return mark(i, el("button", { class: `thumb ${sort(mainRole(i).role)} r-${mainRole(i).role}`, tabindex: -1, "aria-label": `${heads[i].id}, ${roleNames(i)}`, onclick: () => $("#inst").scrollIntoView({ block: "start" }) }, canvas));
};
// A deep stack is cut into walls side by side.
const cut = s => s.layers > 12 ? Math.ceil(s.layers / Math.min(4, Math.ceil(s.layers / 12))) : s.layers;
function walls(s) {
  const deep = cut(s), many = D.stacks.length > 1, abreast = D.stacks.map(t => Math.ceil(t.layers / cut(t))), wide = D.stacks.reduce((n, t, k) => n + t.heads * abreast[k], 0);
  const room = ($("#thumbs").clientWidth - 34 * (abreast.reduce((a, b) => a + b) - 1)) / wide, cap = Math.max(28, Math.min(54, 560 / deep, room));
  return Array.from({ length: Math.ceil(s.layers / deep) }, (_, k) => {
    const from = k * deep, to = Math.min(s.layers, from + deep), name = deep < s.layers ? `${many ? `${s.title}, ` : ""}layers ${from} to ${to - 1}` : many && s.title;
    return el("div", { class: "wall", css: { "--h": s.heads, "--cap": `${cap}px` } }, name && el("h3", { text: name }), el("div", { class: "tiles" }, heads.slice(s.first + from * s.heads, s.first + to * s.heads).map(h => absent.has(h.i) ? el("span") : thumb(h.i))));
  });
}
let wallTurn = 0;
async function fillIn() {
  const mine = ++wallTurn;
  for (const h of present) {
    if (!canvases.has(h.i) || !seenIn(h.i).length) continue;
    const m = await meanMap(h.i);
    if (mine !== wallTurn) return;
    paintMap(canvases.get(h.i), m, null, false);
    if (h.index === 0) await new Promise(requestAnimationFrame);
  }
  $("#gallery").dataset.drawn = canvases.size;
}
view(() => {
  if (($("#gallery").hidden = !present.some(h => seenIn(h.i).length))) return;
  put("#thumbs", D.stacks.map(walls));
  const n = Math.max(...present.map(h => seenIn(h.i).length));
  put("#gallerynote", `Rows: layers, from the top; columns: heads. In each square a row is a word that looks, a column a word looked at; dark is much attention. Mean of ${n} sentence${n === 1 ? "" : "s"}, stretched to one size. Outlined: heads with a role. Choose one to look closer.`);
  (window.requestIdleCallback || setTimeout)(fillIn);
  on("theme", fillIn);
});
