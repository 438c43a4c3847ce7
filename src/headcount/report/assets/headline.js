import { $, el, put } from "./dom.js";
import { D, command, roleCount, tag } from "./data.js";
import { roleChip } from "./glyph.js";
import { setStep, view } from "./state.js";
// The finding is the title; beside it how many heads there are, have a role, matter, and could go.
function showLeft() { setStep(D.go.order, D.go.step); $("#pruning").scrollIntoView({ block: "start" }); }
const figure = (f, chips) => el("div", { class: "fig" },
  el("div", { class: "n" }, f.n == null ? el("span", { class: "ph", text: "?" }) : f.n, el("small", { text: f.of })),
  f.n == null && tag("not measured"), f.how && el("p", {}, command(f.how)), f.note && el("p", { text: f.note }),
  f.id === "roles" && el("div", { class: "chips" }, chips.map(roleChip)),
  f.id === "go" && el("button", { class: "btn", text: "Show what is left", onclick: showLeft }));
view(() => {
  const [before, after] = D.headline, found = D.kinds.map(k => k.id).filter(r => r !== "none" && roleCount(r));
  put("#model", D.model);
  put("#made", (D.provenance.find(p => p[0] === "Texts") || ["", ""])[1]);
  put("#title", before, el("span", { class: "keep", text: D.model }), after);
  put("#figs", D.facts.map(f => figure(f, D.roles ? found : [])));
  if (D.roles) put("#chips", (roleCount("none") ? [...found, "none"] : found).map(roleChip));
  $("#own").hidden = !D.exhibits.some(e => e.own);
});
