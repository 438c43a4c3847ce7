import { $, command, el } from "./dom.js";
import { D, heads, present, verdicts } from "./data.js";
import { saveCsv } from "./save.js";
// Enough to run it again, and what was not measured.
function headTable() {
  const own = D.columns.filter(c => !c.of), wide = own.flatMap(c => [[c.id, c.values], ...(c.lo ? [[`${c.id}_low`, c.lo], [`${c.id}_high`, c.hi]] : []), ...(c.p ? [[`${c.id}_p${c.corrected ? "_adjusted" : ""}`, c.p]] : [])]);
  return [["head", "roles", ...wide.map(w => w[0])], ...present.map(h => [h.id, [...new Set(verdicts(h.i).map(v => v.role))].join(" "), ...wide.map(w => w[1][h.i])])];
}
export function provenance() {
  $("#provenance").replaceChildren(el("h2", { id: "vh", text: "Where the numbers come from" }), el("p", { class: "sub", text: "Enough to run it again." }),
    ...D.commands.map(c => el("code", { class: "cmd", text: c })), el("dl", { class: "prov" }, D.provenance.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: value })))),
    D.missing.length ? el("h3", { class: "gap", text: "Not measured in this run" }) : "", el("ul", { class: "missing" }, D.missing.map(([, title, how]) => el("li", { class: "ph" }, el("b", { text: title }), " ", command(how)))));
  $("#csv").addEventListener("click", () => saveCsv(headTable(), "heads"));
}
