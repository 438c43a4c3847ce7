import { $, clamp, el, put, sv } from "./dom.js";
import { D, heads, present, stackOf, unmeasured } from "./data.js";
import { headChart, words } from "./chart.js";
import { S, on, pressed, view } from "./state.js";
import { headPoint } from "./glyph.js";
// A map of the heads of one stack: near on it means alike; lines go to the five truly nearest.
const PAD = 20;
let shown = null, xy = null, wide = 0;
// As tall as the screen has room for below the grid, which stays where it is.
const roomBelow = box => innerHeight - box.getBoundingClientRect().top + $("#over").getBoundingClientRect().top - 78;
function drawMap() {
  const box = $("#map"), { x, y } = D.map, own = present.filter(h => h.stack === shown && x[h.i] != null);
  const w = Math.max(240, box.clientWidth || 520), tall = Math.round(clamp(roomBelow(box), 190, 300));
  const ends = v => [Math.min(...own.map(h => v[h.i])), Math.max(...own.map(h => v[h.i]))], [x0, x1] = ends(x), [y0, y1] = ends(y);
  const k = Math.min((w - 2 * PAD) / (x1 - x0 || 1), (tall - 2 * PAD) / (y1 - y0 || 1)), unit = [.5, .2, .1, .05, .02, .01].find(u => u * k < w / 4) || .01, bar = unit * k;
  wide = w;
  xy = i => [w / 2 + (x[i] - (x0 + x1) / 2) * k, tall / 2 + (y[i] - (y0 + y1) / 2) * k];
  put("#map", headChart(w, tall, `Map of heads, ${stackOf(shown).title}`, sv("g", { id: "mlinks" }), own.map(h => headPoint(h.i, ...xy(h.i), .75)), sv("g", { id: "mlabel" }),
    sv("path", { d: `M${w - bar - 4} ${tall - 4}h${bar}m0 -3v6m${-bar} -6v6`, class: "axis" }), words(w - bar / 2 - 4, tall - 10, `${unit} nats`, "middle")));
  put("#mapnote", D.map.notes[shown]);
  pressed("mapstack", shown);
  nearest();
}
function nearest() {
  const h = heads[S.head], here = h.stack === shown && D.map.x[h.i] != null, [a, b] = here ? xy(h.i) : [], late = a > wide - 90;
  put("#mlinks", here && D.map.near[h.i].slice(0, 5).map(([j]) => { const [x2, y2] = xy(j); return sv("line", { x1: a, y1: b, x2, y2, class: "near" }); }));
  put("#mlabel", here && words(a + (late ? -12 : 12), Math.max(12, b - 9), h.id, late ? "end" : "start", "name"));
}
const follow = stack => { shown = stack; drawMap(); };
view(() => {
  if (!D.map) { put("#map", unmeasured("pairs")); return; }
  if (D.stacks.length > 1) put("#mapstacks", D.stacks.map(s => el("button", { class: "btn", "data-mapstack": s.id, text: s.id, onclick: () => follow(s.id) })));
  follow(heads[S.head].stack);
  on("head", () => heads[S.head].stack === shown ? nearest() : follow(heads[S.head].stack));
  on("size", drawMap);
});
