import { $, inflate, num } from "./dom.js";
// The run as the page knows it. Heads are implied: stacks by layers by heads, in order.
export const D = JSON.parse($("#headcount-data").textContent);
const numbers = JSON.parse(new TextDecoder().decode(await inflate("numbers")));
D.columns.forEach((c, k) => Object.assign(c, numbers.columns[k]));
if (D.relations) D.relations.heads = numbers.relations;
Object.assign(D.map || {}, numbers.map);
Object.assign(D, { roles: numbers.roles, curve: numbers.curve });
export const heads = [];
for (const s of D.stacks) {
  s.first = heads.length;
  for (let layer = 0; layer < s.layers; layer++)
    for (let index = 0; index < s.heads; index++)
      heads.push({ i: heads.length, stack: s.id, layer, index, id: `${s.id}.${layer}.${index}` });
}
export const byId = new Map(heads.map(h => [h.id, h.i]));
export const stackOf = id => D.stacks.find(s => s.id === id);
export const absent = new Set(D.absent);
export const present = heads.filter(h => !absent.has(h.i));

// Numbers come as whole multiples of a unit, bounds as distances from the value.
for (const c of D.columns) if (c.u) {
  const far = (d, sign, i) => d == null ? null : (c.values[i] + sign * d) * c.u;
  if (c.lo) { c.lo = c.lo.map((d, i) => far(d, -1, i)); c.hi = c.hi.map((d, i) => far(d, 1, i)); }
  c.values = c.values.map(v => v == null ? null : v * c.u);
}
// Two runs: every shared column also as the second's value less the first's.
for (const c of D.compare?.changes || []) D.columns.push(c);
for (const [id, { values: other, lo = null, hi = null }] of Object.entries(D.compare?.columns || {})) {
  const c = D.columns.find(x => x.id === id);
  if (!c) continue;
  const values = c.values.map((v, i) => v == null || other[i] == null ? null : other[i] - v);
  const far = Math.max(1e-9, ...values.map(v => Math.abs(v ?? 0)));
  D.columns.push({ ...c, id: `diff-${id}`, group: "Second less first", title: `Δ ${c.title}`, values, other, of: id, lo, hi, p: null, diverging: true,
    domain: [-far, far], more: `more in ${D.compare.name}`, fmt: c.fmt.startsWith("+") ? c.fmt : "+" + c.fmt, meaning: `${c.title} in ${D.compare.name} less that in ${D.model}. ${c.meaning}` });
}
export const cols = new Map(D.columns.map(c => [c.id, c]));
for (const c of D.columns) {
  const sign = c.direction === "lower" ? 1 : -1, known = heads.filter(h => c.values[h.i] != null);
  c.known = known.length;
  c.rank = [];
  known.sort((a, b) => sign * (c.values[a.i] - c.values[b.i])).forEach((h, k) => { c.rank[h.i] = k + 1; });
}
export const show = (c, i) => num(c.values[i], c.fmt);
export const kinds = new Map(D.kinds.map(k => [k.id, k]));
export const verdicts = i => D.roles?.[i] || [];
export const mainRole = i => verdicts(i)[0] || { role: "none" };
export const hasRole = (i, role) => role === "none" ? !verdicts(i).length : verdicts(i).some(v => v.role === role);
export const roleCount = role => present.filter(h => hasRole(h.i, role)).length;
export const roleNames = i => D.roles ? [...new Set(verdicts(i).map(v => kinds.get(v.role).title))].join(", ").toLowerCase() || "no role found" : "roles not judged";
export const missing = id => D.missing.find(m => m[0] === id);
