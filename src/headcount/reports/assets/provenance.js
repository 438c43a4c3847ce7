import { $, el, put } from "./dom.js";
import { D, command } from "./data.js";
import { view } from "./state.js";
// Enough to run it again, and what was not measured.
view(() => {
  put("#commands", D.commands.map(text => el("code", { class: "cmd", text })));
  put("#prov", D.provenance.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }))));
  put("#missing", D.missing.map(([, title, how]) => el("li", { class: "ph" }, el("b", { text: title }), " ", command(how))));
  $("#gaps").hidden = !D.missing.length;
});
