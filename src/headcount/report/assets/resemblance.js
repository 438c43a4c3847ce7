import { $, el, num, sv, unmeasured } from "./dom.js";
import { D, absent, heads, missing, stackOf } from "./data.js";
import { S, on, pressed } from "./state.js";
import { headPoint } from "./glyph.js";
import { saver } from "./save.js";
// A map of the heads of one stack: near on it means alike; lines go to the five truly nearest.
let shown = null, xy = null;
function drawMap() {
  const s = stackOf(shown), own = heads.filter(h => h.stack === shown && !absent.has(h.i) && D.map.x[h.i] != null), { x, y } = D.map;
  const w = Math.max(260, $("#map").clientWidth || 520), room = innerHeight - $("#map").getBoundingClientRect().top + $(".over").getBoundingClientRect().top - 78, tall = Math.round(Math.min(300, w * .58, Math.max(190, room))), pad = 20;
  const ends = v => [Math.min(...own.map(h => v[h.i])), Math.max(...own.map(h => v[h.i]))], [x0, x1] = ends(x), [y0, y1] = ends(y);
  const k = Math.min((w - 2 * pad) / (x1 - x0 || 1), (tall - 2 * pad) / (y1 - y0 || 1)), unit = [.5, .2, .1, .05, .02, .01].find(u => u * k < w / 4) || .01;
  xy = i => [w / 2 + (x[i] - (x0 + x1) / 2) * k, tall / 2 + (y[i] - (y0 + y1) / 2) * k];
  $("#map").replaceChildren(sv("svg", { width: w, height: tall, role: "group", "aria-label": `Map of heads, ${s.title}` }, sv("g", { id: "mlinks" }), own.map(h => headPoint(h.i, ...xy(h.i), .75)), sv("g", { id: "mlabel" }),
    sv("path", { d: `M${w - unit * k - 4} ${tall - 4}h${unit * k}m0 -3v6m${-unit * k} -6v6`, class: "axis" }), sv("text", { x: w - unit * k / 2 - 4, y: tall - 10, "text-anchor": "middle", text: `${unit} nats` })));
  const f = D.map.silhouette[shown], stress = D.map.stress[shown];
  $("#mapnote").textContent = [`Distance of maps (Clark et al. 2019, figure 6).`, stress != null && `Stress ${num(stress)}: read neighbourhoods, not exact distances.`, f && `Heads of a layer ${f[0] > f[2] ? "are more alike than chance" : "are no more alike than chance"} (silhouette ${num(f[0])}, shuffled ${num(f[1])} to ${num(f[2])}).`].filter(Boolean).join(" ");
  pressed("[data-mapstack]", b => b.dataset.mapstack === shown);
  links();
}
function links() {
  const h = heads[S.head], here = h.stack === shown && D.map.x[h.i] != null;
  const [a, b] = here ? xy(h.i) : [0, 0];
  $("#mlinks").replaceChildren(...(here ? D.map.near[h.i].slice(0, 5) : []).map(([j]) => { const [c, d] = xy(j); return sv("line", { x1: a, y1: b, x2: c, y2: d, class: "near" }); }));
  $("#mlabel").replaceChildren(...(here ? [sv("text", { x: a + 12, y: b - 9, class: "name", text: h.id })] : []));
}
const follow = () => { if (heads[S.head].stack === shown) links(); else { shown = heads[S.head].stack; drawMap(); } };
export function resemblance() {
  if (!D.map) { $("#map").replaceChildren(unmeasured("Distances between heads.", missing("pairs")?.[2])); return; }
  shown = heads[S.head].stack;
  if (D.stacks.length > 1) $("#mapstacks").replaceChildren(...D.stacks.map(s => el("button", { class: "btn", "data-mapstack": s.id, text: s.id, onclick: () => { shown = s.id; drawMap(); } })));
  $("#save-map").replaceWith(saver(() => $("#map"), "map"));
  drawMap(); on("head", follow); on("size", drawMap);
}
