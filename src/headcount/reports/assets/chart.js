import { sv } from "./dom.js";
import { css } from "./colour.js";
// What charts share: drawings, words at a place, a bar of colours.
export const drawing = (width, height, name, ...kids) => sv("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name }, kids);
export const headChart = (width, height, name, ...kids) => sv("svg", { width, height, role: "group", "aria-label": name }, kids);
export const words = (x, y, text, anchor, cls) => sv("text", { x, y, "text-anchor": anchor, class: cls, text });
export function colourBar(x, y, width, colourAt) {
  const steps = 48, step = width / steps;
  return Array.from({ length: steps }, (_, k) => sv("rect", { x: x + k * step, y, width: step + .5, height: 7, fill: css(colourAt((k + .5) / steps)) }));
}
// A pruning curve, where quality is known.
export const curveLine = (points, x, y, cls) => sv("polyline", { points: points.filter(p => p.value != null).map(p => `${x(p).toFixed(1)},${y(p).toFixed(1)}`).join(" "), class: `curve ${cls}` });
// Round places between two values.
export function ticks(a, b, most) {
  const rough = (b - a) / most || 1, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 2.5, 5, 10].map(k => k * power).find(s => s >= rough);
  return Array.from({ length: Math.floor(b / step) - Math.ceil(a / step) + 1 }, (_, k) => +((Math.ceil(a / step) + k) * step).toPrecision(12));
}
