import { $, el, num, plural, put, sv } from "./dom.js";
import { D, heads } from "./data.js";
import { drawing, ticks, words } from "./chart.js";
import { showWithout, view } from "./state.js";
import { roleChip } from "./glyph.js";
import { tables } from "./save.js";
// Whole jobs taken away: what all heads of a job cost together, beside as many other heads of their layers.
const SETS = D.jobs || [], ANSWERS = { more: "more", less: "less" };
const likely = nats => nats < Math.LN2 ? `${Math.round(100 * (1 - Math.exp(-nats)))}%` : `${num(Math.exp(nats), nats < 2.3 ? ".2g" : ".0f")} times`;
const OF = D.examples.ablation?.of || D.examples.gradient?.of || "", inNats = r => r.metric === "loss" && OF;
const setAmount = (r, v) => inNats(r) ? likely(Math.max(0, v)) : num(v, "+.2g");
function setLane(r, x, w) {
  const at = v => x(v).toFixed(1), name = `${r.title}, ${plural(r.heads, "head")}: ${num(r.added, "+.3g")}, 95% interval ${num(r.lo, "+.3g")} to ${num(r.hi, "+.3g")}; ${r.draws ? `others ${num(r.control, "+.3g")}` : r.note}`;
  return drawing(w, 26, name, sv("path", { class: "axis", d: `M0 13H${w}` }),
    r.draws && [sv("path", { class: "others", d: `M${at(r.least)} 13H${at(r.most)}` }), sv("circle", { class: "other", cx: at(r.control), cy: 13, r: 3.4 })],
    sv("path", { class: `sure r-${r.role || "joint"}`, d: `M${at(r.lo)} 13H${at(r.hi)}` }), sv("circle", { class: `sum r-${r.role || "joint"}`, cx: at(r.added), cy: 13, r: 6.5 }));
}
// A knock-out counts every verdict of a role, not only the first of each head.
function counted(chip, n) { chip.lastChild.textContent = n; return chip; }
function setRow(r, x, w) {
  const name = r.role && D.roles ? counted(roleChip(r.role), r.heads) : el("span", { class: "joint" }, r.title, el("i", { text: ` ${r.heads}` }));
  const told = el("span", { class: "told" }, el("b", { text: setAmount(r, r.added) }), inNats(r) && " less likely", el("span", { class: "note", title: r.note, text: r.draws ? `, ${ANSWERS[r.answer] || "not clearly more"} than others (${setAmount(r, r.control)})` : `; ${r.note.split(":")[0]}` }));
  return el("div", { class: "tr", "data-set": r.set }, name, setLane(r, x, w), told, el("button", { class: "btn tiny", text: "show", "aria-label": `Show the grid without ${r.title.toLowerCase()}`, onclick: () => { showWithout(r.members, `set=${r.set}`); $("#inst").scrollIntoView({ block: "start" }); } }));
}
view(() => {
  if (($("#together").hidden = !SETS.length)) return;
  const narrow = innerWidth <= 640, w = Math.max(120, $("#sets").clientWidth - (narrow ? 0 : 616)), all = SETS.flatMap(r => [r.added, r.lo, r.hi, r.least, r.most, 0]).filter(v => v != null), [a, b] = [Math.min(...all), Math.max(...all)], x = v => 9 + (w - 18) * (v - a) / (b - a || 1), loss = inNats(SETS[0]);
  put("#sets", SETS.map(r => setRow(r, x, w)), el("div", { class: "tr axisrow" }, el("span"), drawing(w, 18, `${num(a)} to ${num(b)}`, ticks(a, b, 6).map(v => [sv("path", { class: "tick", d: `M${x(v).toFixed(1)} 0v4` }), words(x(v), 15, num(v, v ? "+.3g" : ".3g"), "middle")]))));
  put("#togethernote", `${loss ? `Added loss in nats; at the right, how much less likely ${OF} becomes` : SETS[0].metric === "loss" ? "Added loss" : `${SETS[0].metric} lost`}. Dot and line: all heads of a job switched off together, with the 95% interval. Grey: as many other heads of the same layers, ${plural(SETS.find(r => r.draws)?.draws || 0, "draw")}. n = ${SETS[0].n}.`);
}, "size theme");
tables.together = () => [["set", "heads", "added", "low", "high", "others", "others least", "others most", "answer"], ...SETS.map(r => [r.set, r.members.map(i => heads[i].id).join(" "), r.added, r.lo, r.hi, r.control, r.least, r.most, r.answer])];
