import { $, clamp, el, num, put, sv } from "./dom.js";
import { D, cols } from "./data.js";
import { shade } from "./colour.js";
import { colourBar, drawing, words } from "./chart.js";
import { S, on, view } from "./state.js";
// The legend is the histogram of the column, with a pointer at the chosen head.
const TALL = 26, BINS = 40;
let place = null;

function histogram(c, w) {
  const counts = Array(BINS).fill(0), step = w / BINS;
  for (const v of c.values) if (v != null) counts[Math.min(BINS - 1, Math.floor(place(v) / step))]++;
  const top = Math.max(...counts, 1);
  return counts.map((n, k) => n && sv("rect", { x: k * step + .5, width: step - 1, y: TALL - TALL * n / top, height: TALL * n / top, class: "histo" }));
}
function drawLegend() {
  const c = cols.get(S.col), box = $("#legend");
  if (!c) { put("#legend"); put("#desc", S.col === "role" ? "Colour and sign are a head’s first role; pale where that is a place. Choose a column above to colour by a number." : ""); return; }
  const w = Math.max(180, box.clientWidth || 480), [a, b] = c.domain, y = TALL + 23;
  place = v => clamp((v - a) / (b - a), 0, 1) * w;
  put("#legend", drawing(w, TALL + 26, `${c.title}: ${num(a, c.fmt)} to ${num(b, c.fmt)} ${c.unit}, ${c.more} to the right`,
    histogram(c, w), colourBar(0, TALL, w, t => shade(c, a + t * (b - a))), sv("g", { id: "pointer" }),
    words(0, y, num(a, c.fmt)), words(w, y, `${num(b, c.fmt)} ${c.unit}`, "end"), words(w / 2, y, `${c.more} →${c.sizes ? ", coloured by rank" : ""}`, "middle")));
  put("#desc", c.meaning, c.paper && el("span", { class: "ink2", text: ` ${c.paper}.` }), c.known < D.count && ` Measured for ${c.known} of ${D.count} heads${c.note ? `; ${c.note}` : ""}.`);
  pointer();
}
function pointer() {
  const c = cols.get(S.col), at = [[S.hover, .5], [S.head, 1]].filter(([i]) => c?.values[i] != null);
  if (c) put("#pointer", at.map(([i, opacity]) => sv("path", { d: `M${place(c.values[i])} ${TALL + 7}v-11m-4.5 16h9l-4.5 -5z`, class: "needle", opacity })));
}
view(drawLegend, "col theme size");
on("head hover", pointer);
