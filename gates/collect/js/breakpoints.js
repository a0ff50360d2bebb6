// Isolated world, main frame: the widths, in CSS pixels, from which on the page's style sheets lay it out otherwise.
(() => {
  const found = new Set();
  const read = (text) => {
    if (!text.includes("width")) return;
    for (const [, before, number, unit] of text.matchAll(/(max-[a-z-]*:|<=|>)?\s*([\d.]+)(px|r?em)\b/g)) {
      const from = Number(number) * (unit === "px" ? 1 : 16) + (before && before !== ">=" ? 0.02 : 0);
      if (from > 0 && from < 10_000) found.add(from);
    }
  };
  const walk = (rules) => {
    for (const rule of rules) {
      if (rule instanceof CSSMediaRule) read(rule.conditionText);
      if (rule instanceof CSSImportRule) walkSheet(rule.styleSheet);
      else if (rule.cssRules?.length) walk(rule.cssRules);
    }
  };
  const walkSheet = (sheet) => {
    if (!sheet) return;
    read(sheet.media.mediaText);
    try {
      walk(sheet.cssRules);
    } catch {
      // A sheet of another origin is not to be read.
    }
  };
  for (const sheet of [...document.styleSheets, ...(document.adoptedStyleSheets ?? [])]) walkSheet(sheet);
  for (const source of document.querySelectorAll("source[media]")) read(source.media);
  return [...found].slice(0, 1000);
})()
