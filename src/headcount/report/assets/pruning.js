import { $, el, num, option, plural, pval, range, sv, unmeasured } from "./dom.js";
import { D, heads, kinds, mainRole, missing, present } from "./data.js";
import { S, on, setStep } from "./state.js";
import { saver } from "./save.js";
// Quality as heads are removed, and the roles of those that are left (Voita et al. 2019, figures 7 and 8).
const C = D.curve || [], TOP = 190, BOTTOM = 130, PAD = 44;
const name = o => [o.id, o.scope !== "all" && o.scope, o.healed && "healed", o.metric].filter(Boolean).join(", ");
const left = (o, k) => { const gone = new Set(o.points.slice(0, k + 1).flatMap(p => p.gone)); return present.filter(h => !gone.has(h.i)); };
function makeup(list) {
  const count = new Map();
  for (const h of list) count.set(mainRole(h.i).role, (count.get(mainRole(h.i).role) || 0) + 1);
  return D.kinds.map(k => [k.id, count.get(k.id) || 0]).filter(([, n]) => n);
}
function drawCurve() {
  const o = C[S.order], same = C.filter(c => c.metric === o.metric && c.scope === o.scope), w = Math.max(260, $("#prchart").clientWidth), whole = o.points[0].left;
  const values = same.flatMap(c => c.points.flatMap(p => [p.low ?? p.value, p.high ?? p.value])).filter(v => v != null), a = Math.min(...values), b = Math.max(...values);
  const x = n => PAD + (w - PAD - 14) * (whole - n) / whole, y = v => 8 + (TOP - 24) * (1 - (v - a) / (b - a || 1)), line = c => c.points.filter(p => p.value != null).map(p => `${x(p.left).toFixed(1)},${y(p.value).toFixed(1)}`).join(" ");
  const band = o.points.filter(p => p.low != null), ribbon = [...band.map(p => `${x(p.left)},${y(p.high)}`), ...band.reverse().map(p => `${x(p.left)},${y(p.low)}`)].join(" ");
  const gap = Math.min(...o.points.slice(1).map((p, k) => x(p.left) - x(o.points[k].left)), 160), bw = Math.max(3, Math.min(30, gap * .72)), tall = TOP + BOTTOM + 34;
  const bars = o.points.flatMap((p, k) => { let top = TOP + BOTTOM; return [...makeup(left(o, k)).map(([role, n]) => { const h = BOTTOM * n / present.length; top -= h; return [!k && gap > 110 && h > 10 && sv("text", { x: x(p.left) + bw / 2 + 6, y: top + h / 2 + 4, text: `${kinds.get(role).title.toLowerCase()} ${n}` }), sv("rect", { x: x(p.left) - bw / 2, y: top, width: bw, height: Math.max(.5, h - .6), class: `fill r-${role}` }, sv("title", { text: `${plural(p.left, "head")} left: ${n} ${kinds.get(role).title.toLowerCase()}` }))]; }), sv("rect", { x: x(p.left) - Math.min(24, gap / 2), width: Math.min(48, gap), y: 0, height: TOP + BOTTOM, class: `pick ${k === S.step ? "now" : ""}`, onclick: () => setStep(S.order, k) })]; });
  const best = o.more === "better" ? "better ↑" : "better ↓", ends = same.filter(c => !c.random);
  $("#prchart").replaceChildren(sv("svg", { width: w, height: tall, role: "img", "aria-label": `${o.metric} against heads left, in the order of ${o.id}` },
    [0, .5, 1].map(t => { const v = a + t * (b - a); return [sv("line", { x1: PAD, x2: w - 14, y1: y(v), y2: y(v), class: "axis" }), sv("text", { x: PAD - 6, y: y(v) + 4, "text-anchor": "end", text: num(v, ".3g") })]; }),
    bars, sv("polygon", { points: ribbon, class: "ribbon" }), same.filter(c => c !== o).map(c => sv("polyline", { points: line(c), class: `curve ${c.random ? "random" : "thin"}` })), sv("polyline", { points: line(o), class: "curve" }),
    o.points.filter(p => p.value != null).map(p => sv("circle", { cx: x(p.left), cy: y(p.value), r: p === o.points[S.step] ? 5 : 3, class: "dot" })),
    ends.map((c, k) => { const p = c.points[Math.min(c.points.length - 1, 3 + 2 * k)]; return ends.length > 1 && sv("text", { x: x(p.left) + 7, y: y(p.value) + (k % 2 ? 16 : -7), class: c === o ? "halo ink" : "halo", text: c.id }); }),
    sv("text", { x: PAD, y: TOP - 3, class: "ink", text: "roles of the heads that are left" }), sv("text", { x: w - 14, y: 4, "text-anchor": "end", text: `${o.metric}, ${best}` }),
    o.points.filter((p, k) => gap > 22 || k % Math.ceil(26 / gap) === 0).map(p => sv("text", { x: x(p.left), y: TOP + BOTTOM + 14, "text-anchor": "middle", text: p.left })), sv("text", { x: w / 2, y: tall - 4, "text-anchor": "middle", text: "heads left" })));
  tell(o);
}
function tell(o) {
  const p = o.points[S.step], change = p.delta != null && S.step ? `, ${num(p.delta, "+.2g")}${range(p.delta_low, p.delta_high, "+.2g")} against the whole model, ${pval(p.p)}` : "";
  const quality = p.value == null ? `${o.metric} not measured` : `${o.metric} ${num(p.value, ".3g")}${range(p.low, p.high, ".3g")}`;
  $("#prtext").textContent = `${plural(p.left, "head")} left: ${quality}${change}. Left: ${makeup(left(o, S.step)).map(([r, n]) => `${n} ${kinds.get(r).title.toLowerCase()}`).join(", ")}. n = ${o.n ?? "?"}, ${o.part} examples.`;
  const slider = $("#prstep");
  slider.max = o.points.length - 1; slider.value = S.step; slider.setAttribute("aria-valuetext", `${p.left} heads left`);
}
const curveCsv = () => [["order", "scope", "step", "heads_left", "metric", "value", "low", "high", "delta", "p", "removed"], ...C.flatMap(o => o.points.map((p, k) => [o.id, o.scope, k, p.left, o.metric, p.value, p.low, p.high, p.delta, p.p, p.gone.map(i => heads[i].id).join(" ")]))];
export function pruning() {
  const box = $("#pruning"), h2 = el("h2", { id: "ph", text: "How many heads can go" });
  if (!C.length) { box.replaceChildren(h2, unmeasured("Quality as heads are removed together.", missing("curve")?.[2])); return; }
  box.replaceChildren(el("div", { class: "bar" }, h2, saver(() => $("#prchart"), "pruning", curveCsv), el("label", { class: "note", for: "prorder", text: "in the order of" }), el("select", { id: "prorder", onchange: e => setStep(+e.target.value, Math.min(S.step, C[+e.target.value].points.length - 1)) }, C.map((o, k) => option(k, name(o), k === S.order)))),
    el("p", { class: "sub", text: "Move the slider, or choose a bar: the heads that went empty out in the grid and on the map. Pale lines are random orders." }),
    el("div", { id: "prchart" }), el("label", { class: "vh", for: "prstep", text: "Step of pruning" }), el("input", { type: "range", id: "prstep", class: "prune", min: 0, oninput: e => setStep(S.order, +e.target.value) }), el("p", { class: "note", id: "prtext", "aria-live": "polite" }));
  drawCurve(); on("step size theme", () => { $("#prorder").value = S.order; drawCurve(); });
}
