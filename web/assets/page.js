// Asks for the page again every few seconds and puts its main part in place,
// with the timelines that were open left open.
"use strict";

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch("/", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = next.getElementById("live");
    if (!fresh) return location.reload(); // the session is over
    const live = document.getElementById("live");
    for (const open of live.querySelectorAll("details[open]")) {
      const key = CSS.escape(open.dataset.key);
      fresh.querySelector(`details[data-key="${key}"]`)?.setAttribute("open", "");
    }
    live.replaceWith(fresh);
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
