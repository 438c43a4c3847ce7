import { el, sv } from "./dom.js";
import { heads, kinds, mainRole, ofRole } from "./data.js";
import { S, mark, on, pressed, setRole } from "./state.js";
// A role's sign: colour and shape, so that neither is needed alone. A positional head points where it looks.
export function glyph(role, dir) {
  const kind = kinds.get(role), turned = kind.shows === "offset" && (dir > 0 ? "translate(16 0) scale(-1 1)" : dir === 0 && "rotate(-90 8 8)");
  return sv("path", { d: kind.d, transform: turned || null, class: `g-${role} ${kind.solid ? "solid" : "drawn"}` });
}
export const sign = (role, dir) => sv("svg", { viewBox: "0 0 16 16", class: `r-${role}`, "aria-hidden": "true" }, glyph(role, dir));
export const headSign = i => sign(mainRole(i).role, mainRole(i).dir);
// A head as a point of a chart, and as a word in a text.
export function headPoint(i, x, y, size = .62) {
  const { role, dir } = mainRole(i), c = -8 * size;
  return mark(i, sv("g", { class: `pt r-${role}`, role: "button", tabindex: -1, "aria-label": heads[i].id, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` },
    sv("circle", { class: "hit", r: 10 }), sv("circle", { class: "halo", r: 9 }), sv("g", { transform: `translate(${c} ${c}) scale(${size})` }, glyph(role, dir))));
}
export const headButton = i => mark(i, el("button", { class: "hd", "aria-label": heads[i].id }, headSign(i), el("span", { class: "id", text: heads[i].id })));
export const roleChip = role => el("button", { class: `chip r-${role}`, "aria-pressed": S.role === role, "data-role": role, title: `${kinds.get(role).title}: ${kinds.get(role).meaning}`, onclick: () => setRole(role) },
  sign(role, -1), el("span", { class: "ink", text: kinds.get(role).title }), el("i", { text: ofRole(role).length }));
on("role", () => pressed("role", S.role));
