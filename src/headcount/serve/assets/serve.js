"use strict";
// A sentence goes to the model on this machine, its answer is told, and the report's page shows every head.
const $ = id => document.getElementById(id);
const off = new Set();
const made = (tag, text, cls) => { const node = document.createElement(tag); if (text != null) node.textContent = text; if (cls) node.className = cls; return node; };

function drawOff() {
  $("off").replaceChildren(...[...off].map(head => {
    const item = made("li"), button = made("button", `${head} ✕`);
    button.type = "button"; button.setAttribute("aria-label", `Switch ${head} on`);
    button.addEventListener("click", () => { off.delete(head); drawOff(); ask(); });
    item.append(button);
    return item;
  }));
}
function chosenHead() {
  try { return /(?:head=|#)((?:enc|dec|cross)\.\d+\.\d+)/.exec($("page").contentWindow.location.hash)?.[1]; } catch { return undefined; }
}
function switchOff(names) {
  for (const name of names.split(/[\s,]+/).filter(Boolean)) off.add(name);
  drawOff();
}
function drawAnswers(answers) {
  const whole = answers.filter(a => !a.without.length);
  $("answers").replaceChildren(...answers.map(answer => {
    const box = made("section", null, answer.without.length ? "answer cut" : "answer");
    box.append(made("h2", answer.without.length ? `${answer.title}, without ${answer.without.join(", ")}` : answer.title));
    if (answer.guesses) {
      const list = made("ol");
      for (const [word, share] of answer.guesses) list.append(made("li", `${word.trim() === "" ? JSON.stringify(word) : word}  ${(100 * share).toFixed(1)} %`));
      box.append(list);
    } else {
      const before = whole.find(a => a.title === answer.title)?.text;
      box.append(made("p", answer.text || "(nothing)"));
      if (answer.without.length) box.append(made("p", before === answer.text ? "The same as with all heads on." : "Changed.", "note"));
    }
    return box;
  }));
}
async function ask() {
  $("state").textContent = "Looking …"; $("go").disabled = true;
  try {
    const hash = chosenHead();
    const body = JSON.stringify({ text: $("text").value, second: $("second").value, shut: [...off] });
    const reply = await fetch("look", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const found = await reply.json();
    if (found.error) { $("state").textContent = found.error; return; }
    $("model").textContent = `${found.model}, ${found.heads} heads`;
    drawAnswers(found.answers);
    $("page").hidden = false;
    $("page").src = `page/${found.page}#${[hash && `head=${hash}`, off.size && "ex=cut&col=changed"].filter(Boolean).join("&")}`;
    $("state").textContent = "";
  } catch {
    $("state").textContent = "The server has gone; start `headcount serve` again.";
  } finally { $("go").disabled = false; }
}
$("ask").addEventListener("submit", event => { event.preventDefault(); ask(); });
$("add").addEventListener("click", () => { switchOff($("head").value); $("head").value = ""; ask(); });
$("chosen").addEventListener("click", () => { const head = chosenHead(); if (head) { switchOff(head); ask(); } else $("state").textContent = "Choose a head in the page below first."; });
$("all").addEventListener("click", () => { off.clear(); drawOff(); ask(); });
// The report's headline is about a corpus; here is one sentence.
$("page").addEventListener("load", () => { const lede = $("page").contentDocument?.querySelector(".lede"); if (lede) lede.hidden = true; });
$("head").addEventListener("keydown", event => { if (event.key === "Enter") { event.preventDefault(); $("add").click(); } });
ask();
