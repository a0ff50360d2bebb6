// Isolated world, every frame, before each engine: in a sandboxed frame without scripts a timer never fires, in this world
// too, and axe cuts its work into timers. Here they become microtasks; nothing in axe needs time to pass.
globalThis.setTimeout = (task, _delay, ...values) => {
  Promise.resolve().then(() => task(...values));
  return 0;
};
globalThis.clearTimeout = () => {};
