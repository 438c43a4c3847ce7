import { el, num, pval, put, range, when } from "./dom.js";
import { D, absent, cols, heads, kinds, matters, rolesOf, show, tag, unmeasured, verdicts } from "./data.js";
import { S, select, setStep, view } from "./state.js";
import { sign } from "./glyph.js";
// Who this head is, with its evidence; and what happens when it is removed.
const EVIDENCE = 4;
function turn(d) { let i = S.head; do i = (i + d + heads.length) % heads.length; while (absent.has(i)); select(i); }
const rule = v => [`${kinds.get(v.role).title}: ${kinds.get(v.role).meaning}`, v.n && `n = ${v.n}`, v.p_adjusted != null && `${pval(v.p_adjusted)} after correction`].filter(Boolean).join("; ");
function evidence(own) {
  if (!D.roles) return el("li", { class: "ph" }, tag("roles not judged"));
  if (!own.length) return el("li", { text: D.misses[S.head] ? `Nearest: ${D.misses[S.head]}.` : "No rule could be asked of it." });
  const rest = own.slice(EVIDENCE).map(v => v.detail);
  return [own.slice(0, EVIDENCE).map(v => el("li", { title: rule(v) }, el("b", { text: v.detail }), v.n && ` (n = ${v.n})`, v.control != null && `; a random model ${num(v.control)}`)),
    rest.length > 0 && el("li", { text: `and ${rest.length} more`, title: rest.join("\n") })];
}
function header() {
  const i = S.head, own = verdicts(i), told = D.words.filter(w => w.values[i]).map(w => `${w.title}: ${w.values[i]}`).join(" · ");
  const named = rolesOf(i).map(r => el("span", {}, sign(r, own.find(v => v.role === r).dir), kinds.get(r).title, el("small", { text: kinds.get(r).meaning })));
  put("#dh", el("h2", { class: "big", id: "big", text: heads[i].id }),
    el("div", { class: "who" }, el("p", { class: "role" }, named.length ? named : el("span", {}, sign("none"), D.roles ? "No role found" : "Role not known")), el("ul", { class: "ev" }, evidence(own)), told && el("p", { class: "note", text: told })));
}
// By every metric that it was switched off for: the loss for all heads, the task's own metric for some.
function single() {
  const i = S.head, own = [...cols.values()].filter(c => /^ablation/.test(c.id) && c.values[i] != null);
  return own.length ? own.map(c => cost(c, i)) : unmeasured("ablation", "What it costs to switch it off.");
}
function cost(c, i) {
  const v = c.values[i], p = c.p?.[i], about = D.examples[c.id], by = c.unit || about?.metric || "quality", told = c.id === "ablation" ? matters(i) : v > 0 && p < .05;
  const verdict = p == null ? `By ${by}: ` : told ? `By ${by} it matters. ` : p >= .05 || !v ? `By ${by} its cost is not significant after correction. ` : `By ${by} the model does better without it. `;
  const tail = [c.p && `${pval(p)}${c.corrected ? ` after correction for ${c.known === D.count ? "all" : `the ${c.known}`} heads${c.known === D.count ? "" : " that were tried"}` : ""}`, c.known === D.count && `rank ${c.rank[i]} of ${c.known}`, about && `n = ${about.n}`].filter(Boolean).join("; ");
  return el("p", {}, el("b", { text: verdict }), `Switched off alone, it ${/loss/.test(by) ? "adds" : "costs"} `, el("b", { "data-cost": c.id, text: show(c, i) }), `${range(c.lo?.[i], c.hi?.[i], c.fmt)} ${by}; ${tail}.`);
}
function together() {
  if (!D.curve?.length) return unmeasured("curve", "When it is removed as heads are pruned together.");
  const o = D.curve[S.order], k = o.points.findIndex(p => p.gone.includes(S.head)), p = o.points[k];
  if (!p) return el("p", {}, el("b", { text: "It stays. " }), `In the order of ${o.id} it is among the last ${o.points.at(-1).left} heads.`);
  const change = p.delta == null ? "" : ` (${num(p.delta, "+.2g")}${range(p.delta_low, p.delta_high, "+.2g")} against the whole model)`;
  return el("p", {}, `In the order of ${o.id} it is removed at step ${k}, which leaves ${p.left} heads: ${o.metric} ${num(p.value, ".3g")}${change}. `, el("button", { class: "inline", text: "Go to that step", onclick: () => setStep(S.order, k) }));
}
when("#before", "click", () => turn(-1));
when("#after", "click", () => turn(1));
view(header, "head");
view(() => put("#removed", single(), together()), "head step");
