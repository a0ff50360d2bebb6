// Isolated world, every frame, after axe: run it over this document alone; each frame gets a run of its own.
(async (tags, without) => {
  const result = await axe.run(document, {
    runOnly: { type: "tag", values: tags },
    rules: Object.fromEntries(without.map((rule) => [rule, { enabled: false }])),
    iframes: false,
    elementRef: false,
    preload: false,
    resultTypes: ["violations", "incomplete", "passes", "inapplicable"],
  });
  const { violations, incomplete, passes, inapplicable } = result;
  return { version: result.testEngine.version, violations, incomplete, passes, inapplicable, children: window.length };
})
