"""Sphinx: how the documentation is built. `make docs` runs it; the reference is written from the tables before."""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from interlock import __version__  # noqa: E402 - from the folder above, and below
from interlock.catalog import catalog  # noqa: E402
from scripts.reference import write  # noqa: E402

project = "Interlock"
release = version = __version__
copyright = "The Interlock authors"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "none"
smartquotes = False
nitpicky = True
html_theme = "furo"
html_title = "Interlock"
html_static_path = ["static"]
html_css_files = ["interlock.css"]
html_show_sourcelink = False
html_copy_source = False

CODE = re.compile(r"\b[A-Z]{3,4}\d{3}\b")
"""What looks like the code of a rule."""


def link_codes(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Lead from each code in a text to its rule."""
    for text in list(tree.findall(nodes.Text)):
        if any(isinstance(each, nodes.reference | nodes.literal_block | nodes.title) for each in _above(text)):
            continue
        parts: list[nodes.Node] = []
        at = 0
        for found in CODE.finditer(text.astext()):
            if found[0] in RULES:
                target = f"reference/rules/{found[0].rstrip('0123456789').lower()}"
                uri = f"{app.builder.get_relative_uri(page, target)}#{found[0].lower()}"
                parts.append(nodes.Text(text[at : found.start()]))
                parts.append(nodes.reference(found[0], found[0], refuri=uri, internal=True))
                at = found.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[at:])])


def _above(node: nodes.Node) -> list[nodes.Node]:
    """Return what a node lies in, the nearest first."""
    found: list[nodes.Node] = []
    while (node := node.parent) is not None:
        found.append(node)
    return found


RULES = frozenset(catalog())


def setup(app: Sphinx) -> None:
    """Write the reference, and have codes linked."""
    write(HERE / "reference")
    app.connect("doctree-resolved", link_codes)
