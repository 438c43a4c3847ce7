import { $, el, num, put, sv } from "./dom.js";
import { D, absent, heads, kinds, mainRole, sort } from "./data.js";
import { S, on, setStep, view } from "./state.js";
// Who is left: one small grid a step in the colours of roles; a grid is the slider.
const GRIDS = 7, TALLEST = 190;
// The same heads judged by another metric: the curves of one order and scope.
export const alike = o => D.curve.filter(c => c.id === o.id && c.scope === o.scope && c.healed === o.healed).sort((a, b) => (a.metric === "loss") - (b.metric === "loss"));
function steps(o, best) {
  const last = o.points.length - 1, wanted = [0, best, last], n = Math.min(GRIDS, last + 1);
  for (let k = 1; wanted.length < n + 1 && k < n; k++) wanted.push(Math.round(k * last / (n - 1)));
  return [...new Set(wanted)].sort((a, b) => a - b);
}
// Every role is one path, so that a thousand heads are a few elements.
function tiles(gone, width) {
  const wide = Math.max(...D.stacks.map(s => s.heads)), rows = D.stacks.reduce((n, s) => n + s.layers, 0), cell = Math.min(10.5, width / wide, TALLEST / rows), gap = cell > 5 ? 1.2 : .4, paths = {};
  let top = 0;
  for (const s of D.stacks) {
    for (const h of heads.slice(s.first, s.end)) {
      const key = gone.has(h.i) || absent.has(h.i) ? "gone" : mainRole(h.i).role;
      (paths[key] ||= []).push(`M${(h.index * cell).toFixed(1)} ${(top + h.layer * cell).toFixed(1)}h${(cell - gap).toFixed(1)}v${(cell - gap).toFixed(1)}h${(gap - cell).toFixed(1)}z`);
    }
    top += s.layers * cell + 6;
  }
  return sv("svg", { width: wide * cell, height: top - 6, "aria-hidden": "true" }, Object.entries(paths).map(([key, d]) => sv("path", { d: d.join(""), class: key === "gone" ? "hole" : `tile r-${key} ${sort(key)}` })));
}
function grids(best) {
  const o = D.curve[S.order], shown = steps(o, best), box = $("#survivors"), width = Math.max(44, Math.min(120, box.clientWidth / shown.length - 18)), curves = alike(o);
  box.style.setProperty("--n", shown.length);
  put("#survivors", shown.map(k => {
    const p = o.points[k], gone = new Set(o.points.slice(0, k + 1).flatMap(q => q.gone)), value = c => { const q = c.points.find(r => r.left === p.left); return q?.value == null ? null : [q, c]; };
    const lines = curves.map(value).filter(Boolean).map(([q, c], j) => [el("br"), `${c.metric} ${num(q.value, ".3g")}`, !j && [el("br"), el("span", { class: "d", text: k && q.delta != null ? `${num(q.delta, "+.2g")}` : "\u00a0" })]]);
    return el("button", { class: `sv ${k === best ? "best" : ""}`, "aria-pressed": k === S.step, "data-step": k, onclick: () => setStep(S.order, k) }, tiles(gone, width), el("span", {}, el("b", { text: k ? p.left : `all ${p.left}` }), k ? " left" : "", lines));
  }));
}
// The furthest step that stays within what is tolerated.
export const reach = () => D.go?.order === S.order ? D.go.step : 0;
const drawGrids = () => grids(reach());
view(() => {
  $("#go").hidden = !D.curve?.length;
  if (!D.curve?.length) return;
  drawGrids(); on("size step", drawGrids);
});
