"""Scope patterns: which paths of a tree a task is about.

A pattern is relative to the root and `/`-separated. `*` and `?` match within one name, `[a-z]` and `[!a-z]` (also
`[^a-z]`) match one character, `**` as a whole step matches any number of steps, `{a,b}` means either and may hold `/`.
A final `**` or `/` means everything below. Names that begin with a dot are matched like any other. Matching is by case.
A pattern after `!` takes out what it matches, whatever the others say.
"""

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from interlock.gates.errors import TreeError

MAX_ALTERNATIVES: Final = 1000
"""So many plain patterns the braces of one pattern may expand to."""

_FIX: Final = "Write it like `site/**`, `src/*.py` or `docs/{a,b}.md`."

_ANY_NAME: Final = re.compile(fnmatch.translate("*"))

Steps: TypeAlias = frozenset[tuple[int, int]]
"""Where matching stands: the patterns that still can match, each with its next step."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Compiled patterns, matched step by step so that a walk can leave out what cannot match.

    Args:
        patterns: Each a tuple of steps; a step is a compiled name or None for `**`.
        excluded: What is taken out again, or None.
    """

    patterns: tuple[tuple[re.Pattern[str] | None, ...], ...]
    excluded: "Scope | None" = None
    _reached: dict[Steps, Steps] = field(default_factory=dict[Steps, Steps], repr=False, compare=False)

    @property
    def start(self) -> Steps:
        """Where matching stands at the root."""
        return self._skip(frozenset((i, 0) for i in range(len(self.patterns))))

    def descend(self, at: Steps, name: str) -> Steps:
        """Return where matching stands after one more name; empty when nothing can match any more."""
        following: set[tuple[int, int]] = set()
        for i, step in at:
            if step == len(self.patterns[i]):
                continue
            wanted = self.patterns[i][step]
            if wanted is None:
                following.add((i, step))
            elif wanted.fullmatch(name):
                following.add((i, step + 1))
        return self._skip(frozenset(following))

    def accepts(self, at: Steps) -> bool:
        """Say whether the path that led here is matched."""
        return any(step == len(self.patterns[i]) for i, step in at)

    def matches(self, path: str) -> bool:
        """Say whether one relative path is matched."""
        at = self.start
        for name in path.split("/"):
            at = self.descend(at, name)
        return self.accepts(at) and not self.excludes(path)

    def covers(self, folder: str) -> bool:
        """Say whether every path below a relative folder is sure to be matched."""
        at, out = self.start, self.excluded.start if self.excluded else frozenset[tuple[int, int]]()
        for name in folder.split("/"):
            at = self.descend(at, name)
            out = self.excluded.descend(out, name) if self.excluded else out
        return not out and any(self.patterns[i][step:] == (None, _ANY_NAME) for i, step in at)

    def excludes(self, path: str) -> bool:
        """Say whether one relative path is taken out."""
        return self.excluded is not None and self.excluded.matches(path)

    def _skip(self, at: Steps) -> Steps:
        """Add the places that `**` reaches by matching nothing; files of one folder mostly lead to the same ones."""
        if at in self._reached:
            return self._reached[at]
        reached = set(at)
        pending = list(at)
        while pending:
            i, step = pending.pop()
            if step < len(self.patterns[i]) and self.patterns[i][step] is None and (i, step + 1) not in reached:
                reached.add((i, step + 1))
                pending.append((i, step + 1))
        return self._reached.setdefault(at, frozenset(reached))


def compile_scope(patterns: Iterable[str]) -> Scope:
    """Compile scope patterns.

    Raises:
        TreeError: There is no pattern (`TREE101`), or one is no pattern (`TREE102`).
    """
    given = list(patterns)
    wanted = _compile(pattern for pattern in given if not pattern.startswith("!"))
    excluded = _compile(pattern[1:] for pattern in given if pattern.startswith("!"))
    if not wanted:
        raise TreeError("TREE101", "", "The scope has no pattern.", _FIX)
    return Scope(wanted, Scope(excluded) if excluded else None)


def _compile(patterns: Iterable[str]) -> tuple[tuple[re.Pattern[str] | None, ...], ...]:
    return tuple(
        dict.fromkeys(
            tuple(_step(step, pattern) for step in _steps(plain, pattern))
            for pattern in patterns
            for plain in expand(pattern)
        )
    )


def expand(pattern: str) -> list[str]:
    """Expand the braces of a pattern to plain patterns, in the order of writing.

    Raises:
        TreeError: The braces are unbalanced or expand to more than `MAX_ALTERNATIVES`.
    """
    done: list[str] = []
    pending = [pattern]
    while pending:
        text = pending.pop()
        opened = _innermost(text, pattern)
        if opened is None:
            done.append(text)
        else:
            start, end = opened
            pending.extend(
                text[:start] + choice + text[end + 1 :] for choice in reversed(text[start + 1 : end].split(","))
            )
        if len(done) + len(pending) > MAX_ALTERNATIVES:
            raise _bad(pattern, f"expands to more than {MAX_ALTERNATIVES} patterns")
    return list(dict.fromkeys(done))


def _innermost(text: str, pattern: str) -> tuple[int, int] | None:
    """Find the first pair of braces that holds no other; None when there is none."""
    start = -1
    for at, character in enumerate(text):
        if character == "{":
            start = at
        elif character == "}":
            if start < 0:
                raise _bad(pattern, "has a `}` without `{`")
            return start, at
    if start >= 0:
        raise _bad(pattern, "has a `{` without `}`")
    return None


def _steps(plain: str, pattern: str) -> list[str]:
    """Split a plain pattern into steps and refuse what could leave the tree."""
    if "\\" in plain or any(not character.isprintable() for character in plain):
        raise _bad(pattern, "holds a backslash or a control character")
    if plain.startswith(("/", "~")) or ":" in plain.partition("/")[0]:
        raise _bad(pattern, "is not relative to the root")
    steps = plain.split("/")
    if steps[-1] == "" and len(steps) > 1:
        steps[-1] = "**"
    for step in steps:
        if step in {"", ".", ".."}:
            raise _bad(pattern, f"has the step `{step}`" if step else "is empty or has an empty step")
    if steps[0] in {".git", ".interlock", "artifacts"}:
        raise _bad(pattern, f"names `{steps[0]}`, which is never part of a scope")
    return [*steps, "*"] if steps[-1] == "**" else steps


def _step(step: str, pattern: str) -> re.Pattern[str] | None:
    """Compile one step; None stands for `**`."""
    if step == "**":
        return None
    opened = step.find("[")
    while opened >= 0:
        inverted = step[opened + 1 : opened + 2] in {"!", "^"}
        if inverted:
            step = f"{step[: opened + 1]}!{step[opened + 2 :]}"
        first = opened + (2 if inverted else 1)
        closed = step.find("]", first + 1)
        if closed < 0:
            raise _bad(pattern, "has a `[` without `]`")
        opened = step.find("[", closed)
    return re.compile(fnmatch.translate(step))


def _bad(pattern: str, what: str) -> TreeError:
    """Make the error of one pattern."""
    return TreeError("TREE102", pattern, f"The scope pattern {pattern[:200]!r} {what}.", _FIX)
