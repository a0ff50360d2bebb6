// Isolated world, every frame, after AccessLint: run it over this document, and give its results the form of axe's.
// It names violations alone, so that a rule without any has passed or was not needed. It is made for HTML.
(({ without, inFrame }) => {
  const body = Object.getOwnPropertyDescriptor(Document.prototype, "body").get.call(document);
  const lists = { violations: [], incomplete: [], passes: [], inapplicable: [] };
  if (!(body instanceof HTMLBodyElement)) return { broken: [], lists };
  const options = { disabledRules: without, componentMode: inFrame };
  const { violations, skippedRules } = AccessLint.runAudit(document, options);
  const order = ["minor", "moderate", "serious", "critical"];
  for (const { id, description, level, wcag, tags = [] } of AccessLint.getActiveRules(options)) {
    const nodes = violations
      .filter((violation) => violation.ruleId === id)
      .map(({ selector, html, impact, message }) => ({ target: [selector], html, impact, failureSummary: message }));
    const impact = nodes.reduce((worst, node) => (order.indexOf(node.impact) > order.indexOf(worst) ? node.impact : worst), null);
    const rule = { id, impact, tags: [...tags, `level-${level}`, ...wcag], description, help: description, helpUrl: null, nodes };
    lists[nodes.length ? "violations" : "passes"].push(rule);
  }
  return { broken: skippedRules.map(({ ruleId, error }) => `${ruleId}: ${error}`), lists };
})
