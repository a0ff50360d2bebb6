// Live parts, comments on lines and relative times. Without this script every page can be read; live parts do not update.
(() => {
  "use strict";
  const state = document.getElementById("link-state");
  const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

  // -- live parts: fetched anew, all with one request, when the journal grew. A part in which somebody writes stays.
  const FOCUSED = "a, button, summary, [tabindex]";
  const written = (field) => field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
    : field.value !== field.defaultValue;
  const isWrittenIn = (part) => (part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"))
    || [...part.querySelectorAll("input:not([type=hidden]), textarea")].some(written);
  const replace = (part, fresh) => {
    const each = (name, apply) => {
      const after = fresh.querySelectorAll(name);
      part.querySelectorAll(name).forEach((old, at) => { if (after[at]) apply(old, after[at]); });
    };
    each("details", (old, now) => { now.open = old.open; });
    // A new part is closed, scrolled to its head and without focus: it gets back what a person had there.
    const links = [...part.querySelectorAll(FOCUSED)], held = document.activeElement, at = links.indexOf(held);
    const boxes = [...part.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    part.replaceWith(fresh);
    [...fresh.querySelectorAll(".scroll")].forEach((box, number) => { [box.scrollLeft, box.scrollTop] = boxes[number] || [0, 0]; });
    if (at < 0) return;
    const now = [...fresh.querySelectorAll(FOCUSED)];
    const same = (held.href && now.find((link) => link.href === held.href)) || now[Math.min(at, now.length - 1)];
    if (same) same.focus({ preventScroll: true });
  };
  // A log that was read to its end shows its end again.
  const logBox = () => document.querySelector(".log");
  const toEnd = () => { if (logBox()) logBox().scrollTop = logBox().scrollHeight; };
  toEnd();

  const refresh = async () => {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(answer.statusText);
    // The server led to another page or to the way in: what is shown here stays, with all that was written.
    if (new URL(answer.url).pathname !== location.pathname) return;
    const fresh = parsed(await answer.text());
    document.title = fresh.title;
    const box = logBox(), atEnd = box && box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(part.id);
      if (now && !isWrittenIn(part)) replace(part, document.adoptNode(now));
    }
    if (atEnd) toEnd();
  };
  // What agents do at this moment is no line of the journal: a page that shows it asks for it.
  setInterval(() => { if (!document.hidden && document.querySelector("[data-moving]")) soon(); }, 3000);
  let busy = false, again = false, behind = false;
  const soon = async () => {
    if (busy) { again = true; return; }
    busy = true;
    behind = false;
    await refresh().catch(() => { behind = true; });  // not connected: the page stays as it is until it is
    // However fast a journal grows, a page asks at most five times a second.
    await new Promise((done) => setTimeout(done, 200));
    busy = false;
    if (again) { again = false; soon(); }
  };

  // -- events: every part is fetched anew when the journals are not what they were when the page was made.
  let seen = document.body.dataset.now;
  if (document.querySelector("[data-live]")) {
    hearEvents(document.body.dataset.events, ({ kind, now }) => {
      // Loaded again without a session, the page says how to begin a new one.
      if (kind === "ended") location.reload();
      state.textContent = kind === "lost" ? "not connected" : "";
      if (kind === "changed" && (now !== seen || behind)) { seen = now; soon(); }
    });
  }

  // -- changes: a click on the number of a line opens the form for a comment on it.
  document.addEventListener("click", (event) => {
    const number = event.target.closest("[data-pick]"), form = number && number.closest("[data-file]").querySelector(".comment");
    if (!form) return;
    form.open = true;
    form.querySelector("[data-line]").value = number.textContent;
    form.querySelector("[name=text]").focus();
  });

  // -- times
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const ago = (time) => {
    const passed = (Date.now() - Date.parse(time.dateTime)) / 1000, size = Math.abs(passed);
    if (size < 1) return "now";
    const [unit, name] = units.find(([seconds]) => size >= 2 * seconds) || units[3];
    const text = Math.floor(size / unit) + " " + name;
    return passed > 0 ? text + " ago" : "in " + text;
  };
  // Times are kept as the server sent them in `datetime`; their text alone gets old.
  const tick = () => { for (const time of document.querySelectorAll("time[datetime]")) time.textContent = ago(time); };
  setInterval(tick, 5000);
})();
