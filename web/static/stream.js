// The one stream of events of these pages. A browser has six connections for a host, so a shared worker holds the stream for all of its
// tabs; this file is that worker, too. Where a browser has no shared workers, each page that can be seen holds its own.
"use strict";

// Calls `heard({kind, now})`: kind is `lost`, `changed` or `ended`, now the sizes of the journals.
const follow = (url, heard) => {
  let source, pause, wait = 500;
  const open = () => {
    source = new EventSource(url);
    source.onopen = () => { wait = 500; };
    source.onerror = () => {
      source.close();
      pause = setTimeout(open, wait);
      // A browser itself gives up after some answers, so this tries again, ever more slowly.
      wait = Math.min(wait * 2, 10000);
      heard({ kind: "lost" });
    };
    for (const kind of ["changed", "ended"]) source.addEventListener(kind, (event) => heard({ kind, now: event.data }));
  };
  open();
  return () => { clearTimeout(pause); source.close(); };
};

// Nothing but a shared worker has this.
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
      // A tab cannot be seen to go, so it says so.
      if (!data) { ports.delete(port); return; }
      ports.add(port);
      // A tab that comes later hears at once how things stand; one that knows it already does nothing.
      if (last) port.postMessage(last);
      if (!followed) { followed = true; follow(data, heard); }
    };
  };
} else {
  const script = document.currentScript.src;
  const shared = (url, heard) => {
    const worker = new SharedWorker(script), { port } = worker;
    worker.onerror = () => heard({ kind: "lost" });
    port.onmessage = ({ data }) => heard(data);
    port.postMessage(url);
    return () => { port.onmessage = null; port.postMessage(null); };
  };

  // Hears the events for as long as the page is shown; the first one tells whether anything was missed.
  window.hearEvents = (url, heard) => {
    let leave = null;
    const set = (wanted) => {
      if (wanted && !leave) leave = (window.SharedWorker ? shared : follow)(url, heard);
      else if (!wanted && leave) { leave(); leave = null; }
    };
    // A hidden tab of its own stream would hold one of the six connections; with a worker it holds none.
    const look = () => set(window.SharedWorker || !document.hidden);
    // A page that a browser keeps for the way back is not closed; it hears nothing until it is shown again.
    addEventListener("pagehide", () => set(false));
    addEventListener("pageshow", look);
    document.addEventListener("visibilitychange", look);
    look();
  };
}
