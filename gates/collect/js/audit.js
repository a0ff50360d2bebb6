// Isolated world, every frame, after axe: run it over this document alone; each frame gets a run of its own.
(async ({ tags, without }) => {
  // axe takes a dialog for modal by what lies ten pixels outside its corner, and leaves everything else out. A page can
  // pretend that, and what lies behind a real one is there as soon as it is closed. So axe finds nothing by points.
  const nothing = { value: () => [] };
  Object.defineProperty(Document.prototype, "elementsFromPoint", nothing);
  Object.defineProperty(document, "elementsFromPoint", { ...nothing, configurable: true });
  // The selectors that read well take minutes in a tree of some hundred levels; there it is the whole way down.
  const above = Object.getOwnPropertyDescriptor(Node.prototype, "parentNode").get;
  const depths = new Map([[document, 0]]);
  const walker = Document.prototype.createTreeWalker.call(document, document, NodeFilter.SHOW_ELEMENT);
  let deepest = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const depth = depths.get(above.call(node)) + 1;
    depths.set(node, depth);
    deepest = Math.max(deepest, depth);
  }
  const deep = deepest > 60;
  const result = await axe.run(document, {
    runOnly: { type: "tag", values: tags },
    rules: Object.fromEntries(without.map((rule) => [rule, { enabled: false }])),
    iframes: false,
    elementRef: false,
    selectors: !deep,
    ancestry: deep,
    preload: false,
    resultTypes: ["violations", "incomplete", "passes", "inapplicable"],
  });
  const { violations, incomplete, passes, inapplicable } = result;
  if (deep) for (const rule of [...violations, ...incomplete, ...passes]) for (const node of rule.nodes) node.target = node.ancestry;
  // A rule that fails itself is put with those that could not decide. It may in a document that is not HTML, as where
  // contrast is to be measured in SVG; there a person has to look.
  const body = Object.getOwnPropertyDescriptor(Document.prototype, "body").get.call(document);
  const broken = body ? incomplete.flatMap(({ id, error }) => (error ? [`${id}: ${error.message}`] : [])) : [];
  return { broken, lists: { violations, incomplete, passes, inapplicable } };
})
