"use strict";
// A sentence goes to the model on this machine; heads are keys that are switched off and on.
const $ = id => document.getElementById(id), off = new Set(), frame = $("page"), SVG = "http://www.w3.org/2000/svg";
const made = (tag, text, cls) => { const node = document.createElement(tag); if (text != null) node.textContent = text; if (cls) node.className = cls; return node; };
let about = null, last = null, turn = 0, timer = null;

// The theme is the report's, kept under the same name.
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
}
const inPage = query => frame.contentDocument?.querySelector(query);
setTheme(localStorage.getItem("headcount-theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
$("theme").addEventListener("click", () => {
  const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(name);
  localStorage.setItem("headcount-theme", name);
  inPage("#theme")?.click();
});

// The board: a key a head, in the colours of roles; a layer's number switches the layer.
const kindOf = role => about.kinds.find(k => k.id === role) || { id: "none", title: "no role known", d: "" };
function sign(role, offset = -1) {
  const kind = kindOf(role), svg = document.createElementNS(SVG, "svg"), path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 16 16"); svg.setAttribute("aria-hidden", "true"); svg.setAttribute("class", `r-${kind.id}`);
  path.setAttribute("d", kind.d);
  if (kind.shows === "offset" && offset >= 0) path.setAttribute("transform", offset > 0 ? "translate(16 0) scale(-1 1)" : "rotate(-90 8 8)"); path.setAttribute("class", kind.solid ? "solid" : "drawn");
  svg.append(path);
  return svg;
}
function key(name) {
  const role = about.roles[name] || "none", kind = kindOf(role), node = made("button", null, `key r-${role} ${role === "none" ? "none" : kind.rests ? "rests" : "does"}`), told = about.roles[name] ? `${kind.title.toLowerCase()}, ${kind.meaning}` : "no role known";
  node.type = "button"; node.tabIndex = -1; node.dataset.head = name; node.title = `${name}: ${told}`; node.setAttribute("aria-label", `${name}, ${told}`);
  node.classList.toggle("gone", !about.heads.includes(name));
  node.append(sign(role, about.offsets[name]));
  node.addEventListener("click", () => flip([name]));
  return node;
}
function drawBoard() {
  const wide = Math.max(...about.stacks.map(s => s.heads)), rows = about.stacks.reduce((n, s) => Math.max(n, s.layers), 0), titles = { enc: "encoder", dec: "decoder", cross: "decoder to encoder" };
  const n = about.stacks.length, room = $("board").clientWidth, abreast = (room - 22 * (n - 1)) / n - 27;  // side by side, if keys stay large enough
  $("board").style.setProperty("--key", `${Math.max(13, Math.min(28, abreast / wide - 3 >= 20 ? abreast / wide - 3 : (room - 27) / wide - 3, 560 / rows))}px`);
  $("board").replaceChildren(...about.stacks.map(s => {
    const box = made("div", null, "deck");
    box.append(made("h3", titles[s.id]));
    for (let layer = 0; layer < s.layers; layer++) {
      const line = made("div", null, "line"), names = Array.from({ length: s.heads }, (_, h) => `${s.id}.${layer}.${h}`), lay = made("button", layer, "lay");
      lay.type = "button"; lay.tabIndex = -1; lay.title = `Switch layer ${layer} of the ${titles[s.id]}`; lay.setAttribute("aria-label", lay.title);
      lay.addEventListener("click", () => flip(names));
      line.append(lay, ...names.map(key));
      box.append(line);
    }
    return box;
  }));
  $("board").querySelector(".key:not(.gone)").tabIndex = 0;
  $("sets").replaceChildren(...about.sets.map(set => {
    const node = made("button", null, "btn");
    node.type = "button"; node.title = set.title;
    if (set.role) node.append(sign(set.role));
    node.append(set.name);
    node.addEventListener("click", () => { off.clear(); set.off.forEach(h => off.add(h)); changed(); });
    return node;
  }));
}
// One stop of Tab; arrows go from key to key.
$("board").addEventListener("keydown", event => {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key], at = event.target.closest(".key");
  if (!step || !at) return;
  event.preventDefault();
  const here = at.getBoundingClientRect(), ahead = k => { const b = k.getBoundingClientRect(), dx = b.x - here.x, dy = b.y - here.y, along = dx * step[0] + dy * step[1]; return along > 1 ? along + 4 * Math.abs(dx * step[1] + dy * step[0]) : Infinity; };
  const next = [...$("board").querySelectorAll(".key:not(.gone)")].reduce((best, k) => ahead(k) < ahead(best) ? k : best, at);
  at.tabIndex = -1; next.tabIndex = 0; next.focus();
});
// What is off is off for all of these, or on for all.
function flip(names) {
  const there = names.filter(n => about.heads.includes(n)), on = there.every(n => off.has(n));
  for (const name of there) on ? off.delete(name) : off.add(name);
  changed();
}
function changed() {
  drawOff();
  clearTimeout(timer); timer = setTimeout(ask, 60);
}
function drawOff() {
  for (const node of $("board").querySelectorAll(".key")) node.setAttribute("aria-pressed", off.has(node.dataset.head));
  $("all").disabled = !off.size; $("invert").disabled = !off.size;
  remember();
}
// The sentence and the heads are in the address, so that a find is a link.
function remember() {
  const parts = new URLSearchParams({ text: $("text").value, ...($("secondbox").hidden ? {} : { second: $("second").value }), ...(off.size ? { off: [...off].join(" ") } : {}) });
  history.replaceState(null, "", `#${parts}`);
}
function recall() {
  const said = new URLSearchParams(location.hash.slice(1));
  if (said.has("text")) $("text").value = said.get("text");
  if (said.has("second")) $("second").value = said.get("second");
  for (const name of (said.get("off") || "").split(" ")) if (about.heads.includes(name)) off.add(name);
}

// A diff by the longest common run of words; a word that is elsewhere in the other has moved.
function aligned(a, b) {
  const n = a.length, m = b.length, best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1)), both = [[], []];
  for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--) best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  for (let i = 0, j = 0; i < n && j < m;) a[i] === b[j] ? (both[0][i++] = both[1][j++] = true) : best[i + 1][j] >= best[i][j + 1] ? i++ : j++;
  return both;
}
function diffed(words, kept, others, tag) {
  const spare = [...others], nodes = [];
  words.forEach((word, k) => {
    if (k) nodes.push(" ");
    const moved = !kept[k] && spare.includes(word);
    if (moved) spare.splice(spare.indexOf(word), 1);
    nodes.push(kept[k] ? word : made(moved ? "span" : tag, word, moved ? "moved" : ""));
  });
  return nodes;
}
function drawTexts(answer) {
  const split = text => (text || "").split(/\s+/).filter(Boolean), before = split(answer.whole), after = split(answer.cut), n = answer.off.length;
  $("wholeh").textContent = `${answer.title}, all heads on`;
  const [a, b] = answer.cut == null ? [before.map(() => true), []] : aligned(before, after), gone = before.filter((_, k) => !a[k]), fresh = after.filter((_, k) => !b[k]);
  $("whole").replaceChildren(...diffed(before, a, fresh, "del"));
  $("cuth").textContent = n ? `Without ${n === 1 ? answer.off[0] : `${n} heads`}${answer.cut == null ? "" : answer.cut === answer.whole ? ": the same" : answer.cut ? "" : ": nothing at all"}` : "";
  $("cuth").hidden = !n;
  $("cut").replaceChildren(...(answer.cut == null ? [] : diffed(after, b, gone, "ins")));
  if (answer.whole != null || !answer.bars.length) return;
  // classes, hidden words and similarity have no text: the likeliest stands for it
  const best = k => answer.bars.reduce((a, c) => (c[k] ?? -1) > (a[k] ?? -1) ? c : a), told = k => { const bar = best(k); return answer.kind === "similarity" ? bar[k].toFixed(3) : `${bar[0].trim()}, ${pct(bar[k])}`; };
  $("whole").textContent = told(1);
  if (n) $("cut").textContent = told(2);
}
// What a change did to words, the largest first: how many times less likely each became.
const LEAST_CHANGE = 1.27, MOST_SAID = 3;
const times = r => r < 2 ? `${Math.round(100 * (1 - 1 / r))}% less likely` : `${r < 10 ? r.toFixed(1) : Math.round(r)} times less likely`;
function drawSaid(answer) {
  const fell = answer.kind === "similarity" ? [] : answer.bars.map(([word, was, now]) => [word.trim(), was == null ? 0 : was / Math.max(now ?? 0, 1e-4), was]).filter(([, r, was]) => r >= LEAST_CHANGE && was > .02).sort((a, b) => b[1] - a[1]), same = answer.off.length && !fell.length && (answer.cut == null || answer.cut === answer.whole);
  const turned = answer.kind === "similarity" && answer.bars.length ? (answer.bars[0][2] ?? 0) - answer.bars[0][1] : 0;
  $("said").textContent = !answer.off.length ? "" : answer.kind === "similarity" ? `The cosine ${Math.abs(turned) < .0005 ? "stays the same" : `${turned < 0 ? "falls" : "rises"} by ${Math.abs(turned).toFixed(3)}`}.` : fell.length ? `${fell.slice(0, MOST_SAID).map(([w, r]) => `“${w}” ${times(r)}`).join(", ")}${fell.length > MOST_SAID ? `, and ${fell.length - MOST_SAID} more` : ""}.` : same ? "Nothing changes: no word here becomes clearly less likely." : "Another word wins, by a little: it was a close call.";
  $("offer").hidden = !same || answer.kind === "similarity";
}
// The word of which the fewest heads are looked for: the least sure, until another is chosen.
let wordAt = null;
function drawWord(answer) {
  const single = answer.kind !== "tokens", shown = answer.bars, k = single ? 0 : wordAt ?? shown.reduce((least, b, j) => /\p{L}/u.test(b[0]) && (b[1] ?? 1) < (shown[least][1] ?? 1) ? j : least, 0);
  $("fewest").hidden = !shown.length || answer.kind === "similarity";
  $("fewest").dataset.word = k;
  if (shown.length) $("fewest").textContent = `Find the fewest heads that change “${shown[k][0].trim()}”`;
}
async function searched(where, more, use) {
  busy("searching heads");
  const found = await post(where, more).catch(() => ({ error: "The server has gone; start `headcount serve` again." }));
  busy("");
  if (found.error) $("state").textContent = found.error; else use(found);
}
$("fewest").addEventListener("click", () => searched("fewest", { word: +$("fewest").dataset.word }, found => {
  if (!found.off.length) { $("state").textContent = `No set of up to ${found.most} heads changes it: other heads make up for them.`; return; }
  off.clear(); found.off.forEach(h => off.add(h)); changed();
}));
$("offer").addEventListener("click", () => searched("offer", {}, found => {
  if (!found.text) { $("state").textContent = "None of the tried sentences changes either."; return; }
  $("text").value = found.text; wordAt = null; ask();
}));
const pct = v => v == null ? "≈ 0%" : v >= .995 || v < .0005 ? `${Math.round(100 * v)}%` : `${(100 * v).toFixed(1)}%`;
function drawBars(answer) {
  const cut = answer.off.length > 0, keyed = { tokens: "the probability of each token of the translation", next: "the likeliest tokens", classes: "classes", similarity: "1: the same direction" };
  $("barkey").textContent = `${keyed[answer.kind]}${cut ? "; grey: all heads on, blue: without" : ""}`;
  $("bars").replaceChildren(...answer.bars.flatMap(([name, before, now]) => {
    const track = made("div", null, "track"), told = made("span", null, cut && now < before - .1 ? "fell" : ""), bar = (cls, v) => { const i = made("i", null, cls); i.style.width = `${100 * Math.max(0, Math.min(1, v ?? 0))}%`; track.append(i); };
    bar("was", before); if (cut) bar("now", now);
    told.append(cut ? `${pct(before)} → ` : "", made("b", pct(cut ? now : before)));
    const word = made("button", name.trim() === "" ? "␣" : name.trim(), "word");
    word.type = "button"; word.title = "Choose this word";
    word.addEventListener("click", () => { wordAt = answer.bars.findIndex(b => b[0] === name && b[1] === before); drawWord(answer); });
    return [word, track, told];
  }));
  if (!answer.bars.length) $("bars").replaceChildren(made("p", answer.whole || "", "note"));
}
async function post(where, more = {}) {
  const body = JSON.stringify({ ...more, text: $("text").value, second: $("secondbox").hidden ? "" : $("second").value, off: [...off] });
  const reply = await fetch(where, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  return reply.json();
}
function busy(text) { document.body.classList.toggle("busy", !!text); $("state").textContent = text || ""; }
async function ask() {
  clearTimeout(timer);
  const mine = ++turn, wait = setTimeout(() => { if (mine === turn) busy("the model is at work"); }, 150);
  try {
    const found = await post("ask");
    if (mine !== turn) return;
    busy("");
    if (found.error) { $("state").textContent = found.error; return; }
    last = found;
    drawTexts(found); drawSaid(found); drawBars(found); drawWord(found); remember();
    if ($("inside").open) inside();
  } catch {
    busy(""); $("state").textContent = "The server has gone; start `headcount serve` again.";
  } finally { clearTimeout(wait); }
}
// Heads by name; one that is not there is refused, and nothing is kept of it.
$("byname").addEventListener("submit", event => {
  event.preventDefault();
  const names = $("head").value.split(/[\s,]+/).filter(Boolean), wrong = names.find(n => !about.heads.includes(n));
  if (wrong) { $("state").textContent = `There is no head ${wrong}; heads are named like ${about.heads[0]} … ${about.heads.at(-1)}.`; return; }
  $("head").value = ""; $("state").textContent = "";
  flip(names);
});
$("all").addEventListener("click", () => { off.clear(); changed(); });
$("invert").addEventListener("click", () => { const now = about.heads.filter(h => !off.has(h)); off.clear(); now.forEach(h => off.add(h)); changed(); });
$("ask").addEventListener("submit", event => { event.preventDefault(); ask(); });
for (const id of ["text", "second"]) {
  $(id).addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); ask(); } });
  $(id).addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => { if ($("text").value.trim()) ask(); }, 500); });
}
$("copy").addEventListener("click", async () => {
  if (!last) return;
  const heads = last.off.length > 12 ? `${last.off.length} of ${about.count} heads` : last.off.join(", "), bars = last.bars.filter(([, a, b]) => b != null && Math.abs(a - b) > .1).map(([t, a, b]) => `${t.trim()} ${pct(a)} → ${pct(b)}`);
  const text = [`${about.model} ${about.predicts}: “${$("text").value}”`, last.whole && `all ${about.count} heads: ${last.whole}`, last.off.length && `without ${heads}: ${last.cut ?? ""}`, bars.length && bars.join("; "), "(headcount serve)"].filter(Boolean).join("\n");
  try { await navigator.clipboard.writeText(text); $("state").textContent = "Copied."; } catch { $("state").textContent = text; }
});

