// Runs before any code of the page, in every frame and worker: console keeps its own methods, and an error that a
// handler of the page swallows is reported all the same. The page sees setters that do nothing, so honest wrappers
// of console do not throw.
(() => {
  const { defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames, apply } = {
    defineProperty: Object.defineProperty,
    getOwnPropertyDescriptor: Object.getOwnPropertyDescriptor,
    getOwnPropertyNames: Object.getOwnPropertyNames,
    apply: Reflect.apply,
  };
  const scope = globalThis;
  const native = scope.console;
  const error = native.error;
  const warn = native.warn;
  const later = scope.setTimeout;
  const text = String;

  let told = false;
  const hold = (owner, key, value) => {
    if (getOwnPropertyDescriptor(owner, key)?.configurable === false) return;
    defineProperty(owner, key, {
      get: () => value,
      set: () => {
        if (!told) warn(`interlock: the page tried to replace ${owner === scope ? "" : "console."}${text(key)}`);
        told = true;
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

  const prevented = getOwnPropertyDescriptor(Event.prototype, "defaultPrevented").get;
  const message = getOwnPropertyDescriptor(ErrorEvent.prototype, "message").get;
  const watch = (type, describe) =>
    scope.addEventListener(
      type,
      (event) => {
        let what;
        try {
          what = describe(event);
        } catch {
          return; // no error of a script but a resource that failed to load: the network log has it
        }
        // Only after every handler of the page has run is it known whether one of them swallowed the error.
        later(() => {
          if (apply(prevented, event, [])) error(`interlock: the page swallowed ${what}`);
        }, 0);
      },
      true,
    );
  watch("error", (event) => apply(message, event, []));
  const reason = getOwnPropertyDescriptor(PromiseRejectionEvent.prototype, "reason").get;
  watch("unhandledrejection", (event) => {
    const why = apply(reason, event, []);
    try {
      return `an unhandled rejection: ${text(why)}`;
    } catch {
      return "an unhandled rejection whose reason has no text";
    }
  });
})();
