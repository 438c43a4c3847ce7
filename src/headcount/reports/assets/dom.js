// Elements are made here and nowhere else: text by textContent, the rest by setAttribute, never as markup.
const NS = "http://www.w3.org/2000/svg";
export const $ = (query, root = document) => root.querySelector(query);
export const $$ = (query, root = document) => [...root.querySelectorAll(query)];
export const when = (query, event, f) => $(query).addEventListener(event, f);
export const page = document.documentElement;
// A group of buttons is one stop of Tab; arrows go from one to the next, also after it was drawn anew.
export function rove(box) {
  const stops = () => $$("button,a,input", box).filter(b => b.getClientRects().length), one = at => stops().forEach(b => { b.tabIndex = b === at ? 0 : -1; });
  const first = () => { const all = stops(); if (!all.some(b => b.tabIndex === 0) || all.filter(b => b.tabIndex === 0).length > 1) one(all.includes(document.activeElement) ? document.activeElement : all[0]); };
  box.addEventListener("keydown", e => {
    const all = stops(), k = all.indexOf(e.target), by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (!by || k < 0) return;
    e.preventDefault();
    const next = all[clamp(k + by, 0, all.length - 1)];
    one(next); next.focus();
  });
  box.addEventListener("focusin", e => { if (stops().includes(e.target)) one(e.target); });
  new MutationObserver(first).observe(box, { childList: true, subtree: true });
  first();
}
export const put = (query, ...kids) => $(query).replaceChildren(...kids.flat(Infinity).filter(kid => kid != null && kid !== false));

// Numbers and maps lie in the page as base64 of deflated bytes.
export async function inflate(id) {
  const bytes = Uint8Array.from(atob($(`#${id}`).textContent), c => c.charCodeAt(0));
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
}
function fill(node, attributes, kids) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value == null || (value === false && !key.startsWith("aria-"))) continue;
    if (key === "text") node.textContent = value;
    else if (key === "css") for (const name in value) node.style.setProperty(name, value[name]);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true && !key.startsWith("aria-") ? "" : value);
  }
  for (const kid of kids.flat(Infinity)) if (kid != null && kid !== false) node.append(kid);
  return node;
}
export const el = (tag, attributes = {}, ...kids) => fill(document.createElement(tag), attributes, kids);
export const sv = (tag, attributes = {}, ...kids) => fill(document.createElementNS(NS, tag), attributes, kids);
export const option = (value, text, selected) => el("option", { value, text, selected });

// A number by a Python format such as ".2f", "+.3g" or ".2e"; what was not measured is a dash.
export function num(value, spec = ".2f") {
  if (value == null || Number.isNaN(value)) return "–";
  const [, plus, digits, kind] = /(\+?)\.?(\d*)([fge]?)/.exec(spec), n = digits === "" ? 2 : +digits;
  let text = kind === "g" ? String(+value.toPrecision(n || 1)) : kind === "e" ? value.toExponential(n) : value.toFixed(n);
  if (/^-0(\.0*)?$/.test(text)) text = text.slice(1);
  return (plus && value > 0 && /[1-9]/.test(text) ? "+" : "") + text.replace(/-/g, "−");
}
// An interval after a space; nothing where there is none.
export const range = (lo, hi, spec) => lo == null ? "" : ` [${num(lo, spec)}, ${num(hi, spec)}]`;
// The value of a metric: as many digits as tell steps apart.
export const quality = v => num(v, v >= 10 ? ".1f" : ".3g");
export const pct = value => value == null ? "–" : `${Math.round(value * 100)}%`;
export const pval = p => p == null ? "not tested" : p < .001 ? "p < .001" : `p = ${p.toFixed(3).replace(/^0/, "")}`;
export const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
export const argmax = list => list.reduce((best, v, k) => v > list[best] ? k : best, 0);
export const clamp = (v, low, high) => Math.max(low, Math.min(high, v));

// A token as people read it: nothing invisible, nothing that turns the text around.
const NAMED = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥" };
export const visible = token => token.replace(/[\p{C}\p{Z}]/gu, c => NAMED[c] || `⟨${c.codePointAt(0).toString(16).padStart(4, "0")}⟩`) || "∅";
