// Isolated world, every frame, before axe: an element's name or id can take the place of a DOM property of its form
// (`<input name="childNodes">`) or of the document, in this world too. A checker that walks the page by such a
// property sees less than is there. Walks by TreeWalker, which nothing can shadow; returns the names found.
(() => {
  const walked = [
    "assignedSlot", "attributes", "body", "childElementCount", "childNodes", "children", "closest",
    "compareDocumentPosition", "contains", "createElement", "defaultView", "documentElement", "firstChild",
    "firstElementChild", "getAttribute", "getAttributeNames", "getAttributeNode", "getBoundingClientRect",
    "getClientRects", "getElementById", "getElementsByTagName", "getRootNode", "hasAttribute", "hasAttributes",
    "hasChildNodes", "isConnected", "lastChild", "lastElementChild", "localName", "matches", "namespaceURI",
    "nextElementSibling", "nextSibling", "nodeName", "nodeType", "nodeValue", "ownerDocument", "parentElement",
    "parentNode", "previousElementSibling", "previousSibling", "querySelector", "querySelectorAll", "shadowRoot",
    "tagName", "textContent",
  ];
  const found = new Set();
  const look = (owner, name) => {
    for (const key of walked) if (Object.hasOwn(owner, key)) found.add(`${name}.${key}`);
  };
  const walk = (root) => {
    const walker = Document.prototype.createTreeWalker.call(document, root, NodeFilter.SHOW_ELEMENT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node instanceof HTMLFormElement) look(node, "form");
      else if (node.shadowRoot) walk(node.shadowRoot);
    }
  };
  look(document, "document");
  walk(document);
  return [...found].sort();
})()
