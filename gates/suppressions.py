"""Comments that silence a checker: which of them the new content of a file has and the old one has not.

A line is looked at as text, as most checkers do: a comment inside a string literal counts too. What a checker reads
from its configuration is no comment.
"""

import re
from collections import Counter
from typing import Final

_PYTHON: Final = (
    r"#\s*(?:type:\s*ignore|(?:(?:ruff|flake8):\s*)?noqa|(?:pyright|pyrefly|ty):\s*ignore|pyre-(?:ignore|fixme)"
    r"|pyright:\s*basic|pyright:[^#]*=\s*(?:none|false)|mypy:\s*(?:ignore-errors|disable-error-code)|nosec"
    r"|[^#]*?\bpylint:\s*(?:disable|skip-file)|pragma[:\s]\s*no\s*(?:cover|branch)|fmt:\s*(?:off|skip))(?!\w).*"
)
_SCRIPT: Final = (
    r"(?:(?:eslint|oxlint|stylelint)-disable|@ts-(?:ignore|nocheck|expect-error)|(?:istanbul|[cv]8)\s+ignore"
    r"|(?:biome|prettier|deno-lint)-ignore|tslint:\s*disable|/\*\s*eslint\s[^*]*?:\s*\[?\s*(?:0|[\"']?off))"
    r"(?:(?!\*/|-->).)*"
)
_GO: Final = r"(?://\s*nolint|#nosec|//\s*lint:(?:file-)?ignore|//\s*revive:disable)(?!\w)(?:(?!\*/).)*"
_RUST: Final = r"#!?\s*\[\s*(?:cfg_attr\s*\([^\]#]*?[,\s])?(?:allow|expect)\s*\([^\]]*\]?"
_TABLE: Final = (
    ((".py", ".pyi", ".pyw", ".ipynb"), _PYTHON),
    ((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte", ".astro", ".css"), _SCRIPT),
    ((".go",), _GO),
    ((".rs",), _RUST),
)
"""What the checkers of a language read, from there to the end of the comment."""


def added_suppressions(old: bytes | None, new: bytes, path: str) -> list[tuple[int, str]]:
    """Return the suppressing comments that a change adds to a file, each with its 1-based line in the new content.

    They are counted by their text: one that is moved is not added, one of which there are two now is added once.

    Args:
        old: The content before; None for a new file.
        new: The content now.
        path: What the file is called; its ending says which checkers read it. Of other files nothing is returned.
    """
    pattern = next((regex for endings, regex in _TABLE if path.lower().endswith(endings)), None)
    if pattern is None:
        return []
    # A byte that is no UTF-8 becomes another character in both, which no pattern matches.
    before, now = (_lines(data or b"") for data in (old, new))
    found = [(line, number, match[0].strip()) for number, line in enumerate(now, 1) for match in _found(pattern, line)]
    left = Counter(match[0].strip() for line in before for match in _found(pattern, line))
    kept = set(before)
    added: list[tuple[int, str]] = []
    # What is on a line as it was is what was there before, wherever the same comment is added.
    for _, number, comment in sorted(found, key=lambda row: row[0] not in kept):
        if left[comment]:
            left[comment] -= 1
        else:
            added.append((number, comment))
    return sorted(added)


def _lines(data: bytes) -> list[str]:
    return re.split(r"\r\n|\r|\n", data.decode("utf-8", "replace"))


def _found(pattern: str, line: str) -> "list[re.Match[str]]":
    return list(re.finditer(pattern, line, re.IGNORECASE))
