import { $, el, num, plural, put, quality, range, sv, when } from "./dom.js";
import { D, absent, heads, kinds, mainRole, sort } from "./data.js";
import { S, emit, on, setStep, showWithout, view } from "./state.js";
// Who is left: one small grid a step in the colours of roles; a grid is the slider.
const GRIDS = 7, TALLEST = 190;
// The same heads judged by another metric: the curves of one order and scope.
export const alike = o => D.curve.filter(c => c.id === o.id && c.scope === o.scope && c.healed === o.healed).sort((a, b) => (a.metric === "loss") - (b.metric === "loss"));
function steps(o, best) {
  // those that every metric judged, where there are enough of them
  const all = [...o.points.keys()], shared = all.filter(k => alike(o).every(c => c.points.some(p => p.left === o.points[k].left))), from = shared.length > 4 ? shared : all, n = Math.min(GRIDS, from.length);
  return [...new Set([best, ...Array.from({ length: n }, (_, k) => from[Math.round(k * (from.length - 1) / Math.max(1, n - 1))])])].sort((a, b) => a - b);
}
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
function grids(best) {
  const o = D.curve[S.order], shown = steps(o, best), box = $("#survivors"), width = Math.max(44, Math.min(150, box.clientWidth / shown.length - 18)), curves = alike(o);
  box.style.setProperty("--n", shown.length);
  put("#survivors", shown.map(k => {
    const p = o.points[k], gone = new Set(o.points.slice(0, k + 1).flatMap(q => q.gone)), value = c => { const q = c.points.find(r => r.left === p.left); return q?.value == null ? null : [q, c]; };
    const lines = curves.map(value).filter(Boolean).map(([q, c], j) => [el("br"), `${c.metric} ${quality(q.value)}`, !j && [el("br"), el("span", { class: "d", text: k && q.delta != null ? `${num(q.delta, "+.2g")}${q.chance ? ", at chance" : ""}` : "\u00a0" })]]);
    return el("button", { class: `sv ${k === best ? "best" : ""}`, "aria-pressed": !S.loose && k === S.step, "data-step": k, onclick: () => setStep(S.order, k) }, tiles(gone, width), el("span", {}, el("b", { text: k ? p.left : `all ${p.left}` }), k ? " left" : "", lines));
  }));
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
  return el("li", { "data-by": b.metric, title: b.sentence }, el("b", { text: b.gone || "none" }), ` within ${b.within}${lost} (95 %, n = ${b.n})`);
}
function canGo() {
  if (!D.go) return;
  const by = D.go.by.map(allowed), least = strictest();
  put("#answer", el("b", { text: least.gone ? plural(least.gone, "head") : "No head" }), least.gone ? " can be pruned, untrained:" : " can be pruned with 95 % confidence, untrained:");
  put("#bymetric", by.map(byMetric));
  put("#tolv", by.map(b => b.within).join(", "));
  put("#gonote", `Least important first, by ${D.curve[S.order].id}. Green frame: the last step within the tolerance. Choose a grid to empty the pruned heads below.`);
}
function trained(t) {
  const cell = ([value, delta, low, high]) => el("td", {}, el("b", { text: quality(value) }), delta == null ? "" : ` ${num(delta, "+.2g")}${range(low, high, "+.2g")}`);
  const row = r => el("tr", {}, el("td", {}, el("button", { class: "inline", text: `${r.left} left`, onclick: () => showWithout(r.gone) })), r.cells.map(cell));
  put("#trh", t.title); put("#trnote", t.note); put("#trsaid", t.said.map(text => el("li", { text })));
  put("#trtable", el("thead", {}, el("tr", {}, ["heads", ...t.columns].map(text => el("th", { scope: "col", text })))), el("tbody", {}, t.rows.map(row)));
}
const drawGo = () => { canGo(); grids(reach()); };
view(() => {
  if (($("#go").hidden = !D.curve?.length)) return;
  $("#cango").hidden = !D.go;
  when("#tolerance", "input", e => { times = TIMES[e.target.value]; drawGo(); e.target.setAttribute("aria-valuetext", $("#tolv").textContent); emit("tolerance"); });
  $("#trained").hidden = !D.trained;
  if (D.trained) trained(D.trained);
  drawGo(); on("size step", drawGo);
});
