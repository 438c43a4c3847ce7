import { $, command, el, num, plural, range } from "./dom.js";
import { D, missing, present, roleCount, verdicts } from "./data.js";
import { roleChip } from "./glyph.js";
import { setStep } from "./state.js";
// The finding is the title; beside it how many heads there are, have a role, matter, and could go.
const fact = (n, small, ...rest) => el("div", { class: "fig" }, el("div", { class: "n" }, n, small && el("small", { text: small })), ...rest);
const note = text => el("p", { text });
const unknown = (small, id) => fact(el("span", { class: "ph", text: "?" }), small, el("span", { class: "tag", text: "not measured" }), el("p", {}, command(missing(id)?.[2])));

function sizes() {
  const each = new Set(D.stacks.map(s => `${s.layers} layers × ${s.heads} heads`)), ids = D.stacks.map(s => s.id).join(", ");
  return (each.size > 1 ? D.stacks.map(s => `${s.id} ${s.layers} × ${s.heads}`).join(", ") : `${D.stacks.length > 1 ? ids + ": each " : ""}${[...each]}`) + (D.absent.length ? `; ${D.absent.length} were removed before` : "");
}
function costs() {
  if (!D.costly) return unknown("matter alone", "ablation");
  const about = D.examples.ablation, n = about ? `, ${plural(about.n, "example")}` : "", c = D.columns.find(c => c.id === "ablation"), known = c.p.filter(p => p != null).length;
  return fact(String(D.costly.length), D.costly.length === 1 ? "matters alone" : "matter alone", note(`Shut one at a time, ${known - D.costly.length} of ${known} have no measurable cost in ${about?.metric || "quality"} (${c.corrected ? "" : "not "}corrected for all heads${n}).`));
}
function going() {
  if (!D.go) return unknown("could go", "curve");
  const o = D.curve[D.go.order], none = !D.go.gone && o.points.length > 1, p = o.points[none ? 1 : D.go.step];
  const change = p.delta == null ? "" : ` (${num(p.delta, "+.2g")}${range(p.delta_low, p.delta_high, "+.2g")})`;
  const felt = p.p == null && p.delta_low == null ? "The first step was not tested, in" : "The first step is felt already, in";
  return fact(String(D.go.gone), "could go", note(`${none ? felt : "In"} the order of ${o.id}: ${o.metric} ${num(p.value, ".3g")} with ${plural(p.left, "head")}${change}${o.n ? `, n = ${o.n}` : ""}.`),
    el("button", { class: "btn", text: "Show what is left", onclick: () => { setStep(D.go.order, D.go.step); $("#pruning").scrollIntoView({ block: "start" }); } }));
}
export function headline() {
  const [before, after] = D.headline, named = present.filter(h => verdicts(h.i).length).length;
  $("#model").textContent = D.model;
  $("#made").textContent = (D.provenance.find(p => p[0] === "Texts") || ["", ""])[1];
  $("#title").replaceChildren(before, el("span", { class: "keep", text: D.model }), after);
  const list = D.kinds.map(k => k.id).filter(r => r !== "none" && roleCount(r));
  $("#figs").replaceChildren(
    fact(String(D.count), D.count === 1 ? "head" : "heads", note(sizes())),
    D.roles ? fact(String(named), "with a role", el("div", { class: "chips" }, list.map(roleChip))) : unknown("with a role", "roles"),
    costs(), going());
  if (D.roles) $("#chips").replaceChildren(...(roleCount("none") ? [...list, "none"] : list).map(roleChip));
  const own = D.exhibits.filter(e => e.own).length;
  $("#own").hidden = !own;
  $("#own").textContent = `This page contains text from your corpus (${plural(own, "exhibit")}). To pass it on without, write it with --no-exhibits.`;
}
