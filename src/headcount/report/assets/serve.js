"use strict";
// A sentence goes to the model on this machine, its answer is told, and the report's page shows every head.
const $ = id => document.getElementById(id), off = new Set(), frame = $("page");
const made = (tag, text, cls) => { const node = document.createElement(tag); if (text != null) node.textContent = text; if (cls) node.className = cls; return node; };

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

function drawOff() {
  $("all").disabled = !off.size;
  $("off").replaceChildren(...[...off].map(head => {
    const item = made("li"), button = made("button", `${head} ✕`);
    button.type = "button"; button.setAttribute("aria-label", `Switch ${head} on`);
    button.addEventListener("click", () => { off.delete(head); ask(); });
    item.append(button);
    return item;
  }));
}
function drawChosen() {
  const head = chosenHead();
  $("chosen").disabled = !head || off.has(head);
  $("chosen").textContent = `Switch off ${head || "the chosen head"}`;
}
function chosenHead() {
  try { return inPage("#big")?.textContent || undefined; } catch { return undefined; }
}
function switchOff(names) {
  for (const name of names.split(/[\s,]+/).filter(Boolean)) off.add(name);
  ask();
}
// Words that the whole model did not say are marked.
function said(text, before) {
  const node = made("p"), known = new Set((before ?? text).split(/\s+/));
  for (const part of text.split(/(\s+)/)) node.append(known.has(part) || !part.trim() ? part : made("mark", part));
  return node;
}
function guessed(guesses, before) {
  const list = made("ol"), share = new Map(before), told = v => `${(100 * v).toFixed(1)} %`;
  for (const [word, now] of guesses) {
    const was = before && (share.has(word) ? `, was ${told(share.get(word))}` : ", was not among them");
    list.append(made("li", `${word.trim() === "" ? JSON.stringify(word) : word}  ${told(now)}${was || ""}`));
  }
  return list;
}
function drawAnswer(answer, whole) {
  const cut = answer.without.length > 0, box = made("section", null, cut ? "answer cut" : "answer"), before = cut ? whole.find(a => a.title === answer.title) : null;
  box.append(made("h3", cut ? `${answer.title}, without ${answer.without.join(", ")}` : answer.title));
  if (answer.guesses) box.append(guessed(answer.guesses, before?.guesses));
  else box.append(answer.text ? said(answer.text, before?.text) : made("p", "(nothing)"));
  if (before && !answer.guesses) box.append(made("p", before.text === answer.text ? "The same as with all heads on." : "Changed.", "note"));
  return box;
}
async function ask() {
  drawOff();
  $("state").textContent = "Looking …"; $("go").disabled = true;
  try {
    const head = chosenHead(), body = JSON.stringify({ text: $("text").value, second: $("second").value, off: [...off] });
    const reply = await fetch("look", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const found = await reply.json();
    if (found.error) { $("state").textContent = found.error; return; }
    $("model").textContent = found.model;
    $("size").textContent = `${found.heads} heads`;
    $("answers").replaceChildren(...found.answers.map(answer => drawAnswer(answer, found.answers.filter(a => !a.without.length))));
    frame.hidden = false;
    frame.src = `page/${found.page}#${[head && `head=${head}`, off.size && "ex=cut&col=changed"].filter(Boolean).join("&")}`;
    $("state").textContent = "";
  } catch {
    $("state").textContent = "The server has gone; start `headcount serve` again.";
  } finally { $("go").disabled = false; }
}
// The report tells of a corpus; here is one sentence, so that only what was measured on it stays.
function trim(page) {
  for (const part of page.querySelectorAll(".mast, .lede, footer")) part.hidden = true;
  for (const part of page.querySelectorAll(".mapbox, .blk, .sec")) part.hidden ||= !!part.querySelector(".unmeasured") && !part.querySelector("svg, canvas");
  for (const cell of page.querySelectorAll(".cell")) cell.classList.toggle("off", off.has(cell.getAttribute("aria-label").split(",")[0]));
  new ResizeObserver(() => { frame.style.height = `${page.body.scrollHeight}px`; }).observe(page.body);
  for (const event of ["click", "keyup"]) page.addEventListener(event, drawChosen);
  drawChosen();
}
function whenReady() {
  const page = frame.contentDocument;
  if (page?.documentElement.dataset.ready) trim(page);
  else if (page?.getElementById("headcount-data")) requestAnimationFrame(whenReady);
}
frame.addEventListener("load", whenReady);
$("ask").addEventListener("submit", event => { event.preventDefault(); ask(); });
$("add").addEventListener("click", () => { switchOff($("head").value); $("head").value = ""; });
$("chosen").addEventListener("click", () => switchOff(chosenHead() || ""));
$("all").addEventListener("click", () => { off.clear(); ask(); });
$("head").addEventListener("keydown", event => { if (event.key === "Enter") { event.preventDefault(); $("add").click(); } });
ask();
