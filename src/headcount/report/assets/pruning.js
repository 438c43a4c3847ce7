import { $, num, option, plural, put, pval, range, sv, when } from "./dom.js";
import { D, gap, heads, kinds, mainRole, present } from "./data.js";
import { curveLine, drawing, words } from "./chart.js";
import { S, on, setStep, view } from "./state.js";
import { tables } from "./save.js";
// Quality as heads are removed, and the roles of those that are left (Voita et al. 2019, figures 7 and 8).
const C = D.curve || [], TOP = 190, BOTTOM = 130, LEFT = 44, RIGHT = 14;
// How many heads of each role are left after a step: [["sink", 12], ...].
function makeup(o, step) {
  const gone = new Set(o.points.slice(0, step + 1).flatMap(p => p.gone)), left = present.filter(h => !gone.has(h.i));
  return D.kinds.map(k => [k.id, left.filter(h => mainRole(h.i).role === k.id).length]).filter(([, n]) => n);
}
function bar(o, k, x, width, labelled) {
  let top = TOP + BOTTOM;
  return makeup(o, k).map(([role, n]) => {
    const h = BOTTOM * n / present.length, name = kinds.get(role).title.toLowerCase();
    top -= h;
    return [sv("rect", { x: x - width / 2, y: top, width, height: Math.max(.5, h - .6), class: `fill r-${role}` }, sv("title", { text: `${plural(o.points[k].left, "head")} left: ${n} ${name}` })),
      labelled && h > 10 && words(x + width / 2 + 6, top + h / 2 + 4, `${name} ${n}`)];
  });
}
function drawCurve() {
  const o = C[S.order], { points } = o, same = C.filter(c => c.metric === o.metric && c.scope === o.scope), w = Math.max(260, $("#prchart").clientWidth), whole = points[0].left, tall = TOP + BOTTOM + 34;
  const values = same.flatMap(c => c.points.flatMap(p => [p.low ?? p.value, p.high ?? p.value])).filter(v => v != null), a = Math.min(...values), b = Math.max(...values);
  const x = p => LEFT + (w - LEFT - RIGHT) * (whole - p.left) / whole, height = v => 14 + (TOP - 40) * (1 - (v - a) / (b - a || 1)), y = p => height(p.value);
  const gaps = points.slice(1).map((p, k) => x(p) - x(points[k])), room = Math.min(...gaps, 160), width = Math.max(3, Math.min(30, room * .72)), reach = Math.min(48, room);
  const band = points.filter(p => p.low != null), ribbon = [...band.map(p => `${x(p)},${height(p.high)}`), ...band.reverse().map(p => `${x(p)},${height(p.low)}`)].join(" ");
  const named = same.filter(c => !c.random), every = Math.ceil(26 / room);
  put("#prchart", drawing(w, tall, `${o.metric} against heads left, in the order of ${o.id}`,
    [a, (a + b) / 2, b].map(v => [sv("line", { x1: LEFT, x2: w - RIGHT, y1: height(v), y2: height(v), class: "axis" }), words(LEFT - 22, height(v) + 4, num(v, ".3g"), "end")]),
    points.map((p, k) => [bar(o, k, x(p), width, !k && room > 115), sv("rect", { x: x(p) - reach / 2, width: reach, y: 0, height: TOP + BOTTOM, class: `pick ${k === S.step ? "now" : ""}`, onclick: () => setStep(S.order, k) }), k % every ? null : words(x(p), TOP + BOTTOM + 14, p.left, "middle")]),
    sv("polygon", { points: ribbon, class: "ribbon" }), same.map(c => curveLine(c.points, x, y, c === o ? "" : c.random ? "random" : "thin")),
    points.filter(p => p.value != null).map(p => sv("circle", { cx: x(p), cy: y(p), r: p === points[S.step] ? 5 : 3, class: "dot" })),
    named.length > 1 && named.map((c, k) => { const p = c.points[Math.min(c.points.length - 1, 3 + 2 * k)]; return words(x(p) + 7, y(p) + (k % 2 ? 16 : -7), c.id, null, c === o ? "halo ink" : "halo"); }),
    words(LEFT + 26, TOP - 8, "roles of the heads that are left", null, "ink"), words(w - RIGHT, 8, `${o.metric}, ${o.more === "better" ? "better ↑" : "better ↓"}`, "end"), words(w / 2, tall - 4, "heads left", "middle")));
  tell(o, points[S.step]);
}
function tell(o, p) {
  const change = p.delta != null && S.step ? `; ${num(p.delta, "+.2g")}${range(p.delta_low, p.delta_high, "+.2g")} against the whole model, ${pval(p.p)}` : "", slider = $("#prstep");
  const quality = p.value == null ? `${o.metric} not measured` : `${o.metric} ${num(p.value, ".3g")}${range(p.low, p.high, ".3g")}`;
  put("#prtext", `${plural(p.left, "head")} left: ${quality}${change}. Left: ${makeup(o, S.step).map(([role, n]) => `${n} ${kinds.get(role).title.toLowerCase()}`).join(", ")}. n = ${o.n ?? "?"}, ${o.part} examples.`);
  slider.max = o.points.length - 1; slider.value = S.step; slider.setAttribute("aria-valuetext", `${p.left} heads left`);
}
view(() => {
  if (!C.length) { gap("#pruning", "curve"); return; }
  put("#prorder", C.map((o, k) => option(k, o.title, k === S.order)));
  when("#prorder", "change", e => setStep(+e.target.value, Math.min(S.step, C[+e.target.value].points.length - 1)));
  when("#prstep", "input", e => setStep(S.order, +e.target.value));
  const keys = ["value", "low", "high", "delta", "p"];
  tables.pruning = () => [["order", "scope", "metric", "step", "heads_left", ...keys, "removed"], ...C.flatMap(o => o.points.map((p, k) => [o.id, o.scope, o.metric, k, p.left, ...keys.map(key => p[key]), p.gone.map(i => heads[i].id).join(" ")]))];
  drawCurve(); on("step size theme", () => { $("#prorder").value = S.order; drawCurve(); });
});
