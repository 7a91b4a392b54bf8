// Asks for the page again every few seconds, and changes what is different in it. What the
// reader does is not disturbed: what is open, marked, typed or focused stays so, and nothing
// changes while a button is down or text is selected. Without this script the page works,
// and does not refresh.
"use strict";

document.documentElement.classList.add("script");

let pressed = false;
addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { pressed = false; });

function busy() {
  return document.hidden || pressed || !getSelection().isCollapsed;
}

const keyOf = (n) => (n.nodeType === Node.ELEMENT_NODE ? n.id || n.dataset.key || "" : "");

// morph changes a node of the page into the fresh one.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName || keyOf(old) !== keyOf(fresh)) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morphChildren(old, fresh);
}

// morphChildren does so with the children. Those with a key are found by it, wherever they
// were.
function morphChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const key = keyOf(next);
    const same = key ? keyed.get(key) : at && !keyOf(at) ? at : undefined;
    if (!same) {
      old.insertBefore(next, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else old.insertBefore(same, at);
    morph(same, next);
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

let tag = "";

async function refresh() {
  if (busy()) return;
  const stale = document.getElementById("stale");
  try {
    const answer = await fetch(location.pathname + location.search, { cache: "no-store", headers: tag ? { "If-None-Match": tag } : {} });
    if (answer.status !== 304) {
      if (!answer.ok) throw new Error(answer.status);
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!next.getElementById("live")) return location.reload(); // the session is over
      if (busy()) return;
      for (const id of ["views", "live"]) morph(document.getElementById(id), next.getElementById(id));
      document.title = next.title;
      tag = answer.headers.get("ETag");
    }
    if (stale.textContent) stale.textContent = "";
  } catch {
    stale.textContent = " · the server does not answer";
  }
}

async function loop() {
  const every = Number(document.getElementById("live")?.dataset.poll);
  if (!every) return;
  await refresh();
  setTimeout(loop, every);
}

document.addEventListener("visibilitychange", () => { if (document.getElementById("live")?.dataset.poll) refresh(); });
setTimeout(loop, Number(document.getElementById("live")?.dataset.poll) || 1000);

// A choice in a filter takes effect at once, and one box marks all rows.
document.addEventListener("change", (e) => {
  if (e.target.matches(".filters select")) e.target.form.requestSubmit();
  if (e.target.id === "mark") {
    for (const box of e.target.form.querySelectorAll("input[name=pick]")) box.checked = e.target.checked;
  }
  const form = e.target.closest(".rows");
  if (form) {
    const n = form.querySelectorAll("input[name=pick]:checked").length;
    form.classList.toggle("marked", n > 0 || form.querySelector("input[name=all]:checked") !== null);
  }
});

// "/" leads to the search.
document.addEventListener("keydown", (e) => {
  if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select, textarea")) return;
  const search = document.querySelector("main input[type=search], header input[type=search]");
  if (search) {
    e.preventDefault();
    search.focus();
  }
});
