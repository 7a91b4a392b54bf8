// What htmx does not do: it asks for the page again when the stream of changes says so, and
// changes what is different. Here it waits while that would disturb the reader, and asks at
// intervals if the stream says nothing. Without scripts the page works, and does not refresh.
(() => {
  "use strict";

  document.documentElement.classList.add("script");

  const live = document.getElementById("live");
  const stale = document.getElementById("stale");
  const patience = 20000; // ms: longer than the server is silent
  let heard = performance.now() - patience + 3000; // the first word of the stream comes at once
  let late = false; // something has changed that is not shown

  let pressed = false;
  addEventListener("pointerdown", () => { pressed = true; });
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { pressed = false; });

  // wait keeps htmx from asking, or from changing the page, while a button is down, text is
  // selected, or nobody sees the page.
  function wait(e) {
    if (e.target !== live) return;
    late = document.hidden || pressed || !getSelection().isCollapsed;
    if (late) e.preventDefault();
  }
  addEventListener("htmx:before:request", wait);
  addEventListener("htmx:before:swap", wait);

  addEventListener("htmx:sse:before:message", () => { heard = performance.now(); });
  addEventListener("htmx:after:request", (e) => {
    if (e.target === live) stale.textContent = e.detail.ctx.response.status < 400 ? "" : " · the server answers " + e.detail.ctx.response.status;
  });
  addEventListener("htmx:error", (e) => { if (e.target === live) stale.textContent = " · the server does not answer"; });

  if (live?.dataset.every) {
    setInterval(() => {
      if (late || performance.now() - heard > patience) live.dispatchEvent(new Event("changed", { bubbles: true }));
    }, live.dataset.every);
  }

  // A choice in a filter takes effect at once, and one box marks all rows.
  addEventListener("change", (e) => {
    if (e.target.matches(".filters select")) e.target.form.requestSubmit();
    if (e.target.id !== "mark") return;
    for (const box of e.target.form.querySelectorAll("input[name=pick]")) box.checked = e.target.checked;
  });

  // "/" leads to the search.
  addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select, textarea")) return;
    const search = document.querySelector("main input[type=search], header input[type=search]");
    if (search) {
      e.preventDefault();
      search.focus();
    }
  });
})();
