// Colour in OKLCH with monotone lightness, so that lightness alone carries the value.
function oklch(L, C, H) {
  const a = C * Math.cos(H * Math.PI / 180), b = C * Math.sin(H * Math.PI / 180);
  const l = (L + .3963377774 * a + .2158037573 * b) ** 3, m = (L - .1055613458 * a - .0638541728 * b) ** 3, s = (L - .0894841775 * a - 1.291485548 * b) ** 3;
  const rgb = [4.0767416621 * l - 3.3077115913 * m + .2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - .3413193965 * s, -.0041960863 * l - .7034186147 * m + 1.707614701 * s];
  return rgb.map(v => Math.round(255 * Math.min(1, Math.max(0, v <= .0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - .055))));
}
// Stops: place, lightness, chroma, hue.
const UP = { light: [[0, .97, .014, 95], [.3, .86, .055, 175], [.65, .60, .105, 235], [1, .31, .12, 272]], dark: [[0, .245, .018, 262], [.35, .42, .10, 268], [.7, .68, .12, 215], [1, .955, .085, 105]] };
const BELOW = { light: [[0, .955, .006, 45], [1, .50, .14, 45]], dark: [[0, .27, .008, 62], [1, .76, .14, 62]] };
const ABOVE = { light: [[0, .955, .006, 258], [1, .38, .14, 262]], dark: [[0, .27, .008, 235], [1, .80, .11, 235]] };

export const theme = () => document.documentElement.dataset.theme === "dark" ? "dark" : "light";
function between(stops, t) {
  let k = 0;
  while (k < stops.length - 2 && t > stops[k + 1][0]) k++;
  const a = stops[k], b = stops[k + 1], u = Math.min(1, Math.max(0, (t - a[0]) / (b[0] - a[0])));
  return oklch(...[1, 2, 3].map(j => a[j] + u * (b[j] - a[j])));
}
export const ramp = t => between(UP[theme()], t);
const diverge = t => between((t < 0 ? BELOW : ABOVE)[theme()], Math.abs(t));
export const css = rgb => `rgb(${rgb.join(",")})`;
// White or black, whichever reads better on it.
export function inkOn(rgb) {
  const [r, g, b] = rgb.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4), y = .2126 * r + .7152 * g + .0722 * b;
  return 1.05 / (y + .05) > (y + .05) / .05 ? "#fff" : "#000";
}
export function shade(c, value) {
  const [a, b] = c.domain;
  return c.diverging ? diverge(value / Math.max(Math.abs(a), Math.abs(b))) : ramp((value - a) / (b - a));
}
// The ramp as 256 pixels, for canvases.
let lut = null, tableOf = "";
export function pixels() {
  if (tableOf !== theme()) {
    tableOf = theme();
    lut = Uint32Array.from({ length: 256 }, (_, i) => { const [r, g, b] = ramp(i / 255); return (255 << 24 | b << 16 | g << 8 | r) >>> 0; });
  }
  return lut;
}
