import { $, el, num, pval, range, sv, unmeasured } from "./dom.js";
import { D, absent, cols, heads, kinds, missing, show, verdicts } from "./data.js";
import { S, on, select, setStep } from "./state.js";
import { sign } from "./glyph.js";
// Who this head is, in a sentence with its evidence; and what happens when it is removed.
function step(d) { let i = S.head; do i = (i + d + heads.length) % heads.length; while (absent.has(i)); select(i); }
const rule = v => [`${kinds.get(v.role).title}: ${kinds.get(v.role).meaning}`, v.n && `n = ${v.n}`, v.p_adjusted != null && `${pval(v.p_adjusted)} after correction`].filter(Boolean).join("; ");

function header() {
  const i = S.head, own = verdicts(i), names = [...new Set(own.map(v => v.role))];
  const words = D.words.filter(w => w.values[i]).map(w => `${w.title}: ${w.values[i]}`).join(" · ");
  const said = own.length ? own.slice(0, 4).map(v => el("li", { title: rule(v) }, el("b", { text: v.detail }), v.n && ` (n = ${v.n})`, v.control != null && `, random twin ${num(v.control)}`))
    : [D.roles ? el("li", { text: "None of the tests fired: nothing it does is above its baseline." }) : el("li", { class: "ph" }, el("span", { class: "tag", text: "roles not judged" }))];
  $("#dh").replaceChildren(el("h2", { class: "big", id: "big", text: heads[i].id }),
    el("div", { class: "who" }, el("p", { class: "role" }, names.length ? names.map(r => el("span", {}, sign(r, own.find(v => v.role === r).dir), kinds.get(r).title)) : el("span", {}, sign("none"), D.roles ? "No role found" : "Role not known")),
      el("ul", { class: "ev" }, said, own.length > 4 && el("li", { text: `and ${own.length - 4} more`, title: own.slice(4).map(v => v.detail).join("\n") })), words && el("p", { class: "note", text: words })),
    el("div", { class: "seg" }, [["‹", "previous", -1], ["›", "next", 1]].map(([text, name, d]) => el("button", { class: "btn", "aria-label": `${name} head`, text, onclick: () => step(d) }))));
}
function alone() {
  const c = cols.get("ablation"), i = S.head, about = D.examples.ablation;
  if (c?.values[i] == null) return unmeasured("What it costs to shut this head alone.", missing("ablation")?.[2]);
  const verdict = c.p?.[i] == null ? "" : c.values[i] > 0 && c.p[i] < .05 ? "It matters" : c.values[i] < 0 && c.p[i] < .05 ? "The model does better without it" : "No measurable cost";
  return el("p", {}, el("b", { text: verdict ? `${verdict}. ` : "" }), `Shut alone, it ${c.values[i] < 0 ? "saves" : "costs"} `, el("b", { "data-cost": true, text: show(c, i) }), range(c.lo?.[i], c.hi?.[i], c.fmt), ` ${about?.metric || c.unit}`, c.p && `, ${pval(c.p[i])}${c.corrected ? " after correction" : ""}`, `; rank ${c.rank[i]} of ${c.known}${about ? `; n = ${about.n}` : ""}.`);
}
function spark(o, k) {
  const w = 150, h = 34, known = o.points.filter(p => p.value != null), v = known.map(p => p.value), a = Math.min(...v), b = Math.max(...v), n = o.points[0].left;
  const x = p => 4 + (w - 8) * (n - p.left) / n, y = p => 4 + (h - 8) * (1 - (p.value - a) / (b - a || 1));
  return sv("svg", { width: w, height: h, role: "img", "aria-label": "quality along the pruning curve" }, sv("polyline", { points: known.map(p => `${x(p).toFixed(1)},${y(p).toFixed(1)}`).join(" "), class: "curve thin" }), o.points[k].value != null && sv("circle", { cx: x(o.points[k]), cy: y(o.points[k]), r: 4, class: "dot" }));
}
function together() {
  if (!D.curve?.length) return unmeasured("When it goes as heads are removed together.", missing("curve")?.[2]);
  const o = D.curve[S.order], k = o.points.findIndex(p => p.gone.includes(S.head)), kept = o.points.at(-1);
  if (k < 0) return el("p", {}, el("b", { text: "It stays. " }), `In the order of ${o.id} it is still there when ${kept.left} heads are left.`);
  const p = o.points[k];
  return el("div", { class: "goes" }, spark(o, k), el("p", {}, `In the order of ${o.id} it goes at step ${k}, which leaves ${p.left} heads: ${o.metric} ${num(p.value, ".3g")}`, p.delta != null && ` (${num(p.delta, "+.2g")}${range(p.delta_low, p.delta_high, "+.2g")} against the whole model)`, ". ", el("button", { class: "inline", text: "Go to that step", onclick: () => setStep(S.order, k) })));
}
const removal = () => $("#removed").replaceChildren(alone(), together());
export function dossier() { header(); removal(); on("head", () => { header(); removal(); }); on("step", removal); }
