// Isolated world, main frame: scroll through the page once, so that lazy images load and content that waits for its
// place on the screen shows itself; then come back to the top and wait for the fonts.
(async (maxHeight) => {
  const native = (owner, key) => Object.getOwnPropertyDescriptor(owner, key).get.call(document);
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const root = native(Document.prototype, "documentElement");
  const step = innerHeight;
  const end = Math.min(root?.scrollHeight ?? 0, maxHeight);
  for (let top = step; top < end; top += step) {
    scrollTo({ top, behavior: "instant" });
    await frame();
  }
  scrollTo({ top: 0, left: 0, behavior: "instant" });
  await frame();
  await native(Document.prototype, "fonts").ready;
})
