import { $, $$, page, rove, when } from "./dom.js";
import { theme } from "./colour.js";
import { emit, listen, readHash, views } from "./state.js";
import { savers } from "./save.js";
function setTheme(name) {
  page.dataset.theme = name;
  $("#theme").textContent = name === "dark" ? "Light" : "Dark";
}
function keptTheme() {
  try { return localStorage.getItem("headcount-theme"); } catch { /* a sandboxed frame keeps nothing */ }
}
setTheme(keptTheme() || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
readHash();
listen();
when("#theme", "click", () => {
  setTheme(theme() === "dark" ? "light" : "dark");
  try { localStorage.setItem("headcount-theme", theme()); } catch { /* the same */ }
  emit("theme");
});
when("#help", "click", () => $("#keys").showModal());
when("#keysx", "click", () => $("#keys").close());
// Paper is white: print in the light theme, whatever the screen has.
// What is folded has no width: it is drawn when it opens, and opened for paper and for links.
for (const fold of document.querySelectorAll(".fold")) fold.addEventListener("toggle", () => { if (fold.open) emit("size"); });
let onScreen = theme();
addEventListener("beforeprint", () => { for (const fold of document.querySelectorAll(".fold")) fold.open = true; onScreen = theme(); setTheme("light"); emit("theme"); });
addEventListener("afterprint", () => { setTheme(onScreen); emit("theme"); });
for (const draw of views) await draw();
savers();
for (const box of $$(".tools, [data-save], #path, #sets, #strip, #survivors, #sim, #mapstacks")) rove(box);
when("#toheads", "click", () => $(".cell[tabindex='0']")?.focus());
requestAnimationFrame(() => requestAnimationFrame(() => { page.dataset.ready = Math.round(performance.now()); }));
