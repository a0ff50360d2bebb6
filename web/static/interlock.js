// Live parts, keys and relative times. Without this script every page can be read; live parts do not update.
(() => {
  "use strict";
  const state = document.getElementById("link-state");
  const rows = () => [...document.querySelectorAll("[data-row]")];

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
    const links = [...part.querySelectorAll(FOCUSED)], held = document.activeElement, at = links.indexOf(held);
    const boxes = [...part.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    part.replaceWith(fresh);
    [...fresh.querySelectorAll(".scroll")].forEach((box, number) => { [box.scrollLeft, box.scrollTop] = boxes[number] || [0, 0]; });
    if (at < 0) return;
    const now = [...fresh.querySelectorAll(FOCUSED)];
    const same = (held.href && now.find((link) => link.href === held.href)) || now[Math.min(at, now.length - 1)];
    if (same) same.focus({ preventScroll: true });
  };
  // Lines of the log are added to those that are there, which somebody may be reading; the journal never loses one.
  const log = document.getElementById("log"), logBox = log && log.parentElement;
  const addLines = (fresh) => {
    const below = logBox.scrollHeight - logBox.scrollTop - logBox.clientHeight < 40;
    const lines = [...fresh.children], count = fresh.dataset.count - log.dataset.count;
    if (count > lines.length) log.replaceChildren(...lines);
    else if (count > 0) log.append(...lines.slice(-count));
    log.dataset.count = fresh.dataset.count;
    if (below) logBox.scrollTop = logBox.scrollHeight;
  };
  if (log) logBox.scrollTop = logBox.scrollHeight;

  const refresh = async () => {
    const answer = await fetch(location.href);
    if (!answer.ok) throw new Error(answer.statusText);
    if (new URL(answer.url).pathname !== location.pathname) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = fresh.title;
    for (const part of document.querySelectorAll("[data-live]")) {
      const now = fresh.getElementById(part.id);
      if (now && !isWrittenIn(part)) replace(part, document.adoptNode(now));
    }
    if (log) addLines(document.adoptNode(fresh.getElementById("log")));
  };
  let busy = false, again = false, behind = false;
  const soon = async () => {
    if (busy) { again = true; return; }
    busy = true;
    behind = false;
    await refresh().catch(() => { behind = true; });  // not connected: the page stays as it is until it is
    await new Promise((done) => setTimeout(done, 200));
    busy = false;
    if (again) { again = false; soon(); }
  };

  // -- events: a part is fetched anew when something changed, or when the page is behind.
  let seen = document.body.dataset.after;
  if (document.querySelector("[data-live]")) {
    hearEvents(document.body.dataset.events, () => seen, ({ kind, after }) => {
      if (kind === "ended") location.reload();
      state.textContent = kind === "lost" ? "not connected" : "";
      if (kind === "changed" || after !== seen || behind) { seen = after; soon(); }
    });
  }

  // -- changes: a tick for what was viewed goes when the file changes, since its digest is in the key; a click or Enter on the number
  // of a line opens the form for a comment on it.
  for (const part of document.querySelectorAll("[data-file]")) {
    const key = "viewed " + part.dataset.file, label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = localStorage.getItem(key) === "1";
    part.classList.toggle("seen", box.checked);
    box.addEventListener("change", () => {
      part.classList.toggle("seen", box.checked);
      if (box.checked) localStorage.setItem(key, "1"); else localStorage.removeItem(key);
    });
    label.className = "viewed choice";
    label.append(box, " viewed");
    part.querySelector("h2").append(label);
    // One number of a file is a stop of the tab key; the arrows go on from there.
    const numbers = [...part.querySelectorAll("[data-pick]")], form = part.querySelector(".comment");
    const stop = (number) => {
      part.querySelectorAll("[data-pick][tabindex]").forEach((each) => ["tabindex", "role", "aria-label"].forEach((name) => each.removeAttribute(name)));
      number.tabIndex = 0;
      number.setAttribute("role", "button");
      number.setAttribute("aria-label", "Comment on line " + number.textContent);
    };
    if (numbers[0] && form) stop(numbers[0]);
    part.addEventListener("click", (event) => {
      const number = event.target.closest("[data-pick]");
      if (!number || !form) return;
      stop(number);
      form.open = true;
      form.querySelector("[data-line]").value = number.textContent;
      form.querySelector("[name=text]").focus();
    });
    part.addEventListener("keydown", (event) => {
      if (!event.target.matches("[data-pick]")) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], next = numbers[numbers.indexOf(event.target) + step];
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.target.click(); }
      if (!step) return;
      event.preventDefault();
      if (next) { stop(next); next.focus(); }
    });
  }

  // -- screenshots: a slider over before and after, as one picture whose upper half is cut by a rectangle.
  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  document.querySelectorAll("[data-shots]").forEach((figure, number) => {
    const [before, after] = figure.querySelectorAll("img");
    if (!before || !after) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Slide";
    button.addEventListener("click", () => {
      button.remove();
      const wide = Math.max(before.naturalWidth, after.naturalWidth), high = Math.max(before.naturalHeight, after.naturalHeight);
      const picture = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img" });
      const cut = svg("rect", { x: 0, y: 0, width: wide / 2, height: high });
      const clip = svg("clipPath", { id: "cut-" + number });
      clip.append(cut);
      picture.append(clip, svg("image", { href: after.src, width: after.naturalWidth, height: after.naturalHeight }),
        svg("image", { href: before.src, width: before.naturalWidth, height: before.naturalHeight, "clip-path": `url(#cut-${number})` }));
      picture.setAttribute("aria-label", "before at the left of the slider, after at its right");
      const range = document.createElement("input");
      range.type = "range"; range.max = wide; range.value = wide / 2;
      range.setAttribute("aria-label", "How much of before is shown");
      range.addEventListener("input", () => cut.setAttribute("width", range.value));
      const box = document.createElement("div");
      box.className = "slide";
      box.append(range, picture);
      figure.querySelector(".three").prepend(box);
      range.focus();
    });
    figure.querySelector("figcaption").append(" ", button);
  });

  // -- the form of an answer is checked as one writes; one that nobody waits for any more says so
  document.body.addEventListener("htmx:responseError", (event) => {
    state.textContent = event.detail.xhr.status === 409 ? "nobody waits for this any more: reload" : "not checked: reload";
  });
  const form = document.getElementById("answer-form");
  if (form) {
    let pause = 0;
    form.addEventListener("submit", () => { clearTimeout(pause); });
    form.addEventListener("input", () => {
      clearTimeout(pause);
      pause = setTimeout(() => htmx.ajax("POST", form.dataset.preview, { source: form, target: "#preview", select: "#preview", swap: "outerHTML" }).catch(() => {}), 400);
    });
  }

  // -- keys
  const focusRow = (at) => {
    const all = rows();
    const row = all[Math.max(0, Math.min(at, all.length - 1))];
    const link = row && row.querySelector("a, button, input, textarea, summary");
    if (link) { link.focus(); row.scrollIntoView({ block: "nearest" }); }
  };
  const help = document.getElementById("help");
  document.getElementById("help-button").addEventListener("click", () => help.showModal());
  let after = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select") || help.open) return;
    const at = rows().indexOf(document.activeElement.closest("[data-row]"));
    const key = event.key;
    if (after === "g") {
      after = "";
      const link = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (key === "j") focusRow(at + 1);
    else if (key === "k") focusRow(at < 0 ? 0 : at - 1);
    else if (key === "g") after = "g";
    else if (key === "?") help.showModal();
    else if (key === "/") { const field = document.querySelector("[data-search]"); if (field) field.focus(); else return; }
    else return;
    event.preventDefault();
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
  const tick = () => { for (const time of document.querySelectorAll("time[datetime]")) time.textContent = ago(time); };
  setInterval(tick, 5000);
})();
