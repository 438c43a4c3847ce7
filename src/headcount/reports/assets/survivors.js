import { $, el, num, plural, put, quality, range, sv, when } from "./dom.js";
import { D, absent, heads, kinds, mainRole, sort } from "./data.js";
import { S, emit, on, setStep, showWithout, view } from "./state.js";
// Who is left: one small grid a step in the colours of roles; a grid is the slider.
const TALLEST = 190;
// The same heads judged by another metric: the curves of one order and scope.
export const alike = o => D.curve.filter(c => c.id === o.id && c.scope === o.scope && c.healed === o.healed).sort((a, b) => (a.metric === "loss") - (b.metric === "loss"));
// Every role is one path, so that a thousand heads are a few elements.
export function tiles(gone, width, roleOf = i => mainRole(i).role) {
  const wide = Math.max(...D.stacks.map(s => s.heads)), rows = D.stacks.reduce((n, s) => n + s.layers, 0), cell = Math.min(innerWidth >= 1800 ? 15 : 10.5, width / wide, (innerWidth >= 1800 ? 280 : TALLEST) / rows), gap = cell > 5 ? 1.2 : .4, paths = {};
  let top = 0;
  for (const s of D.stacks) {
    for (const h of heads.slice(s.first, s.end)) {
      const key = gone.has(h.i) || absent.has(h.i) ? "gone" : roleOf(h.i);
      (paths[key] ||= []).push(`M${(h.index * cell).toFixed(1)} ${(top + h.layer * cell).toFixed(1)}h${(cell - gap).toFixed(1)}v${(cell - gap).toFixed(1)}h${(gap - cell).toFixed(1)}z`);
    }
    top += s.layers * cell + 6;
  }
  return sv("svg", { width: wide * cell, height: top - 6, "aria-hidden": "true" }, Object.entries(paths).map(([key, d]) => sv("path", { d: d.join(""), class: key === "gone" ? "hole" : `tile r-${key} ${sort(key)}` })));
}
// One strip of sizes: a grid each, and under it quality, time and bytes, all against the whole model.
const stopKey = s => s.step == null ? `left=${s.left}` : `step=${D.strip.order}.${s.step}`;
const isNow = s => S.loose ? S.loose === stopKey(s) : s.step === S.step && (!S.step || alike(D.curve[S.order]).includes(D.curve[D.strip.order]));
function figures(name, cells, at, worth) {
  return cells.some(c => c?.length) && el("tr", {}, el("th", { scope: "row", text: name }), cells.map((c, k) => el("td", { class: at[k] ? "best" : "" }, c?.length ? worth(c, k) : el("span", { class: "note", title: "not measured", text: "–" }))));
}
function grids(best) {
  const { columns, stops } = D.strip, shown = stops.filter(s => s.shown || s.step === best).sort((a, b) => b.left - a.left), box = $("#survivors"), width = Math.max(30, Math.min(110, (box.clientWidth - 96) / shown.length - 14)), framed = shown.map(s => best > 0 && s.step === best);
  const change = (v, spec, lo, hi) => v == null ? "" : el("span", { class: "d", title: lo == null ? null : `95% interval${range(lo, hi, spec)}`, text: num(v, spec) });
  put("#survivors", el("table", { class: "svt" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { class: "vh", text: "What is measured" })), shown.map((s, k) => el("th", { scope: "col", class: framed[k] ? "best" : "" },
    el("button", { class: `sv ${framed[k] ? "best" : ""}`, "aria-pressed": isNow(s), "data-step": s.step, onclick: () => s.step == null ? showWithout(s.gone, stopKey(s)) : setStep(D.strip.order, s.step) }, tiles(new Set(s.gone), width), el("span", {}, s.step === 0 ? "all " : "", el("b", { text: s.left }), s.step === 0 ? "" : " left")))))),
  el("tbody", {}, columns.map((name, j) => figures(name, shown.map(s => s.cells[j]?.some(v => v != null) ? s.cells[j] : null), framed, ([v, d, lo, hi], k) => [v != null && el("b", { text: quality(v) }), v != null && d != null && shown[k].step !== 0 ? " " : "", shown[k].step !== 0 && change(d, "+.2g", lo, hi), shown[k].chance && " at chance"])),
    figures("milliseconds", shown.map(s => s.time), framed, ([ms, , gain, low, high], k) => [el("b", { text: num(ms, ".3g") }), k ? el("span", { class: "d", title: `times as fast; 95% interval${range(1 + low, 1 + high, ".2f")}`, text: low > 0 || high < 0 ? ` ${num(1 + gain, ".2f")}×` : " the same" }) : ""]),
    figures("megabytes", shown.map(s => s.time), framed, ([, mb], k) => [el("b", { text: num(mb, ".3g") }), k ? el("span", { class: "d", text: ` ${num(100 * (mb / stops[0].time[1] - 1), ".0f")}%` }) : ""]))));
  put("#timed", D.times.how ? `Time: a forward of ${D.times.how}, in turns with the whole model.` : "Time and size: not measured in this run; headcount report measures them.");
}
// What can go at so many times the usual tolerance, by the rule of pruning/tolerance.py.
const TIMES = [.25, .5, 1, 2, 4, 8, 16];
let times = 1;
function allowed(b) {
  const o = D.curve[b.order], limit = b.tolerance * times, beyond = o.points.findIndex((p, k) => k > 0 && !((p.bound ?? Infinity) <= limit)), step = times === 1 ? b.step : beyond < 0 ? o.points.length - 1 : beyond - 1;
  return { ...b, o, step, gone: o.points[0].left - o.points[step].left, within: b.within.replace(/^[\d.]+/, n => num(n * times, ".3g")), bound: o.points[Math.max(1, step)]?.bound };
}
const strictest = () => D.go.by.map(allowed).reduce((a, b) => b.gone < a.gone ? b : a);
// The furthest step that is tolerated.
export function reach() {
  if (!D.go || !alike(D.curve[D.go.order]).includes(D.curve[S.order])) return 0;
  const { gone } = strictest(), o = D.curve[S.order];
  return Math.max(0, o.points.findLastIndex(p => o.points[0].left - p.left <= gone));
}
function byMetric(b) {
  const lost = b.bound == null ? "" : b.gone ? `, upper bound of the loss ${num(Math.max(0, b.bound), ".2g")}` : `: the first step could cost ${num(b.bound, ".2g")}`;
  return el("li", { "data-by": b.metric }, el("b", { text: b.gone || "none" }), ` within ${b.within}${lost} (95%, n = ${b.n})`);
}
// The fewest heads that keep nearly all of the task's own metric once they are healed or refitted.
const NEARLY = .97;
function bought() {
  const { columns, stops } = D.strip, j = columns.findIndex(c => /(healed|refitted)$/.test(c) && !c.startsWith("loss")), [metric, way] = (columns[j] || "").split(/ (?=\S+$)/);
  const whole = stops[0].cells.flatMap((c, k) => columns[k].startsWith(metric) && c?.[0] != null ? [c[0]] : []).at(-1), kept = stops.filter(s => s.cells[j]?.[0] != null && s.left < stops[0].left && s.cells[j][0] >= NEARLY * whole).sort((a, b) => a.left - b.left)[0];
  return j >= 0 && kept ? [el("b", { text: `${kept.left} of ${stops[0].left} heads` }), ` keep ${Math.round(100 * kept.cells[j][0] / whole)}% of ${metric} ${way === "healed" ? "after more training" : "once refitted"} (${quality(kept.cells[j][0])} of ${quality(whole)}). `] : [];
}
function canGo() {
  if (!D.go) return;
  const how = D.go.by[0].healed ? "healed" : "untrained", by = D.go.by.map(allowed), least = strictest(), most = by.reduce((a, b) => b.gone > a.gone ? b : a), lead = n => el("b", { text: n ? plural(n, "head") : "No head" });
  put("#answer", bought(), least.gone ? [lead(least.gone), ` can be pruned, ${how}:`] : most.gone ? [`${how === "healed" ? "After more training" : "Without training"}, `, lead(most.gone), ` can be pruned within ${most.within}; within ${least.within} we cannot promise any:`] : [lead(0), ` can be pruned with 95% confidence, ${how}:`]);
  put("#bymetric", by.map(byMetric));
  put("#tolv", by.map(b => b.within).join(", "));
  put("#gonote", `Least important first, by ${D.curve[S.order].id}. Green frame: the last step within the tolerance. Small: the difference to all heads. Choose a grid to empty the pruned heads below.`);
}
const drawGo = () => { canGo(); grids(reach()); };
view(() => {
  if (($("#go").hidden = !D.strip)) return;
  $("#cango").hidden = !D.go;
  when("#tolerance", "input", e => { times = TIMES[e.target.value]; drawGo(); e.target.setAttribute("aria-valuetext", $("#tolv").textContent); emit("tolerance"); });
  put("#trsaid", D.strip.said.map(text => el("li", { text }))); put("#trnote", D.strip.note);
  drawGo(); on("size step", drawGo);
});
