// Isolated world, every frame and every shadow root: hold each animation, and hide the caret. One that ends soon is
// brought to its end; another stays as people see it now, and one without end at a fixed share of its round. What the
// page has paused, and what moves by scrolling, does not move anyway.
((soon, share) => {
  const roots = [document];
  for (let i = 0; i < roots.length; i++) {
    const walker = Document.prototype.createTreeWalker.call(document, roots[i], NodeFilter.SHOW_ELEMENT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!(node instanceof HTMLFormElement) && node.shadowRoot) roots.push(node.shadowRoot);
    }
  }
  const hold = (animation) => {
    const { effect, playbackRate: rate, currentTime: now } = animation;
    if (animation.playState !== "running" || !(animation.timeline instanceof DocumentTimeline) || !effect || rate === 0) return;
    const { delay, duration, endTime } = effect.getComputedTiming();
    if (rate > 0 && endTime === Infinity) {
      animation.pause();
      if (now >= delay - soon && Number.isFinite(duration)) animation.currentTime = delay + duration * share;
    } else if ((rate > 0 ? endTime - now : now) / Math.abs(rate) <= soon) {
      animation.finish();
    } else {
      animation.pause();
    }
  };
  // A running transition goes on as it began; one that begins after this takes no time.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { caret-color: transparent !important; transition-duration: 0s !important; transition-delay: 0s !important; }");
  for (const root of roots) {
    const kind = root === document ? Document : ShadowRoot;
    for (const animation of kind.prototype.getAnimations.call(root)) hold(animation);
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  }
})
