import { el, num, put } from "./dom.js";
import { D, heads, unmeasured } from "./data.js";
import { S, mark, view } from "./state.js";
import { headSign } from "./glyph.js";
import { hasMap, paintMap, rawMap } from "./maps.js";
// The nearest heads as thumbnails of the same exhibit.
let simTurn = 0;
view(async () => {
  const mine = ++simTurn, near = (D.map?.near[S.head] || []).slice(0, 6), canvases = near.map(() => el("canvas", { "aria-hidden": "true", class: "ph" }));
  put("#sim", near.length ? near.map(([j, d], k) => mark(j, el("button", {}, canvases[k], el("span", { class: "id", text: heads[j].id }), headSign(j), el("br"), num(d, ".3f")))) : unmeasured("pairs"));
  for (const [k, [j]] of near.entries()) {
    if (!hasMap(j, S.ex)) continue;
    const m = await rawMap(j, S.ex);
    if (mine !== simTurn) return;
    canvases[k].classList.remove("ph");
    paintMap(canvases[k], m, null, S.byRow);
  }
}, "head ex theme words");
