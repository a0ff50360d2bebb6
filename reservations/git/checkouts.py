"""The checkouts that share a store, the journals in them, and whether work in them is not committed.

`commands.dirty` looks into one checkout. An agent may have its changes in another worktree, or in a submodule. What is
not known counts as unsaved.
"""

import os
import os.path
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from interlock.core.patterns import Pattern, canonical
from interlock.reservations import place
from interlock.reservations.git import commands

if TYPE_CHECKING:
    from interlock.journal import Journal


def roots_of(found: place.Place) -> list[str]:
    """Return the checkouts of a project: its worktrees that are there, its own root first."""
    if not found.common or not os.path.isdir(os.path.join(found.common, "worktrees")):
        return [found.root]
    rows = os.fsdecode(commands.ask(found.root, ["worktree", "list", "--porcelain"])).split("\n")
    trees = [os.path.realpath(row.removeprefix("worktree ")) for row in rows if row.startswith("worktree ")]
    return list(dict.fromkeys([found.root, *(tree for tree in trees if os.path.isdir(tree))]))


def journals_of(roots: Sequence[str], files: Sequence[str] = ()) -> list["Journal"]:
    """Return the journals of some checkouts, as far as they are there, and those in some files besides."""
    from interlock.journal import Journal, journal_of  # noqa: PLC0415 - slow to load, and git alone may be wanted

    own = [journal_of(root) for root in roots]
    own[0].pull()  # with a database, each of them has all lines
    journals = {str(journal.path): journal for journal in own if journal.path.exists()}
    for path in files:
        journals.setdefault(path, Journal(path))
    return [*journals.values()]


def unsaved(root: str, patterns: Sequence[str], seconds: float | None = None) -> dict[str, bool | None]:
    """Return whether each pattern covers uncommitted changes in a checkout of the project; None if not known.

    Args:
        root: A checkout, which is looked into first; patterns count from it, and alike from every other one.
        seconds: After this time no further checkout is looked into, and what was not found by then is not known.
    """
    begun = time.monotonic()
    answer: dict[str, bool | None] = dict.fromkeys(patterns, False)
    try:
        for number, tree in enumerate(roots_of(place.at(root))):
            left = [text for text in patterns if not answer[text]]
            if number and (not left or (seconds is not None and time.monotonic() - begun >= seconds)):
                return {text: _both(known, None) for text, known in answer.items()}
            for text, known in _in_checkout(tree, left, seconds).items():
                answer[text] = _both(answer[text], known)
    except commands.GitError:
        return {text: _both(known, None) for text, known in answer.items()}
    return answer


def _in_checkout(tree: str, patterns: Sequence[str], seconds: float | None) -> dict[str, bool | None]:
    """Return whether each pattern covers uncommitted changes in a checkout; a repository inside it is asked itself."""
    seen = commands.dirty(tree, patterns)
    for text in patterns:
        pattern = canonical(text)
        inner = place.nested(tree, pattern.prefix) if isinstance(pattern, Pattern) else None
        if inner is not None:
            depth = os.path.relpath(inner.root, os.path.realpath(tree)).count("/") + 1
            below = "/".join(text.split("/")[depth:]) or "**"
            seen[text] = unsaved(inner.root, [below], seconds)[below]
    return seen


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Return what two looks say together: unsaved anywhere is unsaved, and what one does not know is not known."""
    if one or other:
        return True
    return None if one is None or other is None else False
