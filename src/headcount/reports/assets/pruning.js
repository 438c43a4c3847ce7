import { $, clamp, num, option, plural, put, pval, range, sv, when } from "./dom.js";
import { D, gap, heads, kinds, mainRole, present, sort } from "./data.js";
import { curveLine, drawing, ticks, words } from "./chart.js";
import { S, on, setStep, view } from "./state.js";
import { glyph } from "./glyph.js";
import { tables } from "./save.js";
import { alike, reach } from "./survivors.js";
// Quality as heads are removed, a panel a metric, and the roles of those that are left (Voita et al. 2019, figures 7 and 8).
const C = D.curve || [], PANEL = 132, BOTTOM = 130, LEFT = 52, RIGHT = 14, RANKS = ["does", "rests", "none"];
// How many heads of each role are left after a step: [["sink", 12], ...].
function makeup(o, step) {
  const gone = new Set(o.points.slice(0, step + 1).flatMap(p => p.gone)), left = present.filter(h => !gone.has(h.i));
  return D.kinds.map(k => [k.id, left.filter(h => mainRole(h.i).role === k.id).length]).filter(([, n]) => n).sort((a, b) => RANKS.indexOf(sort(a[0])) - RANKS.indexOf(sort(b[0])));
}
function bar(o, k, x, width, base, labelled) {
  let top = base + BOTTOM;
  return makeup(o, k).map(([role, n]) => {
    const h = BOTTOM * n / present.length, name = kinds.get(role).title.toLowerCase(), size = Math.min(width - 2, h - 3, 12) / 16;
    top -= h;
    return [sv("rect", { x: x - width / 2, y: top, width, height: Math.max(.5, h - .6), class: `fill r-${role} ${sort(role)}` }, sv("title", { text: `${plural(o.points[k].left, "head")} left: ${n} ${name}` })),
      size > .45 && role !== "none" && sv("g", { class: `onbar ${sort(role)} r-${role}`, transform: `translate(${x - 8 * size} ${top + h / 2 - 8 * size}) scale(${size})` }, glyph(role, -1)), labelled && h > 10 && words(x + width / 2 + 6, top + h / 2 + 4, `${name} ${n}`)];
  });
}
// The orders that were drawn at random: between the best and the worst of them.
function randomBand(o, x, y) {
  const all = C.filter(c => c.random && c.metric === o.metric && c.scope === o.scope), lefts = [...new Set(all.flatMap(c => c.points.map(p => p.left)))].sort((a, b) => b - a);
  const ends = lefts.map(left => [left, all.flatMap(c => c.points.filter(p => p.left === left && p.value != null).map(p => p.value))]).filter(([, v]) => v.length);
  if (!ends.length) return null;
  const edge = (list, f) => list.map(([left, v]) => `${x({ left }).toFixed(1)},${y(f(...v)).toFixed(1)}`), at = ends[Math.floor(ends.length * .62)];
  return [sv("polygon", { points: [...edge(ends, Math.max), ...edge([...ends].reverse(), Math.min)].join(" "), class: "random" }), all.map(c => curveLine(c.points, x, p => y(p.value), "randomly")), words(x({ left: at[0] }), y(at[1][0]) - 7, plural(all.length, "random order"), "middle", "halo")];
}
function panel(o, top, x, w) {
  const same = C.filter(c => c.metric === o.metric && c.scope === o.scope), values = same.flatMap(c => c.points.flatMap(p => [p.low ?? p.value, p.high ?? p.value])).filter(v => v != null), a = Math.min(...values), b = Math.max(...values);
  const y = v => top + 16 + (PANEL - 34) * (1 - (v - a) / (b - a || 1)), at = p => y(p.value), band = o.points.filter(p => p.low != null), named = same.filter(c => !c.random);
  const ribbon = [...band.map(p => `${x(p)},${y(p.high)}`), ...[...band].reverse().map(p => `${x(p)},${y(p.low)}`)].join(" ");
  return [ticks(a, b, 3).map(v => [sv("line", { x1: LEFT - 8, x2: w - RIGHT, y1: y(v), y2: y(v), class: "axis" }), words(LEFT - 14, y(v) + 4, num(v, ".3g"), "end")]), randomBand(o, x, y),
    sv("polygon", { points: ribbon, class: "ribbon" }), named.map(c => curveLine(c.points, x, at, c === o ? "" : "thin")), o.points.filter(p => p.value != null).map(p => sv("circle", { cx: x(p), cy: at(p), r: p === o.points[S.step] ? 5 : 3, class: "dot" })),
    named.length > 1 && named.map((c, k) => { const p = c.points[Math.min(c.points.length - 1, 3 + 2 * k)]; return p.value != null && words(x(p) + 7, at(p) + (k % 2 ? 16 : -7), c.id + (c.healed ? ", healed" : ""), null, c === o ? "halo ink" : "halo"); }),
    words(w - RIGHT, top + 10, `${o.metric}, better ${o.more === "better" ? "↑" : "↓"}${o.n ? `, n = ${o.n}` : ""}`, "end", "ink")];
}
function drawCurve() {
  const o = C[S.order], { points } = o, judged = alike(o), w = Math.max(260, $("#prchart").clientWidth), whole = points[0].left, base = judged.length * PANEL + 18, tall = base + BOTTOM + 34, best = reach();
  const x = p => LEFT + 14 + (w - LEFT - RIGHT - 28) * (whole - p.left) / whole, places = points.map(x), gaps = places.slice(1).map((v, k) => v - places[k]), room = Math.min(...gaps, 160), every = [];
  const widths = points.map((_, k) => Math.max(3, Math.min(30, .72 * Math.min(gaps[k - 1] ?? 99, gaps[k] ?? 99))));
  places.forEach((v, k) => { if (!every.length || v - places[every.at(-1)] > 26) every.push(k); });
  put("#prchart", drawing(w, tall, `${judged.map(c => c.metric).join(" and ")} against heads left, in the order of ${o.id}`,
    best > 0 && sv("rect", { x: x(points[0]) - 14, y: 2, width: x(points[best]) - x(points[0]) + 28, height: base - 6, class: "within" }),
    points.map((p, k) => [bar(o, k, x(p), widths[k], base, !k && room > 115), sv("rect", { x: x(p) - Math.max(widths[k], 6) / 2 - 2, width: Math.max(widths[k], 6) + 4, y: 0, height: base + BOTTOM, class: `pick ${k === S.step ? "now" : ""}`, onclick: () => setStep(S.order, k) }), every.includes(k) && words(x(p), base + BOTTOM + 14, p.left, "middle")]),
    judged.map((c, k) => panel(c, k * PANEL, x, w)), words(LEFT - 8, base - 4, "roles of the heads that are left", null, "ink"), words(w / 2, tall - 4, "heads left", "middle")));
  alignSlider(x(points[0]), x(points.at(-1)), whole - points.at(-1).left);
  tell(o, judged, S.step);
}
// The thumb stands under the bars: it counts heads that went, as they do.
function alignSlider(from, to, most) {
  const slider = $("#prstep"), thumb = 16;
  slider.max = most; slider.style.width = `${to - from + thumb}px`; slider.style.marginLeft = `${from - thumb / 2}px`;
}
const nearestStep = (points, gone) => points.reduce((best, p, k) => Math.abs(points[0].left - p.left - gone) < Math.abs(points[0].left - points[best].left - gone) ? k : best, 0);
function tell(o, judged, step) {
  const p = o.points[step], slider = $("#prstep"), quality = judged.map(c => {
    const q = c.points.find(r => r.left === p.left);
    if (q?.value == null) return `${c.metric} not measured`;
    return `${c.metric} ${num(q.value, ".3g")}${range(q.low, q.high, ".3g")}${step && q.delta != null ? `, ${num(q.delta, "+.2g")}${range(q.delta_low, q.delta_high, "+.2g")} against the whole model, ${pval(q.p)}` : ""}${q.chance ? ", no better than chance" : ""} (n = ${c.n ?? "?"}, ${c.part} examples)`;
  });
  put("#prtext", `${plural(p.left, "head")} left: ${quality.join("; ")}. Left: ${makeup(o, step).map(([role, n]) => `${n} ${kinds.get(role).title.toLowerCase()}`).join(", ")}.`);
  slider.value = o.points[0].left - p.left; slider.setAttribute("aria-valuetext", `${p.left} heads left`);
}
view(() => {
  if (!C.length) { gap("#pruning", "curve"); return; }
  const named = C.filter((o, k) => !o.random && C.findIndex(c => alike(o).includes(c)) === k), listed = named.length ? named : C;
  put("#prorder", listed.map(o => option(C.indexOf(o), o.title, C.indexOf(o) === S.order)));
  when("#prorder", "change", e => setStep(+e.target.value, Math.min(S.step, C[+e.target.value].points.length - 1)));
  when("#prstep", "input", e => setStep(S.order, nearestStep(C[S.order].points, +e.target.value)));
  when("#prstep", "keydown", e => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[e.key];
    if (by) { e.preventDefault(); setStep(S.order, clamp(S.step + by, 0, C[S.order].points.length - 1)); }
  });
  const keys = ["value", "low", "high", "delta", "p"];
  tables.pruning = () => [["order", "scope", "metric", "step", "heads_left", ...keys, "removed"], ...C.flatMap(o => o.points.map((p, k) => [o.id, o.scope, o.metric, k, p.left, ...keys.map(key => p[key]), p.gone.map(i => heads[i].id).join(" ")]))];
  drawCurve(); on("step size theme tolerance", () => { $("#prorder").value = C.indexOf(listed.find(o => alike(o).includes(C[S.order])) || C[S.order]); drawCurve(); });
});
