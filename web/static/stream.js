// The one stream of events of these pages. A browser has six connections for a host, so a shared worker holds the stream for all of its
// tabs; this file is that worker, too. Where a browser has no shared workers, each page that can be seen holds its own.
"use strict";

// Calls `heard({kind, after})`: kind is `open`, `lost`, `changed` or `ended`, after the position in the journals up to which all was said.
const follow = (url, after, heard) => {
  let source, pause, wait = 500;
  const open = () => {
    source = new EventSource(url + "?after=" + encodeURIComponent(after));
    source.onopen = () => { wait = 500; heard({ kind: "open", after }); };
    source.onerror = () => {
      source.close();
      pause = setTimeout(open, wait);
      wait = Math.min(wait * 2, 10000);
      heard({ kind: "lost", after });
    };
    for (const kind of ["changed", "ended"]) {
      source.addEventListener(kind, (event) => { after = event.lastEventId || after; heard({ kind, after }); });
    }
  };
  open();
  return () => { clearTimeout(pause); source.close(); };
};

if ("onconnect" in self) {
  const ports = new Set();
  let followed = false, last = null;
  const heard = (message) => {
    last = message;
    for (const port of ports) port.postMessage(message);
    if (message.kind === "ended") self.close();
  };
  self.onconnect = ({ ports: [port] }) => {
    port.onmessage = ({ data }) => {
      if (!data) { ports.delete(port); return; }
      ports.add(port);
      if (last) port.postMessage({ kind: last.kind === "lost" ? "lost" : "open", after: last.after });
      if (!followed) { followed = true; follow(data.url, data.after, heard); }
    };
  };
} else {
  const script = document.currentScript.src;
  const shared = (url, after, heard) => {
    const worker = new SharedWorker(script), { port } = worker;
    worker.onerror = () => heard({ kind: "lost", after });
    port.onmessage = ({ data }) => heard(data);
    port.postMessage({ url, after });
    return () => { port.onmessage = null; port.postMessage(null); };
  };

  // Hears the events for as long as the page is shown. What was missed meanwhile shows in `after`, which `heard` compares with `seen()`.
  window.hearEvents = (url, seen, heard) => {
    let leave = null;
    const set = (wanted) => {
      if (wanted && !leave) leave = (window.SharedWorker ? shared : follow)(url, seen(), heard);
      else if (!wanted && leave) { leave(); leave = null; }
    };
    const look = () => set(window.SharedWorker || !document.hidden);
    addEventListener("pagehide", () => set(false));
    addEventListener("pageshow", look);
    document.addEventListener("visibilitychange", look);
    look();
  };
}
