// Isolated world, every frame: the share, from 0 to 1, of what people see in this document that `inert` or `aria-hidden`
// keeps from assistive technology. The engines pass over it. Counts letters, and a control like a word or two of text.
// While a dialog is open the rest is kept back rightly; it is a dialog only where it is large enough to be seen as one.
(() => {
  const CONTROL = 20;
  const DIALOG = 10_000; // square pixels
  const { matches, checkVisibility, getBoundingClientRect, getAttribute, hasAttribute } = Element.prototype;
  const children = Object.getOwnPropertyDescriptor(Node.prototype, "childNodes").get;
  const above = Object.getOwnPropertyDescriptor(Node.prototype, "parentNode").get;
  const seen = (node) => checkVisibility.call(node, { visibilityProperty: true, opacityProperty: true });
  const isDialog = (node) => {
    if (!matches.call(node, "dialog[open], [role=dialog], [role=alertdialog], [aria-modal=true], :popover-open")) return false;
    const { width, height } = getBoundingClientRect.call(node);
    return width * height >= DIALOG && seen(node);
  };
  const kept = new Map([[document, false]]);
  const roots = [document];
  let all = 0;
  let back = 0;
  for (let i = 0; i < roots.length; i++) {
    const walker = Document.prototype.createTreeWalker.call(document, roots[i], NodeFilter.SHOW_ELEMENT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const isKept =
        kept.get(above.call(node)) || hasAttribute.call(node, "inert") || getAttribute.call(node, "aria-hidden") === "true";
      kept.set(node, isKept);
      if (!isKept && isDialog(node)) return 0;
      if (!(node instanceof HTMLFormElement) && node.shadowRoot) {
        roots.push(node.shadowRoot);
        kept.set(node.shadowRoot, isKept);
      }
      let weight = matches.call(node, "input, select, textarea, button") ? CONTROL : 0;
      for (const child of children.call(node)) if (child instanceof Text) weight += child.data.trim().length;
      if (weight === 0 || !seen(node)) continue;
      all += weight;
      if (isKept) back += weight;
    }
  }
  return all ? Math.round((back / all) * 100) / 100 : 0;
})()
