// Asks for the page again every few seconds and puts its main part in place.
// What the reader does is not disturbed: timelines stay open, the focus stays,
// and nothing moves while a button is down or text is selected.
"use strict";

let pressed = false;
addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { pressed = false; });

function busy() {
  return document.hidden || pressed || !getSelection().isCollapsed;
}

function put(fresh) {
  const live = document.getElementById("live");
  const twin = (d) => fresh.querySelector(`details[data-key="${CSS.escape(d.dataset.key)}"]`);
  for (const open of live.querySelectorAll("details[open]")) twin(open)?.setAttribute("open", "");
  const focused = document.activeElement?.closest("details");
  const next = focused && twin(focused);
  live.replaceWith(fresh);
  next?.querySelector("summary").focus({ preventScroll: true });
}

async function refresh() {
  if (busy()) return;
  try {
    const answer = await fetch("/", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = next.getElementById("live");
    if (!fresh) return location.reload(); // the session is over
    if (busy()) return;
    put(fresh);
    document.title = next.title;
  } catch {
    document.getElementById("stale").hidden = false;
  }
}

async function loop() {
  await refresh();
  const seconds = Number(document.getElementById("live").dataset.poll) || 5;
  setTimeout(loop, seconds * 1000);
}

document.addEventListener("visibilitychange", refresh);
setTimeout(loop, 3000);
