import { $$, el, sv } from "./dom.js";
import { D } from "./data.js";
// Any part of the page as a picture: its text, boxes, drawings and canvases are written anew as one SVG.
const LOOK = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "text-anchor"];
const clear = colour => !colour || /^(transparent|rgba\(.*, 0\))$/.test(colour);

function dressed(node) {
  const copy = node.cloneNode(false), seen = getComputedStyle(node);
  for (const key of LOOK) { const v = seen.getPropertyValue(key); if (v && node.nodeType === 1) copy.setAttribute(key, v); }
  for (const key of ["class", "tabindex", "data-head", "role", "aria-label"]) copy.removeAttribute(key);
  for (const kid of node.childNodes) copy.append(kid.nodeType === 1 ? dressed(kid) : kid.cloneNode());
  return copy;
}
function* pieces(node, x0, y0) {
  const box = node.getBoundingClientRect(), seen = getComputedStyle(node), x = box.left - x0, y = box.top - y0;
  if (seen.display === "none" || seen.visibility === "hidden" || node.matches(".save,.vh,select,input,dialog") || !box.width) return;
  if (node.localName === "svg") { const copy = dressed(node); for (const [k, v] of Object.entries({ x, y, width: box.width, height: box.height })) copy.setAttribute(k, v); yield copy; return; }
  if (node.localName === "canvas") { yield sv("image", { x, y, width: box.width, height: box.height, href: node.toDataURL(), "image-rendering": "pixelated", preserveAspectRatio: "none" }); return; }
  if (!clear(seen.backgroundColor)) yield sv("rect", { x, y, width: box.width, height: box.height, fill: seen.backgroundColor, opacity: seen.opacity });
  for (const kid of node.childNodes) {
    if (kid.nodeType === 1) yield* pieces(kid, x0, y0);
    else if (kid.nodeType === 3 && kid.data.trim()) {
      const range = document.createRange();
      range.selectNodeContents(kid);
      const b = range.getBoundingClientRect();
      yield sv("text", { x: b.left - x0, y: b.top - y0 + b.height * .76, fill: seen.color, "font-family": seen.fontFamily, "font-size": seen.fontSize, "font-weight": seen.fontWeight, text: kid.data.trim() });
    }
  }
}
function picture(node) {
  const box = node.getBoundingClientRect(), pad = 12, w = Math.ceil(box.width + 2 * pad), h = Math.ceil(box.height + 2 * pad);
  const paper = getComputedStyle(document.body).backgroundColor;
  const svg = sv("svg", { xmlns: "http://www.w3.org/2000/svg", width: w, height: h, viewBox: `0 0 ${w} ${h}` }, sv("rect", { width: w, height: h, fill: paper }), [...pieces(node, box.left - pad, box.top - pad)]);
  return { text: new XMLSerializer().serializeToString(svg), w, h };
}
export function download(blob, name) {
  const url = URL.createObjectURL(blob);
  el("a", { href: url, download: `headcount-${D.model}-${name}`.replace(/[^\w.-]+/g, "-") }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
const saveSvg = (node, name) => download(new Blob([picture(node).text], { type: "image/svg+xml" }), `${name}.svg`);
async function savePng(node, name) {
  const { text, w, h } = picture(node), image = new Image(), canvas = el("canvas", { width: 2 * w, height: 2 * h });
  image.src = "data:image/svg+xml," + encodeURIComponent(text);
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, 2 * w, 2 * h);
  canvas.toBlob(blob => download(blob, `${name}.png`));
}
// Numbers and names of ours alone: a cell never begins a formula.
const csvCell = v => v == null ? "" : typeof v === "number" ? String(v) : `"${String(v).replace(/^[=+\-@\t\r]/, "'$&").replace(/"/g, '""')}"`;
export const saveCsv = (rows, name) => download(new Blob([rows.map(r => r.map(csvCell).join(",")).join("\n") + "\n"], { type: "text/csv" }), `${name}.csv`);
export const saver = (node, name, rows) => el("span", { class: "save" }, ...[["SVG", () => saveSvg(node(), name)], ["PNG", () => savePng(node(), name)], rows && ["CSV", () => saveCsv(rows(), name)]].filter(Boolean)
  .map(([text, f]) => el("button", { class: "btn tiny", "aria-label": `Save ${name} as ${text}`, text, onclick: f })));
