"""Whether there is work that is not committed, in any checkout that shares the leases: the question before giving up.

`commands.dirty` looks into one checkout. An agent may have its changes in another worktree, or in a submodule, of which
git says no more than that it has changed. What is not known counts as unsaved.
"""

import os
import time
from collections.abc import Callable, Sequence

from interlock.core.finding import Finding
from interlock.reservations import place
from interlock.reservations.git import checkouts, commands
from interlock.reservations.patterns import Pattern, canonical, matches, overlaps, quote


def unsaved(
    root: str, patterns: Sequence[str], seconds: float | None = None, clock: Callable[[], float] = time.monotonic
) -> dict[str, bool | None]:
    """Say which patterns cover uncommitted changes in a checkout of the project; None where that cannot be known.

    The checkout at `root` is looked into first; patterns count from it, and alike from every other one. After so many
    seconds no further one is, and what was not found by then is not known.
    """
    begun = clock()
    answer: dict[str, bool | None] = dict.fromkeys(patterns, False)
    try:
        for number, tree in enumerate(checkouts.roots_of(place.at(root))):
            left = [text for text in patterns if not answer[text]]
            if number and (not left or (seconds is not None and clock() - begun >= seconds)):
                return {text: _both(known, None) for text, known in answer.items()}
            for text, known in _in_checkout(tree, left, seconds).items():
                answer[text] = _both(answer[text], known)
    except commands.GitError:
        return {text: _both(known, None) for text, known in answer.items()}
    return answer


def _in_checkout(tree: str, patterns: Sequence[str], seconds: float | None) -> dict[str, bool | None]:
    """Say which patterns cover uncommitted changes in a checkout, and in the repositories inside it."""
    read = {text: pattern for text in patterns if isinstance(pattern := canonical(text), Pattern)}
    inner = {text: found for text, pattern in read.items() if (found := place.nested(tree, pattern.prefix))}
    seen = commands.dirty(tree, patterns)
    is_git = bool(place.at(tree).common)
    beginnings = [commands.beginning(pattern.prefix) for text, pattern in read.items() if text not in inner]
    links = commands.links(tree, beginnings) if is_git and beginnings else []
    for text, pattern in read.items():
        if (found := inner.get(text)) is not None:
            depth = os.path.relpath(found.root, os.path.realpath(tree)).count("/") + 1
            below = "/".join(text.split("/")[depth:]) or "**"
            # Git says nothing about the files of a repository inside another one.
            seen[text] = unsaved(found.root, [below], seconds)[below]
            continue
        for link in links:
            below = canonical(f"{quote(link)}/**")
            reaches = isinstance(below, Finding) or matches(pattern, link) or overlaps(pattern, below)
            if reaches and (found := place.nested(tree, link)) is not None:
                seen[text] = _both(seen[text], unsaved(found.root, ["**"], seconds)["**"])
    return seen


def _both(one: bool | None, other: bool | None) -> bool | None:
    """Return what two looks say together: unsaved anywhere is unsaved, and what one does not know is not known."""
    if one or other:
        return True
    return None if one is None or other is None else False
