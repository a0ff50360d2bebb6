"""Whether there is work that is not committed, in any checkout that shares the leases: the question before giving up.

`git.dirty` looks into one checkout. An agent may have its changes in another worktree, or in a submodule, of which git
says no more than that it has changed. What is not known counts as unsaved.
"""

import os
from collections.abc import Sequence

from interlock.reservations import checkouts, git, place
from interlock.reservations.patterns import Pattern, PatternProblem, canonical, matches, overlaps, quote

_LINK = "160000"
"""The mode of a submodule in the index."""


def unsaved(root: str, patterns: Sequence[str]) -> dict[str, bool | None]:
    """Say which patterns cover uncommitted changes in a checkout of the project; None where that cannot be known.

    Args:
        root: A checkout; patterns count from it, and alike from every other one.
        patterns: In canonical form.
    """
    found = place.find(root)
    if not found.common or found.root != root:
        return git.dirty(root, patterns)
    answer: dict[str, bool | None] = dict.fromkeys(patterns, False)
    try:
        for tree in checkouts.roots_of(found):
            seen, links = git.dirty(tree, patterns), _links(tree)
            for text in patterns:
                answer[text] = _both(answer[text], _both(seen[text], _inside(tree, text, links)))
    except git.GitFailed:
        return {text: _both(known, None) for text, known in answer.items()}
    return answer


def _inside(tree: str, text: str, links: Sequence[str]) -> bool | None:
    """Say whether a pattern covers uncommitted changes in repositories inside a checkout."""
    pattern = canonical(text)
    if isinstance(pattern, PatternProblem):
        return None
    if (inner := place.nested(tree, pattern.prefix)) is not None:
        depth = os.path.relpath(inner.root, os.path.realpath(tree)).count("/") + 1
        below = "/".join(text.split("/")[depth:]) or "**"
        return unsaved(inner.root, [below])[below]
    answer: bool | None = False
    for link in links:
        if _reaches(pattern, link) and (inner := place.nested(tree, link)) is not None:
            answer = _both(answer, unsaved(inner.root, ["**"])["**"])
    return answer


def _reaches(pattern: Pattern, link: str) -> bool:
    """Say whether a pattern may cover a file of a submodule."""
    below = canonical(f"{quote(link)}/**")
    return isinstance(below, PatternProblem) or matches(pattern, link) or overlaps(pattern, below)


def _links(tree: str) -> list[str]:
    """Return the paths of a checkout's submodules."""
    rows = git.names(git.ask(tree, ["ls-files", "-s", "-z"]))
    return [path for row in rows if row.startswith(_LINK) for _, _, path in (row.partition("\t"),)]


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Return what two looks say together: unsaved anywhere is unsaved, and what one does not know is not known."""
    if one or other:
        return True
    return None if one is None or other is None else False
