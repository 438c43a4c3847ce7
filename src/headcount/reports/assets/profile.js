import { $, el, num, pct, put, sv } from "./dom.js";
import { D, stackOf } from "./data.js";
import { drawing, words } from "./chart.js";
import { view } from "./state.js";
// A layer at a time: small lines of what its heads are on the average, stack by stack.
const LOW = 52, lineWidth = () => Math.max(150, Math.min(330, ($("#profiles").clientWidth - 160) / D.stacks.length - 24)), said = (v, fmt) => fmt === "%" ? pct(v) : num(v, fmt);
function small({ title, fmt, stacks }, id, low, high) {
  const LINE = lineWidth(), values = stacks[id], n = values.length, x = k => 8 + (LINE - 16) * (n > 1 ? k / (n - 1) : .5), y = v => LOW - 4 - (LOW - 20) * (v - low) / (high - low || 1);
  const known = values.map((v, k) => [k, v]).filter(([, v]) => v != null), most = known.reduce((a, b) => b[1] > a[1] ? b : a), name = `${title}, ${stackOf(id).title}: ${known.map(([k, v]) => `layer ${k} ${said(v, fmt)}`).join(", ")}`;
  return drawing(LINE, LOW + 12, name, sv("path", { class: "axis", d: `M8 ${y(low)}H${LINE - 8}` }), sv("polyline", { class: "curve thin", points: known.map(([k, v]) => `${x(k).toFixed(1)},${y(v).toFixed(1)}`).join(" ") }),
    known.map(([k, v]) => sv("circle", { cx: x(k), cy: y(v), r: k === most[0] ? 3 : 1.8, class: "knot" }, sv("title", { text: `layer ${k}: ${said(v, fmt)}` }))),
    words(x(most[0]), y(most[1]) - 6, said(most[1], fmt), most[0] > n * .7 ? "end" : most[0] < n * .3 ? "start" : "middle", "ink"), words(8, LOW + 9, "0"), words(LINE - 8, LOW + 9, `layer ${n - 1}`, "end"));
}
view(() => {
  $("#profile").closest("details").hidden = !D.profile.length || D.stacks.every(s => s.layers < 2);
  put("#profiles", el("table", { class: "prof" }, el("thead", {}, el("tr", {}, el("td"), D.stacks.map(s => el("th", { scope: "col", text: s.title })))), el("tbody", {}, D.profile.map(m => {
    const all = Object.values(m.stacks).flat().filter(v => v != null), low = Math.min(0, ...all), high = Math.max(...all);
    return el("tr", {}, el("th", { scope: "row", text: m.title }), D.stacks.map(s => el("td", {}, m.stacks[s.id] ? small(m, s.id, low, high) : el("span", { class: "note", text: "not measured" }))));
  }))));
}, "size");
