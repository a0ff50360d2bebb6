"""The engines that check accessibility, and which of their rules count.

Each is one file in this package (`axe/`, `accesslint/`), as its makers published it. There are two, since each misses
what the other finds; where both have a rule for the same thing and one of them is wrong about known cases, that one is
left out.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.gates.collect.errors import collector_error

LISTS: Final = ("violations", "incomplete", "passes", "inapplicable")

TAGS: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice")
"""What axe runs: WCAG 2.2 level AA and everything below it, and good practice, which is a warning."""

PAGE_RULES: Final = (
    "aria-hidden-body",
    "document-title",
    "html-has-lang",
    "meta-viewport",
    "meta-viewport-large",
)
"""Rules of axe about a whole page, which it applies to the outermost document alone."""

AXE_LEFT_OUT: Final = {
    "frame-tested": "each frame gets a run of its own",
    "avoid-inline-spacing": "AccessLint has a rule each for letters, words and lines, and looks at their values",
}
ACCESSLINT_LEFT_OUT: Final = {
    "adaptable/th-has-data-cells": "takes a table of header cells alone for wrong",
    "aria/aria-valid-attr-value": "takes an empty `aria-hidden` for wrong, which means that there is none",
    "labels-and-names/label-placeholder-only": "a placeholder is a name, and WCAG knows no failure of that alone",
    "aria/aria-roles": "takes roles of the modules for graphics and digital publishing for errors",
}
"""Rules that are not run, and why."""

AXE_VERSION: Final = "4.14.1"
ACCESSLINT_VERSION: Final = "0.21.0"

FILES: Final = {
    "axe/axe.min.js": "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
    "accesslint/accesslint-core.js": "410d6af51079f9e80df6a0c0f3b27f5f91afe9706eaef59eaf0f6b89f35fc05e",
}
"""The file of each engine and its SHA-256."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: its text, and the script of this package that runs it over one document.

    The rules `left_out` are not run at all, `page_rules` not in a frame.
    """

    name: str
    version: str
    source: str
    script: str
    left_out: tuple[str, ...]
    page_rules: tuple[str, ...] = ()

    def options(self, *, in_frame: bool) -> str:
        """Return the argument of the script as JSON."""
        without = (*self.left_out, *(self.page_rules if in_frame else ()))
        return json.dumps({"tags": TAGS, "without": without, "inFrame": in_frame})


def load_engines() -> tuple[Engine, ...]:
    """Return the engines, in the order in which they run; COL310 when one is not the file that was published."""
    axe, accesslint = (_published(name) for name in FILES)
    return (
        Engine("axe-core", AXE_VERSION, axe, "audit", tuple(AXE_LEFT_OUT), PAGE_RULES),
        Engine("accesslint", ACCESSLINT_VERSION, accesslint, "accesslint", tuple(ACCESSLINT_LEFT_OUT)),
    )


def _published(name: str) -> str:
    path = Path(__file__).parent / name
    data = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(data).hexdigest() != FILES[name]:
        raise collector_error("COL310", f"`{name}` is not the file that was published.", "Install Interlock again.")
    return data.decode()
