import { $, $$, el, sv, when } from "./dom.js";
import { D, heads, present, rolesOf } from "./data.js";
import { S } from "./state.js";
// Any part of the page as a picture: its text, boxes, drawings and canvases are written anew as one SVG.
const LOOK = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order", "stroke-linejoin"];

function dressed(node) {
  const copy = node.cloneNode(false), seen = getComputedStyle(node);
  for (const key of LOOK) { const v = seen.getPropertyValue(key); if (v) copy.setAttribute(key, v); }
  for (const key of ["class", "tabindex", "data-head", "role", "aria-label"]) copy.removeAttribute(key);
  for (const kid of node.childNodes) copy.append(kid.nodeType === 1 ? dressed(kid) : kid.cloneNode());
  return copy;
}
// A text as the page breaks it: a run for each line.
function broken(node) {
  const range = document.createRange(), found = [];
  for (const { 0: word, index } of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, index); range.setEnd(node, index + word.trimEnd().length);
    const b = range.getBoundingClientRect(), last = found.at(-1);
    if (last && Math.abs(last.b.top - b.top) < 3) last.text += word; else found.push({ b, text: word });
  }
  return found;
}
function* pieces(node, x0, y0) {
  const { left, top, width, height } = node.getBoundingClientRect(), seen = getComputedStyle(node), box = { x: left - x0, y: top - y0, width, height };
  if (seen.display === "none" || seen.visibility === "hidden" || node.matches("[data-save],.vh,.tiny,select,input,dialog") || !width) return;
  if (node.localName === "svg") { const copy = dressed(node); for (const k in box) copy.setAttribute(k, box[k]); copy.setAttribute("overflow", "visible"); yield copy; return; }
  if (node.localName === "canvas") { yield sv("image", { ...box, href: node.toDataURL(), "image-rendering": "pixelated", preserveAspectRatio: "none" }); return; }
  if (!/, 0\)$/.test(seen.backgroundColor)) yield sv("rect", { ...box, fill: seen.backgroundColor, opacity: seen.opacity });
  for (const kid of node.childNodes) {
    if (kid.nodeType === 1) yield* pieces(kid, x0, y0);
    else if (kid.nodeType === 3) for (const { b, text } of broken(kid)) yield sv("text", { x: b.left - x0, y: b.top - y0 + b.height * .76, fill: seen.color, "font-family": seen.fontFamily, "font-size": seen.fontSize, "font-weight": seen.fontWeight, text: text.replace(/\s+/g, " ") });
  }
}
function picture(node) {
  const box = node.getBoundingClientRect(), pad = 12, width = Math.ceil(Math.max(box.width + 2 * pad, 420)), height = Math.ceil(box.height + 2 * pad + 20), ink = getComputedStyle(document.body);
  const title = node.closest("section")?.querySelector("h2, h3")?.textContent || "", caption = sv("text", { x: pad, y: height - 9, fill: ink.color, opacity: .75, "font-family": ink.fontFamily, "font-size": "11px", text: `${D.model}: ${title ? `${title}; chosen ` : "attention of "}${heads[S.head].id}. headcount` });
  const svg = sv("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    sv("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor }), [...pieces(node, box.left - pad, box.top - pad)], caption);
  return { text: new XMLSerializer().serializeToString(svg), width, height };
}
function download(part, name, type) {
  const url = URL.createObjectURL(new Blob([part], { type }));
  el("a", { href: url, download: `headcount-${D.model}-${name}`.replace(/[^\w.-]+/g, "-") }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
async function savePng(node, name) {
  const { text, width, height } = picture(node);
  download(await drawn(text, width, height, 2), `${name}.png`, "image/png");
}
// A card to post: the title, the picture under it, the model, and on how much it stands.
const WIDE_CARD = 1200, TALL_CARD = 630;
function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) lines.at(-1).length + word.length < most ? lines.push(`${lines.pop()} ${word}`.trim()) : lines.push(word);
  return lines;
}
export function card() {
  const ink = getComputedStyle(document.body), serif = getComputedStyle($("#title")).fontFamily, lines = wrapped(D.headline, 46), size = lines.length > 3 ? 36 : 44, node = $("#together").hidden ? $("#strip") : $("#sets"), box = node.getBoundingClientRect(), top = 96 + lines.length * size * 1.18;
  const scale = Math.min((WIDE_CARD - 96) / (box.width || 1), (TALL_CARD - top - 56) / (box.height || 1), 1.6), line = (y, text, px, family, more) => sv("text", { x: 48, y, fill: ink.color, "font-family": family, "font-size": `${px}px`, ...more, text });
  const svg = sv("svg", { xmlns: "http://www.w3.org/2000/svg", width: WIDE_CARD, height: TALL_CARD, viewBox: `0 0 ${WIDE_CARD} ${TALL_CARD}` }, sv("rect", { width: WIDE_CARD, height: TALL_CARD, fill: ink.backgroundColor }),
    line(52, `${D.model}: ${D.stacks.map(s => `${s.id} ${s.layers} × ${s.heads} heads`).join(", ")}`, 19, ink.fontFamily, { opacity: .75 }), lines.map((text, k) => line(60 + (k + 1) * size * 1.18, text, size, serif)),
    sv("g", { transform: `translate(48 ${top}) scale(${scale})` }, [...pieces(node, box.left, box.top)]), line(TALL_CARD - 22, $("#together").hidden ? `${D.about} headcount` : `${$("#togethernote").textContent.match(/n = \d+/)?.[0]} · dot: all heads of a job off, added loss with its 95% interval; grey: as many other heads · headcount`, 15, ink.fontFamily, { opacity: .75 }));
  return new XMLSerializer().serializeToString(svg);
}
async function drawn(text, width, height, by) {
  const image = new Image(), canvas = el("canvas", { width: by * width, height: by * height });
  image.src = "data:image/svg+xml," + encodeURIComponent(text);
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, by * width, by * height);
  return new Promise(done => canvas.toBlob(done, "image/png"));
}
async function copyCard(e) {
  const blob = await drawn(card(), WIDE_CARD, TALL_CARD, 1);
  let said = "Copied";
  try { await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]); } catch { download(blob, "card.png", "image/png"); said = "Saved"; }
  e.target.textContent = said;
  setTimeout(() => { e.target.textContent = "Copy as image"; }, 1500);
}
// Tables by the name of what they stand for. Numbers and names of ours alone, and a cell never begins a formula.
export const tables = { heads: headTable };
const csvCell = v => v == null ? "" : typeof v === "number" ? String(v) : `"${String(v).replace(/^[=+\-@\t\r]/, "'$&").replace(/"/g, '""')}"`;
const saveCsv = name => download(tables[name]().map(r => r.map(csvCell).join(",")).join("\n") + "\n", `${name}.csv`, "text/csv");
function headTable() {
  const parts = c => [["", c.values], ["_low", c.lo], ["_high", c.hi], [c.corrected ? "_p_adjusted" : "_p", c.p]].filter(([, list]) => list);
  const wide = D.columns.filter(c => !c.of).flatMap(c => parts(c).map(([end, list]) => [c.id + end, list]));
  return [["head", "roles", ...wide.map(w => w[0])], ...present.map(h => [h.id, rolesOf(h.i).join(" "), ...wide.map(w => w[1][h.i])])];
}
// Wherever the page says data-save="name" data-of="#what", there are buttons.
export function savers() {
  for (const box of $$("[data-save]")) {
    const { save: name, of } = box.dataset, button = (kind, onclick) => box.append(el("button", { class: "btn tiny", "aria-label": `Save ${name} as ${kind}`, text: kind, onclick }));
    button("SVG", () => download(picture($(of)).text, `${name}.svg`, "image/svg+xml"));
    button("PNG", () => savePng($(of), name));
    if (tables[name] && name !== "heads") button("CSV", () => saveCsv(name));
  }
  when("#csv", "click", () => saveCsv("heads"));
  when("#card", "click", copyCard);
}
