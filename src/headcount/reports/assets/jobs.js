import { $, el, num, plural, put, pval, range, sv } from "./dom.js";
import { D, heads, kinds, matters, mainRole, ofRole, present, show, sort } from "./data.js";
import { drawing, ticks, words } from "./chart.js";
import { S, lens, mark, on, view } from "./state.js";
import { roleChip } from "./glyph.js";
import { tables } from "./save.js";
// Function by importance: a row a role, a dot a head.
const GROUPS = [["does", "do something"], ["rests", "look at one place or kind of word"], ["none", "no role found"]], OUTLIERS = 5;
// The rows of a column: [{ role, own, mean, matter }], the largest mean of each group first.
function jobRows(c) {
  const roles = D.roles ? D.kinds.map(k => k.id) : ["none"];
  return roles.map(role => {
    const own = ofRole(role).filter(h => c.values[h.i] != null), mean = own.reduce((sum, h) => sum + c.values[h.i], 0) / own.length;
    return { role, own, mean, all: ofRole(role).length, matter: own.filter(h => matters(h.i)).length };
  }).filter(r => r.all).sort((a, b) => (b.mean || 0) - (a.mean || 0));
}
// Dots side by side where they would cover one another.
function swarm(own, x, size, room) {
  const placed = [];
  return own.map(h => {
    const at = x(h.i), near = placed.filter(p => Math.abs(p[0] - at) < size);
    let y = 0;
    for (let k = 1; near.some(p => (p[0] - at) ** 2 + (p[1] - y) ** 2 < size * size) && k < 40; k++) {
      y = (k % 2 ? -1 : 1) * Math.ceil(k / 2) * size * .55;
      if (Math.abs(y) > room) { y = room * (k % 2 ? -1 : 1) * ((k * 7 % 10) / 10); break; }
    }
    placed.push([at, y]);
    return [h.i, at, y];
  });
}
function lane(row, c, x, w, size, named) {
  const tall = row.own.length > 24 ? 48 : 32, mid = tall / 2, filled = c.id === "ablation" && D.costly, xs = row.own.map(h => x(h.i)), free = (from, to) => !xs.some(v => v > from && v < to);
  const dots = swarm(row.own, x, size * 1.7, mid - size).map(([i, at, y]) => mark(i, sv("g", { class: `pt r-${row.role}`, role: "button", tabindex: -1, "aria-label": `${heads[i].id}, ${show(c, i)}`, transform: `translate(${at.toFixed(1)} ${(mid + y).toFixed(1)})` },
    sv("circle", { class: "hit", r: 12 }), sv("circle", { class: "halo", r: size + 4 }), sv("circle", { class: filled && !matters(i) ? "bead open" : "bead", r: size }))));
  const mean = row.own.length > 1 && sv("path", { class: "at", d: `M${x(null, row.mean).toFixed(1)} ${mid - 9}v18` });
  return sv("svg", { width: w, height: tall, role: "group", "aria-label": `${kinds.get(row.role).title}: ${c.title}, mean ${num(row.mean, c.fmt)}` },
    sv("path", { class: "axis", d: `M0 ${mid}H${w}` }), dots, mean, row.own.filter(h => named.has(h.i)).sort((p, q) => x(q.i) - x(p.i)).map(h => {
      const at = x(h.i), right = at < w - 66 && free(at + size, at + 70), from = right ? at : at - 70;
      if (!right && !free(from, at - size)) return null;
      xs.push(from - 6, from + 20, from + 45);
      return words(at + (right ? size + 5 : -size - 5), mid + 4, h.id, right ? "start" : "end", "name small");
    }));
}
// Whether a group matters more than other heads of its layers.
function tested(c, group) {
  const found = D.function[c.id]?.[group];
  if (!found) return null;
  const [delta, low, high, p, answer] = found, said = { more: "matter more than others of their layers", less: "matter less than others of their layers" }[answer] || "no clear difference from others of their layers";
  return el("span", { class: "test", title: "Cliff’s delta: 1 where every such head is above all others of its layer; permuted within layers, corrected", text: ` ${said}: δ ${num(delta, "+.2f")}${range(low, high, "+.2f")}, ${pval(p)}` });
}
function drawJobs() {
  const c = lens(), box = $("#jobs"), shown = c && present.some(h => c.values[h.i] != null);
  box.hidden = !shown;
  if (!shown) return;
  const rows = jobRows(c), phone = innerWidth <= 640, w = Math.max(120, $("#strip").clientWidth - (phone ? 0 : innerWidth >= 1800 ? 260 : 232)), pad = 8;
  const values = present.map(h => c.values[h.i]).filter(v => v != null), [a, b] = [Math.min(0, ...values), Math.max(0, ...values)], size = present.length > 400 ? 2.6 : 4.2;
  const x = (i, v = c.values[i]) => pad + (w - 2 * pad) * (v - a) / (b - a || 1);
  const cost = c.group === "How much it matters", top = [...present].filter(h => c.values[h.i] != null && (c.id !== "ablation" || !D.costly || matters(h.i))).sort((p, q) => c.values[q.i] - c.values[p.i]).slice(0, cost ? OUTLIERS : 0), named = new Set(top.map(h => h.i));
  put("#jh", D.roles ? cost ? "Which jobs matter" : `What they do, by ${c.title.toLowerCase()}` : cost ? "Which heads matter" : c.title);
  const told = r => c.id === "ablation" && D.costly ? `${r.matter} of ${r.all} cost${r.matter === 1 ? "s" : ""}` : `mean ${num(r.mean, c.fmt)}`;
  const line = r => el("div", { class: "jr" }, D.roles ? roleChip(r.role) : el("span", { class: "note", text: "all heads" }), lane(r, c, x, w, size, named), el("span", { class: "note", "data-told": r.role, text: r.own.length ? told(r) : "not measured" }));
  put("#strip", GROUPS.map(([id, name]) => {
    const own = rows.filter(r => sort(r.role) === id), n = own.reduce((sum, r) => sum + r.all, 0);
    return own.length ? [D.roles && id !== "none" && el("h3", {}, `${plural(n, "head")} ${n > 1 ? name : id === "does" ? "does something" : "looks" + name.slice(4)}`, tested(c, id)), own.map(line)] : [];
  }), el("div", { class: "jr axisrow" }, el("span"), drawing(w, 18, `${c.title}, ${num(a, c.fmt)} to ${num(b, c.fmt)}`, ticks(a, b, 5).map(v => [sv("path", { class: "tick", d: `M${x(null, v).toFixed(1)} 0v4` }), words(x(null, v), 15, num(v, c.fmt.startsWith("+") && v ? "+.3g" : ".3g"), "middle")])), el("span")));
  const about = D.examples[c.id], by = c.id === "ablation" ? `${about?.metric || c.unit || "cost"} added when this head alone is switched off${D.costly ? "; filled: significant" : ""}` : `${c.title}${c.unit ? `, ${c.unit}` : ""}`;
  put("#jobnote", `${by[0].toUpperCase()}${by.slice(1)}; bar: mean${about ? `; n = ${about.n}` : ""}. ${D.roles ? "Heads with several roles count once, function before location." : ""}`);
}
tables.jobs = () => { const c = lens(); return [["head", "role", c.id, "matters"], ...present.map(h => [h.id, mainRole(h.i).role, c.values[h.i], D.costly ? +matters(h.i) : null])]; };
view(drawJobs, "col size theme");
on("role", () => $("#strip").classList.toggle("chosen", S.role != null));
