import { $, el, num, put } from "./dom.js";
import { D, cols, mainRole, present } from "./data.js";
import { view } from "./state.js";
import { headButton } from "./glyph.js";
import { tiles } from "./survivors.js";
// Both runs side by side, and whose role and importance changed. In pages of two runs alone.
view(() => {
  const { name, second } = D.compare, c = cols.get("diff-ablation") || cols.get("diff-gradient"), first = i => mainRole(i).role, far = h => Math.abs(c.values[h.i] ?? 0);
  const side = (title, roleOf) => el("figure", {}, tiles(new Set(), 240, roleOf), el("figcaption", { class: "note", text: title }));
  const list = (title, heads, told) => heads.length > 0 && el("div", {}, el("h3", { text: title }), el("p", { class: "changes" }, heads.map(h => [headButton(h.i), ` ${told(h.i).join(" → ")}`, el("br")])));
  $("#changed").hidden = !second && !c;
  put("#changed", el("h2", { id: "xh", text: "What changed" }), el("div", { class: "sides" }, second && D.roles && [side(D.model, first), side(name, i => second[i]), list("Roles", present.filter(h => second[h.i] !== first(h.i)).slice(0, 12), i => [first(i), second[i]])],
    c && list("Importance, where it moved most", [...present].sort((a, b) => far(b) - far(a)).slice(0, 6), i => [cols.get(c.of).values[i], c.other[i]].map(v => num(v, "+.3g")))));
});
