// Isolated world, every frame: bring each animation to its end, or away when it has none, and hide the caret.
(() => {
  for (const animation of Document.prototype.getAnimations.call(document)) {
    try {
      animation.finish();
    } catch {
      animation.cancel(); // endless
    }
  }
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { caret-color: transparent !important; transition: none !important; }");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
})()
