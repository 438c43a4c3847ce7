import { num, page } from "./dom.js";
import { D } from "./data.js";
// Colours run through stops that lie in the page: lightness alone carries the value (ramps.py).
export const theme = () => page.dataset.theme === "dark" ? "dark" : "light";
function between(name, t) {
  const stops = D.ramps[theme()][name], at = Math.max(0, Math.min(1, t)) * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(at));
  return stops[k].map((v, j) => Math.round(v + (at - k) * (stops[k + 1][j] - v)));
}
export const ramp = t => between("up", t);
export const css = rgb => `rgb(${rgb.join(",")})`;
// Where a few values are far above all others, colour goes by rank.
function share(sizes, v) {
  let low = 0, high = sizes.length;
  while (low < high) { const mid = (low + high) >> 1; sizes[mid] <= v ? low = mid + 1 : high = mid; }
  return low / sizes.length;
}
export function shade({ domain: [a, b], diverging, sizes, fmt }, value) {
  if (sizes) { const t = /[1-9]/.test(num(value, fmt)) ? share(sizes, Math.abs(value)) : 0;  // what reads as 0 has no colour
    return diverging ? between("both", .5 + Math.sign(value) * t / 2) : ramp(t); }
  return diverging ? between("both", .5 + value / Math.max(Math.abs(a), Math.abs(b)) / 2) : ramp((value - a) / (b - a));
}
// White or black, whichever reads better on it.
function inkOn(rgb) {
  const [r, g, b] = rgb.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4), y = .2126 * r + .7152 * g + .0722 * b;
  return 1.05 / (y + .05) > (y + .05) / .05 ? "#fff" : "#000";
}
export function tint(node, rgb) {
  node.style.backgroundColor = rgb ? css(rgb) : "";
  node.style.color = rgb ? inkOn(rgb) : "";
}
// The ramp as 256 pixels, for canvases.
let lut = null, lutTheme = "";
export function pixels() {
  if (lutTheme !== theme()) {
    lutTheme = theme();
    lut = Uint32Array.from({ length: 256 }, (_, i) => { const [r, g, b] = ramp(i / 255); return (255 << 24 | b << 16 | g << 8 | r) >>> 0; });
  }
  return lut;
}
