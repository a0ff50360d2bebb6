"""What kind of source an evidence item is from: one plain word, so that none only looks like `repo`."""

import json
import re
import unicodedata
from typing import Final

from interlock.core.finding import Finding
from interlock.core.text import closest
from interlock.gates.stages.rules import issue

REPO: Final = "repo"

_WORD: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_HONEST: Final = (REPO, "web", "ticket", "doc", "api", "user")


def kind_issue(kind: str, place: str) -> Finding | None:
    """Return the finding of a `source_type` that is no plain word, or None."""
    if _WORD.fullmatch(kind):
        return None
    word = _nearest(kind)
    expected = "`repo`, or a letter from a to z, then at most 31 small letters, digits, `_` or `-`"
    fix = f"Write `{word}`." if word else "Write `repo`, or a word such as `web`, `ticket` or `doc`."
    return issue("STG301", place, f"`{place}` is no plain word.", json.dumps(kind[:60]), expected, fix)


def _nearest(kind: str) -> str | None:
    """Return the word that was probably meant: a usual one where letters only look like those of ASCII."""
    text = unicodedata.normalize("NFKC", kind[:200]).strip().casefold()
    plain = re.sub(r"[^a-z0-9_-]", "", re.sub(r"[\s/.:]+", "-", text)).strip("-")
    if not text.isascii() and (near := closest(plain, _HONEST, 0.8)):
        return near
    return plain if _WORD.fullmatch(plain) else None
