"""Distinguishing Interlock's own words in a prompt from what it quotes."""

import re
from typing import Final

_DATA: Final = re.compile(r"^<data from=\"[^\n]*\">\n(?:\|[^\n]*\n)*</data>$", re.MULTILINE)
_DIGEST: Final = re.compile(r"[0-9a-f]{16,64}")


def skeleton(prompt: str) -> str:
    """Return what a prompt says in Interlock's own words: without quotations, with digests alike."""
    return _DIGEST.sub("…", _DATA.sub("<data/>", prompt))


def lines(text: str) -> set[str]:
    """Return the lines of a text without the space around them."""
    return {line.strip() for line in text.splitlines()}
