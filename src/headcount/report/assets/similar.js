import { $, el, num, unmeasured } from "./dom.js";
import { D, heads, mainRole, missing } from "./data.js";
import { S, mark, on } from "./state.js";
import { sign } from "./glyph.js";
import { hasMap, paintMap, rawMap } from "./maps.js";
// The nearest heads as thumbnails of the same exhibit.
let simTurn = 0;
async function drawSimilar() {
  const mine = ++simTurn, near = D.map?.near[S.head] || [];
  if (!near.length) { $("#sim").replaceChildren(unmeasured("Distances between heads.", missing("pairs")?.[2])); return; }
  const shots = near.slice(0, 6).map(([j, d]) => { const canvas = el("canvas", { "aria-hidden": "true" }), r = mainRole(j); return { j, canvas, node: mark(j, el("button", {}, canvas, el("span", { class: "id", text: heads[j].id }), sign(r.role, r.dir), el("br"), num(d, ".3f"))) }; });
  $("#sim").replaceChildren(...shots.map(s => s.node));
  for (const { j, canvas } of shots) {
    if (!hasMap(j, S.ex)) { canvas.classList.add("ph"); continue; }
    const m = await rawMap(j, S.ex);
    if (mine !== simTurn) return;
    paintMap(canvas, m, null, S.byRow);
  }
}
export function similar() { $("#nnote").textContent = D.map ? "Jensen–Shannon, nats" : ""; drawSimilar(); on("head ex theme words", drawSimilar); }
