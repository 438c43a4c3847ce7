import { $, inflate } from "./dom.js";
import { D, heads, stackOf } from "./data.js";
import { pixels } from "./colour.js";
// Maps lie in the page as base64(deflate(u16 row maxima, u8 weights)), a block an exhibit and layer, opened when looked at.
const opened = new Map(), KEPT = 24;
export function sides(i, ex) {
  const e = D.exhibits[ex], pair = e?.sides[heads[i].stack];
  return pair ? pair.map(name => e.texts[name]) : null;
}
export const hasMap = (i, ex) => !!sides(i, ex) && !!$(`#map-${ex}-${heads[i].stack}-${heads[i].layer}`);

export async function rawMap(i, ex) {
  const h = heads[i], id = `map-${ex}-${h.stack}-${h.layer}`, [from, to] = sides(i, ex), q = from.tokens.length, k = to.tokens.length;
  if (!opened.has(id)) { opened.set(id, inflate(id)); if (opened.size > KEPT) opened.delete(opened.keys().next().value); }
  const u = await opened.get(id), n = stackOf(h.stack).heads, max = new Uint16Array(u.buffer, h.index * q * 2, q), at = n * q * 2 + h.index * q * k;
  const w = new Float32Array(q * k);
  for (let r = 0; r < q; r++) { const scale = max[r] / 16711425; for (let c = 0; c < k; c++) w[r * k + c] = u[at + r * k + c] * scale; }
  return { q, k, w };
}
// Tokens, or words of several pieces: [{ text, special, of: [token, ...] }].
export function units(text, words) {
  const special = new Set(text.special), found = [], byWord = new Map();
  text.tokens.forEach((token, t) => {
    const word = words && text.words ? text.words[t] : -1;
    if (word >= 0 && byWord.has(word)) { byWord.get(word).of.push(t); return; }
    const unit = { text: word >= 0 ? text.word_texts[word] : token, special: special.has(t), of: [t] };
    if (word >= 0) byWord.set(word, unit);
    found.push(unit);
  });
  return found;
}
// Attention to a word is the sum over its pieces, attention from a word their mean (Clark et al. 2019, section 4.1).
export async function mapOf(i, ex, words) {
  const raw = await rawMap(i, ex), [from, to] = sides(i, ex).map(t => units(t, words));
  if (from.length === raw.q && to.length === raw.k) return { ...raw, from, to };
  const w = new Float32Array(from.length * to.length);
  from.forEach((f, r) => to.forEach((t, c) => {
    let sum = 0;
    for (const a of f.of) for (const b of t.of) sum += raw.w[a * raw.k + b];
    w[r * to.length + c] = sum / f.of.length;
  }));
  return { q: from.length, k: to.length, w, from, to };
}
// Colour is the square root of the weight, or of its share of the row's largest.
export function paintMap(canvas, m, faint, byRow) {
  canvas.width = m.k; canvas.height = m.q;
  const image = new ImageData(m.k, m.q), px = new Uint32Array(image.data.buffer), ramp = pixels();
  for (let r = 0; r < m.q; r++) {
    let top = 1;
    if (byRow) { top = 1e-9; for (let c = 0; c < m.k; c++) if (!faint?.[c]) top = Math.max(top, m.w[r * m.k + c]); }
    for (let c = 0; c < m.k; c++) {
      const v = ramp[Math.round(255 * Math.sqrt(Math.min(1, m.w[r * m.k + c] / top)))];
      px[r * m.k + c] = faint?.[c] ? v & 0xffffff | 70 << 24 : v;
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}
