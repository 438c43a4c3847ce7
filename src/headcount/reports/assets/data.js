import { $, el, inflate, num, put } from "./dom.js";
// The run as the page knows it. Heads are implied: stacks by layers by heads, in order.
export const D = JSON.parse($("#headcount-data").textContent);
const numbers = JSON.parse(new TextDecoder().decode(await inflate("numbers")));
D.columns.forEach((c, k) => Object.assign(c, numbers.columns[k]));
if (D.relations) D.relations.heads = numbers.relations;
Object.assign(D.map || {}, numbers.map);
for (const key of ["roles", "curve", "misses", "lesions", "strip"]) D[key] = numbers[key];
D.times?.of.forEach((t, k) => { D.strip.stops[k].time = t; });
export const heads = [];
for (const s of D.stacks) {
  s.first = heads.length;
  for (let layer = 0; layer < s.layers; layer++)
    for (let index = 0; index < s.heads; index++)
      heads.push({ i: heads.length, stack: s.id, layer, index, id: `${s.id}.${layer}.${index}` });
  s.end = heads.length;
}
export const byId = new Map(heads.map(h => [h.id, h.i]));
export const stackOf = id => D.stacks.find(s => s.id === id);
export const absent = new Set(D.absent);
export const present = heads.filter(h => !absent.has(h.i));

// Columns. Numbers come as whole multiples of a unit, bounds as distances from the value.
export const cols = new Map();
function unpack(c) {
  const far = (d, sign, i) => d == null ? null : (c.values[i] + sign * d) * c.u;
  if (c.lo) { c.lo = c.lo.map((d, i) => far(d, -1, i)); c.hi = c.hi.map((d, i) => far(d, 1, i)); }
  c.values = c.values.map(v => v == null ? null : v * c.u);
}
// The first is the most important, or has the largest value.
export function ranked(c, list) {
  const sign = c.direction === "lower" ? 1 : -1, known = list.filter(h => c.values[h.i] != null);
  return known.sort((a, b) => sign * (c.values[a.i] - c.values[b.i]));
}
export function addColumn(c) {
  cols.set(c.id, c);
  if (c.ramp) c.sizes = c.values.filter(v => v != null).map(Math.abs).sort((a, b) => a - b);
  c.rank = [];
  c.known = ranked(c, heads).map((h, k) => { c.rank[h.i] = k + 1; }).length;
}
for (const c of D.columns) { if (c.u) unpack(c); addColumn(c); }
// The columns of each question: [["How much it matters", [column, ...]], ...].
export function byGroup(list) {
  const groups = new Map();
  for (const c of list) groups.set(c.group, [...groups.get(c.group) || [], c]);
  return [...groups];
}
export const show = (c, i) => num(c.values[i], c.fmt);
// Why a head has no value: it never goes, or nobody measured it.
export const absence = c => c.id === "removal_step" ? "does not apply: it stays" : "not measured";
export const standing = (c, i) => `${c.title} ${c.values[i] == null ? absence(c) : `${show(c, i)}, rank ${c.rank[i]} of ${c.known}`}`;

// Roles. A head with several is counted under its first: what it does before where it looks.
export const kinds = new Map(D.kinds.map(k => [k.id, k]));
const costly = new Set(D.costly || []);
export const matters = i => costly.has(i);
export const verdicts = i => D.roles?.[i] || [];
export const rolesOf = i => [...new Set(verdicts(i).map(v => v.role))];
export const mainRole = i => verdicts(i)[0] || { role: "none" };
export const hasRole = (i, role) => mainRole(i).role === role;
export const ofRole = role => present.filter(h => hasRole(h.i, role));
// "does", "rests" or "none": what the title counts.
export const sort = role => role === "none" ? "none" : kinds.get(role).rests ? "rests" : "does";
export const roleNames = i => absent.has(i) ? "removed" : D.roles ? rolesOf(i).join(", ") || "no role found" : "roles not judged";

// What was not measured is hatched, and told with the command that measures it; a command breaks between its words alone.
export const command = how => how && el("code", {}, how.split(" ").map((word, k) => [k ? " " : "", el("span", { class: "nb", text: word })]));
export const tag = text => el("span", { class: "tag", text });
export function unmeasured(key, said) {
  const [, title, how] = D.missing.find(m => m[0] === key) || [];
  return el("p", { class: "ph unmeasured" }, tag("not measured"), ` ${said || title || ""} `, command(how));
}
// A section of which the run holds nothing keeps its title.
export const gap = (id, key) => put(id, $(`${id} h2`), unmeasured(key));
