import { $, el, num, option, plural, put, sv, when } from "./dom.js";
import { D, heads, kinds, mainRole, sort } from "./data.js";
import { headChart, words } from "./chart.js";
import { mark, view } from "./state.js";
import { tables } from "./save.js";
// Which word needs which head: a row a head, a column a word, a square how much less likely the word becomes without the head.
const LESIONS = D.lesions || [], LESION_CELL = 22, FULL_CELL = 1.5, LEAST_NEED = .24, SAID_NEED = .47, MOST_ROWS = 26;
let lesionAt = 0;
const lessBy = nats => `÷${num(Math.exp(nats), nats < 2.3 ? ".2g" : ".0f")}`;
const needs = l => l.heads.map((i, k) => ({ i, k, most: Math.max(...l.added[k]) })).filter(h => h.most >= LEAST_NEED).sort((a, b) => b.most - a.most).slice(0, MOST_ROWS);
function byRole(list) {
  const order = D.kinds.map(k => k.id), rank = h => order.indexOf(mainRole(h.i).role) + (sort(mainRole(h.i).role) === "rests" ? 100 : mainRole(h.i).role === "none" ? 50 : 0);
  return [...list].sort((a, b) => rank(a) - rank(b) || b.most - a.most);
}
export function lesionPicture(l, width) {
  const rows = byRole(needs(l)), left = innerWidth <= 640 ? 78 : 190, top = 84, step = Math.max(26, Math.min(62, (width - left - 40) / l.words.length)), tall = top + rows.length * LESION_CELL + 8;
  const column = k => left + (k + .5) * step, size = v => Math.sqrt(Math.min(1, v / FULL_CELL)) * (LESION_CELL - 4);
  return headChart(Math.max(width, left + step * l.words.length + 40), tall, `${plural(rows.length, "head")} without which a word becomes less likely`,
    l.words.map((w, k) => sv("text", { transform: `translate(${column(k) - 4} ${top - 8}) rotate(-40)`, class: "ink", text: w })),
    rows.map((h, r) => {
      const y = top + (r + .5) * LESION_CELL, role = mainRole(h.i).role, first = !r || mainRole(rows[r - 1].i).role !== role;
      return [first && sv("path", { class: "axis", d: `M0 ${y - LESION_CELL / 2}H${left + step * l.words.length}` }), first && left > 100 && sv("g", { class: `r-${role}` }, sv("text", { x: 0, y: y + 4, class: "of", text: kinds.get(role)?.title || role })),
        mark(h.i, sv("g", { class: `pt r-${role}`, role: "img", "aria-label": `${heads[h.i].id}: ${l.words.map((w, k) => l.added[h.k][k] >= SAID_NEED && `${w} ${lessBy(l.added[h.k][k])}`).filter(Boolean).join(", ") || "little"}` },
          sv("rect", { x: left - 76, y: y - LESION_CELL / 2, width: step * l.words.length + 76, height: LESION_CELL, class: "hit" }), words(left - 10, y + 4, heads[h.i].id, "end", "name small"),
          l.words.map((_, k) => { const v = l.added[h.k][k], s = size(Math.max(0, v)); return v > .06 && [sv("rect", { class: "need", x: column(k) - s / 2, y: y - s / 2, width: s, height: s }), v >= SAID_NEED && words(column(k) + s / 2 + 3, y + 4, lessBy(v))]; })))];
    }));
}
function drawLesions() {
  const l = LESIONS[lesionAt], box = $("#lesionbox");
  put("#lesionbox", lesionPicture(l, box.clientWidth));
  const rows = needs(l), best = rows[0], k = best && l.added[best.k].indexOf(best.most), corpus = rows.flatMap(h => (D.causes || []).filter(c => c.head === h.i)).slice(0, 4);
  put("#lesionsaid", best ? [el("b", { text: heads[best.i].id }), `: without it “${l.words[k]}” is ${num(Math.exp(best.most), ".2g")} times less likely here. ${corpus.length ? "Over the corpus: " : "One sentence is an anecdote; “If it is removed” below has each head’s cost over the corpus."}`, corpus.map(c => [el("b", { text: heads[c.head].id }), ` ${c.said} `])] : "Without any single head, no word of this sentence becomes clearly less likely: other heads make up for it.");
  put("#lesionnote", `${l.target ? `${l.source} → ${l.target}` : l.source} Each row: one head switched off. Square: how much less likely its word becomes; a full cell is ${FULL_CELL} nats, ${num(Math.exp(FULL_CELL), ".2g")} times. ${rows.length} of ${l.heads.length} heads shown: some word at least ${num(Math.exp(LEAST_NEED), ".3g")} times less likely.`);
}
view(() => {
  if (($("#lesions").hidden = !LESIONS.length)) return;
  $("#lesionof").hidden = LESIONS.length < 2;
  put("#lesionof", LESIONS.map((l, k) => option(k, l.target || l.source)));
  when("#lesionof", "change", e => { lesionAt = +e.target.value; drawLesions(); });
  drawLesions();
}, "size");
if (LESIONS.length) tables.lesions = () => [["head", ...LESIONS[lesionAt].words], ...LESIONS[lesionAt].heads.map((i, k) => [heads[i].id, ...LESIONS[lesionAt].added[k]])];
