import { $, el, put, when } from "./dom.js";
import { D, heads } from "./data.js";
import { select, setCol, setRole, setStep, view } from "./state.js";
// The finding is the title; beside it a path: a few sentences, each a link to what it speaks of.
function lead({ head, role, step, section }) {
  if (role && D.roles) { setCol("role"); setRole(null); setRole(role); }
  if (step) setStep(...step);
  if (head != null) select(head);
  $(section || (step ? "#go" : "#inst")).scrollIntoView({ block: "start" });
}
const address = ({ head, role, step }) => "#" + [head != null && `head=${heads[head].id}`, role && `role=${role}`, step && `step=${step.join(".")}`].filter(Boolean).join("&");
// The state is in the address, so that a finding is a link.
async function copyLink(e) {
  let said = "Copied";
  try { await navigator.clipboard.writeText(location.href); } catch { said = "It is in the address"; }
  e.target.textContent = said;
  setTimeout(() => { e.target.textContent = "Copy link"; }, 1500);
}
when("#share", "click", copyLink);
view(() => {
  put("#model", D.model);
  put("#made", D.stacks.map(s => `${s.id} ${s.layers} × ${s.heads}`).join(", ") + (D.absent.length ? `; ${D.absent.length} removed before` : ""));
  put("#title", D.headline);
  put("#about", D.about);
  put("#path", D.path.map(p => el("li", {}, el("a", { href: address(p.to), text: p.link, onclick: e => { e.preventDefault(); lead(p.to); } }), p.text)));
  $("#lead").hidden = !D.path.length;
  $("#own").hidden = !D.exhibits.some(e => e.own);
});
