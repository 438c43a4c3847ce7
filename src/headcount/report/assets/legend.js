import { $, el, num, sv } from "./dom.js";
import { cols } from "./data.js";
import { css, shade } from "./colour.js";
import { S, on } from "./state.js";
// The legend is the histogram of the column, with a pointer at the chosen head.
const TALL = 26, BINS = 40;
let place = null;

function bars(c, w) {
  const [a, b] = c.domain, counts = Array(BINS).fill(0);
  for (const v of c.values) if (v != null) counts[Math.max(0, Math.min(BINS - 1, Math.floor((v - a) / (b - a) * BINS)))]++;
  const top = Math.max(...counts, 1), step = w / BINS;
  return counts.map((n, k) => n && sv("rect", { x: k * step + .5, width: step - 1, y: TALL - TALL * n / top, height: TALL * n / top, class: "histo" }));
}
function drawLegend() {
  const c = cols.get(S.col), box = $("#legend");
  if (!c) { box.replaceChildren(); return; }
  const w = Math.max(200, box.clientWidth || 480), [a, b] = c.domain, T = 64;
  place = v => Math.max(0, Math.min(1, (v - a) / (b - a))) * w;
  box.replaceChildren(sv("svg", { width: w, height: TALL + 26, role: "img", "aria-label": `${c.title}: ${num(a, c.fmt)} to ${num(b, c.fmt)} ${c.unit}, ${c.more} to the right` },
    bars(c, w), Array.from({ length: T }, (_, k) => sv("rect", { x: k * w / T, width: w / T + .5, y: TALL, height: 7, fill: css(shade(c, a + (k + .5) / T * (b - a))) })),
    sv("g", { id: "pointer" }), sv("text", { y: TALL + 23, text: num(a, c.fmt) }), sv("text", { x: w, y: TALL + 23, "text-anchor": "end", text: `${num(b, c.fmt)} ${c.unit}` }),
    sv("text", { x: w / 2, y: TALL + 23, "text-anchor": "middle", text: `${c.more} →` })));
  const paper = c.paper && el("span", { class: "ink2", text: ` ${c.paper}.` });
  $("#desc").replaceChildren(...[c.meaning, paper, c.note && ` Not measured: ${c.note}.`].filter(Boolean));
  pointer();
}
function pointer() {
  const g = $("#pointer"), c = cols.get(S.col);
  if (!g || !place) return;
  const at = [[S.hover, .5], [S.head, 1]].filter(([i]) => i != null && c.values[i] != null);
  g.replaceChildren(...at.map(([i, opacity]) => sv("path", { d: `M${place(c.values[i])} ${TALL + 7}v-11m-4.5 16h9l-4.5 -5z`, class: "needle", opacity })));
}
export function legend() { drawLegend(); on("col theme size", drawLegend); on("head hover", pointer); }
