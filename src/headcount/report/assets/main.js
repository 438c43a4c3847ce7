import { $ } from "./dom.js";
import { theme } from "./colour.js";
import { emit, listen, readHash } from "./state.js";
import { headline } from "./headline.js";
import { grid } from "./grid.js";
import { legend } from "./legend.js";
import { attention } from "./attention.js";
import { dossier } from "./dossier.js";
import { scores } from "./scores.js";
import { relations } from "./relations.js";
import { similar } from "./similar.js";
import { resemblance } from "./resemblance.js";
import { agreement } from "./agreement.js";
import { pruning } from "./pruning.js";
import { compare } from "./compare.js";
import { provenance } from "./provenance.js";
// Draw everything once; from then on views follow the state.
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("#theme").textContent = name === "dark" ? "Light" : "Dark";
  try { localStorage.setItem("headcount-theme", name); } catch { /* a sandboxed frame keeps nothing */ }
}
function firstTheme() {
  try { const kept = localStorage.getItem("headcount-theme"); if (/^(light|dark)$/.test(kept)) return kept; } catch { /* the same */ }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
setTheme(firstTheme());
readHash();
listen();
$("#theme").addEventListener("click", () => { setTheme(theme() === "dark" ? "light" : "dark"); emit("theme"); });
$("#help").addEventListener("click", () => $("#keys").showModal());
$("#keysx").addEventListener("click", () => $("#keys").close());
// Paper is white: print in the light theme, whatever the screen has.
let screen = null;
addEventListener("beforeprint", () => { screen = theme(); if (screen === "dark") { document.documentElement.dataset.theme = "light"; emit("theme"); } });
addEventListener("afterprint", () => { if (screen === "dark") { document.documentElement.dataset.theme = "dark"; emit("theme"); } });
for (const view of [headline, grid, legend, dossier, relations, scores, pruning, agreement, compare, provenance, resemblance]) view();
await attention();
similar();
requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = Math.round(performance.now()); }));
