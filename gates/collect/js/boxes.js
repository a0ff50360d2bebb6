// Isolated world, the document of the page, after the engines: where the elements lie that they name, as x, y, width and
// height in CSS pixels from the corner of the page; null for what is not found or takes no space.
(targets) => {
  const { getBoundingClientRect } = Element.prototype;
  const find = (target) => {
    let node = null;
    let root = document;
    for (const selector of target.flat()) {
      const { querySelector } = root === document ? Document.prototype : DocumentFragment.prototype;
      node = querySelector.call(root, selector);
      root = node.shadowRoot;
    }
    return node;
  };
  return targets.map((target) => {
    try {
      const { x, y, width, height } = getBoundingClientRect.call(find(target));
      return width && height ? [x + scrollX, y + scrollY, width, height].map(Math.round) : null;
    } catch {
      return null; // a selector of an engine's own language, or an element that has gone
    }
  });
}
