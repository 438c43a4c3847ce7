import { argmax } from "./dom.js";
import { D, heads, kinds, verdicts } from "./data.js";
import { hasMap, mapOf, sides } from "./maps.js";
// What a verdict expects of a sentence, and whether the head does it here.
const SAID = { "dep->head": "from the dependent to its head", "head->dep": "from the head to the dependent", "head<-dep": "the head looks most at it" };
const piecesOf = (text, word) => (text.words || []).flatMap((w, t) => w === word ? [t] : []);
// [{ rows, cols }, ...] of tokens: who asks, and who should answer.
function expected(v, i, ex) {
  const shows = kinds.get(v.role).shows, followed = shows === "followed";
  const { arcs, links, sides: by } = D.exhibits[ex], stack = heads[i].stack, [asks, answers] = sides(i, ex), own = by[stack][0] === by[stack][1], places = asks.tokens.map((_, t) => t);
  const special = new Set(asks.special), earlier = t => special.has(t) || !/\p{L}/u.test(asks.tokens[t]) ? -1 : asks.tokens.lastIndexOf(asks.tokens[t], t - 1), there = (r, c) => c >= 0 && c < answers.tokens.length ? [{ rows: [r], cols: [c] }] : [];
  if (shows === "arcs" && own) {
    const [, relation, way] = /^(.*) (\S+)$/.exec(v.label) || [], found = arcs.filter(a => a[0] === by[stack][0] && (a[1] === relation || a[1].split(":")[0] === relation));
    const pairs = found.map(([, , child, head]) => way === "dep->head" ? [child, head] : [head, child]).filter(([r, c]) => stack !== "dec" || c < r);
    return { what: `${relation} arc`, how: SAID[way], inWords: true, column: way === "head<-dep", pairs: pairs.map(([r, c]) => ({ rows: piecesOf(asks, r), cols: piecesOf(answers, c) })) };
  }
  if (shows === "mentions" && own && /^antecedents/.test(v.label)) {
    const kind = / of (\S+) /.exec(v.label)?.[1] || "", found = arcs.filter(a => a[0] === by[stack][0] && a[1].startsWith(`coref:${kind}`));
    return { what: `${kind} mention`.trim(), how: "to an antecedent", inWords: true, before: true, pairs: [...new Set(found.map(a => a[2]))].map(w => ({ rows: piecesOf(asks, w), any: found.filter(a => a[2] === w).map(a => piecesOf(answers, a[3])) })) };
  }
  if (shows === "links") return { what: "linked token", how: `to its source ${v.label}`, pairs: links.flatMap(([t, s]) => there(t - (v.label === "when predicted"), s)), plain: true };
  if (v.dir != null && shows === "offset" || shows === "before") return { what: "token", how: v.label, pairs: places.flatMap(t => there(t, t + (v.dir ?? -1))) };
  if (followed || shows === "repeated") return { what: "repeated token", how: followed ? "to what followed it" : "to its first place", pairs: places.flatMap(t => t > 0 && earlier(t) >= 0 ? there(t, earlier(t) + followed) : []) };
  return null;
}
const asked = (i, ex) => verdicts(i).map(v => [v, expected(v, i, ex)]).find(([, e]) => e?.pairs.length);
// The sentence in which the head does most of what it was found to do; the chosen one where all show the same.
export async function tellingExhibit(i, now) {
  const shows = await Promise.all(D.exhibits.map(async (_, ex) => hasMap(i, ex) ? (await evidenceOf(i, ex))?.hits || 0 : -1)), most = Math.max(...shows);
  return shows[now] === most ? now : Math.max(0, shows.indexOf(most));
}
export async function evidenceOf(i, ex) {
  const [v, e] = asked(i, ex) || [];
  if (!e) return null;
  const m = await mapOf(i, ex, !!e.inWords), at = (units, tokens) => units.findIndex(u => u.of.includes(tokens[0])), skip = e.inWords || e.plain;
  for (const p of e.pairs) {
    const r = at(m.from, p.rows), any = p.any || [p.cols], chosen = argmax(m.to.map((u, k) => skip && u.special || e.inWords && k === r || e.before && k > r ? -1 : m.w[r * m.k + k]));
    p.cols = any.find(tokens => at(m.to, tokens) === chosen) || any[0];
    const c = at(m.to, p.cols), column = e.column ? m.from.map((u, k) => u.special || k === c ? -1 : m.w[k * m.k + c]) : null;
    p.hit = column ? argmax(column) === r : chosen === c;
  }
  return { ...e, v, hits: e.pairs.filter(p => p.hit).length };
}