// The report tells of a corpus; here is one sentence, so that only what was measured on it stays.
async function inside() {
  const found = await post("look");
  if (found.error) { $("state").textContent = found.error; return; }
  const head = inPage("#big")?.textContent;
  frame.hidden = false;
  frame.src = `page/${found.page}#${[head && `head=${head}`, off.size && "ex=cut&col=changed"].filter(Boolean).join("&")}`;
}
function trim(page) {
  for (const part of page.querySelectorAll(".mast, .lede, .argue, footer")) part.hidden = true;
  for (const part of page.querySelectorAll(".mapbox, .blk, .sec")) part.hidden ||= !!part.querySelector(".unmeasured") && !part.querySelector("svg, canvas");
  for (const cell of page.querySelectorAll(".cell")) cell.classList.toggle("off", off.has(cell.getAttribute("aria-label").split(",")[0]));
  new ResizeObserver(() => { frame.style.height = `${page.body.scrollHeight}px`; }).observe(page.body);
}
function whenReady() {
  const page = frame.contentDocument;
  if (page?.documentElement.dataset.ready) trim(page);
  else if (page?.getElementById("headcount-data")) requestAnimationFrame(whenReady);
}
frame.addEventListener("load", whenReady);
$("inside").addEventListener("toggle", () => { if ($("inside").open) inside(); });

(async () => {
  about = await (await fetch("about")).json();
  $("model").textContent = about.model;
  $("size").textContent = `${about.predicts}; ${about.count} heads`;
  $("secondbox").hidden = about.predicts !== "compares two sentences";
  if (about.mask) { $("textlabel").textContent = `Sentence, with ${about.mask} for the hidden word`; $("text").value = `The old kettle had been ${about.mask} before anyone noticed it.`; }
  recall();
  drawBoard(); drawOff();
  await ask();
  document.documentElement.dataset.ready = Math.round(performance.now());
})();
