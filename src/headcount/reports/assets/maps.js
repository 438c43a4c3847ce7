import { $, inflate } from "./dom.js";
import { D, heads, stackOf } from "./data.js";
import { pixels } from "./colour.js";
// Maps: base64(deflate(u16 row maxima, u8 weights)), a block an exhibit and layer, opened when looked at.
const opened = new Map(), KEPT = 24;
const mapId = (i, ex) => `map-${ex}-${heads[i].stack}-${heads[i].layer}`;
export const sides = (i, ex) => D.exhibits[ex]?.sides[heads[i].stack]?.map(name => D.exhibits[ex].texts[name]);
export const hasMap = (i, ex) => !!sides(i, ex) && !!$(`#${mapId(i, ex)}`);

export async function rawMap(i, ex) {
  const h = heads[i], id = mapId(i, ex), [q, k] = sides(i, ex).map(text => text.tokens.length);
  if (!opened.has(id)) { opened.set(id, inflate(id)); if (opened.size > KEPT) opened.delete(opened.keys().next().value); }
  const u = await opened.get(id), n = stackOf(h.stack).heads, max = new Uint16Array(u.buffer, h.index * q * 2, q), at = n * q * 2 + h.index * q * k;
  const w = new Float32Array(q * k);
  for (let r = 0; r < q; r++) for (let c = r * k; c < (r + 1) * k; c++) w[c] = u[at + c] * max[r] / 16711425;
  return { q, k, w };
}
// Tokens, or words of several pieces: [{ text, special, of: [token, ...] }].
function units(text, inWords) {
  const special = new Set(text.special), found = [], byWord = new Map();
  text.tokens.forEach((token, t) => {
    const word = inWords && text.words ? text.words[t] : -1;
    if (byWord.has(word)) { byWord.get(word).of.push(t); return; }
    const unit = { text: word >= 0 ? text.word_texts[word] : token, special: special.has(t), of: [t] };
    if (word >= 0) byWord.set(word, unit);
    found.push(unit);
  });
  return found;
}
// Attention to a word is the sum over its pieces, attention from a word their mean (Clark et al. 2019, section 4.1).
export async function mapOf(i, ex, inWords) {
  const raw = await rawMap(i, ex), [from, to] = sides(i, ex).map(text => units(text, inWords));
  if (from.length === raw.q && to.length === raw.k) return { ...raw, from, to };
  const w = new Float32Array(from.length * to.length);
  from.forEach((f, r) => to.forEach((t, c) => {
    for (const a of f.of) for (const b of t.of) w[r * to.length + c] += raw.w[a * raw.k + b] / f.of.length;
  }));
  return { q: from.length, k: to.length, w, from, to };
}
// Colour is the square root of the weight, or of its share of the row's largest.
export function paintMap(canvas, m, faint, byRow) {
  canvas.width = m.k; canvas.height = m.q;
  const image = new ImageData(m.k, m.q), px = new Uint32Array(image.data.buffer), table = pixels();
  for (let r = 0; r < m.q; r++) {
    const row = m.w.subarray(r * m.k, (r + 1) * m.k), top = byRow ? row.reduce((most, v, c) => faint?.[c] ? most : Math.max(most, v), 1e-9) : 1;
    for (let c = 0; c < m.k; c++) {
      const colour = table[Math.round(255 * Math.sqrt(Math.min(1, row[c] / top)))];
      px[r * m.k + c] = faint?.[c] ? colour & 0xffffff | 70 << 24 : colour;
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}
