// Runs before any code of the page, in every frame and worker: console keeps its own methods, and each uncaught error
// is reported to the collector before any handler of the page can swallow it. The page sees setters that do nothing, so
// honest wrappers of console do not throw.
//
// The collector is notified through a binding that this closure alone holds, at once: a timer or a port could be cleared,
// and a frame be removed, before it fires. What stays on the window is `arm`, which adds the two listeners again and
// can do no more; the page may call it and cannot replace it. `document.open` removes every listener, so it arms anew.
//
// `alone`: in a shared worker, where the browser crashes on reporting an error itself.
((alone) => {
  const NAME = "__interlock";
  const { defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames } = Object;
  const { apply } = Reflect;
  const scope = globalThis;
  const getter = (owner, key) => getOwnPropertyDescriptor(owner.prototype, key).get;

  // A window that showed an empty document may be used again for the one that was asked for.
  const before = getOwnPropertyDescriptor(scope, NAME);
  if (before?.configurable === false) {
    before.value();
    return;
  }
  const notify = scope[NAME];
  const native = scope.console;
  const warn = native.warn;
  const text = String;

  let warned = false;
  const hold = (owner, key, value) => {
    if (getOwnPropertyDescriptor(owner, key)?.configurable === false) return;
    defineProperty(owner, key, {
      get: () => value,
      set: () => {
        if (!warned) warn(`interlock: the page tried to replace ${owner === scope ? "" : "console."}${text(key)}`);
        warned = true;
      },
      enumerable: true,
      configurable: false,
    });
  };
  const names = getOwnPropertyNames(native);
  for (let i = 0; i < names.length; i++) {
    const value = native[names[i]];
    if (typeof value === "function") hold(native, names[i], value);
  }
  hold(scope, "console", native);

  // A service worker would answer for the page's server; the page waits for one as in a browser that is slow to start it.
  if (typeof ServiceWorkerContainer === "function") {
    ServiceWorkerContainer.prototype.register = () => {
      warn("interlock: the page registered a service worker, which was not started");
      return new Promise(() => {});
    };
  }

  const message = getter(ErrorEvent, "message");
  const filename = getter(ErrorEvent, "filename");
  const reason = getter(PromiseRejectionEvent, "reason");
  const prevent = Event.prototype.preventDefault;
  const listen = EventTarget.prototype.addEventListener;
  const report = (event, what, url) => {
    notify(`${url}\n${what}`);
    if (alone) apply(prevent, event, []);
  };
  const onError = (event) => {
    if (!event.isTrusted) return; // made by the page; nothing was thrown
    let what, url;
    try {
      what = apply(message, event, []);
      url = apply(filename, event, []);
    } catch {
      return; // no error of a script but a resource that failed to load: the network log has it
    }
    report(event, what, url);
  };
  const onRejection = (event) => {
    if (!event.isTrusted) return;
    let why;
    try {
      why = text(apply(reason, event, []));
    } catch {
      why = "a reason without text";
    }
    report(event, `Uncaught (in promise) ${why}`, "");
  };
  const arm = () => {
    apply(listen, scope, ["error", onError, true]);
    apply(listen, scope, ["unhandledrejection", onRejection, true]);
  };
  defineProperty(scope, NAME, { value: arm, writable: false, configurable: false, enumerable: false });
  arm();

  if (typeof Document !== "function") return;
  const view = getter(Document, "defaultView");
  const again = (document) => {
    const opened = apply(view, document, []);
    if (opened) opened[NAME]();
  };
  const { open, write, writeln } = Document.prototype;
  const replace = (method) => defineProperty(Document.prototype, method.name, { value: method });
  replace(
    {
      open(...values) {
        const answer = apply(open, this, values);
        if (values.length < 3) again(this);
        return answer;
      },
    }.open,
  );
  // Writing opens the document by itself where it is complete. Writing nothing does that first, and nothing else.
  const opening = (document) => {
    try {
      apply(write, document, [""]);
    } catch {
      return; // refused, as the page's own call will be
    }
    again(document);
  };
  replace(
    {
      write(...values) {
        opening(this);
        return apply(write, this, values);
      },
    }.write,
  );
  replace(
    {
      writeln(...values) {
        opening(this);
        return apply(writeln, this, values);
      },
    }.writeln,
  );
})
