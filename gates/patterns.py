"""Scope patterns: which paths of a tree a task is about.

A pattern is written in the language of leases (`interlock.core.patterns`), relative to the root. Names that
begin with a dot are matched like any other. Matching is by case. A pattern after `!` takes out what it matches,
whatever the others say.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from interlock.core import patterns
from interlock.core.finding import Finding, FindingError
from interlock.core.patterns import DOUBLE, Part
from interlock.gates.errors import TreeError

Step: TypeAlias = re.Pattern[str] | None
"""What one name of a path must match; None stands for any number of names, none included."""
ANY_NAME: Final = patterns.name_expression(patterns.ANY_NAME)

_FIX: Final = "Write it like `site/**`, `src/*.py` or `docs/{a,b}.md`."

Steps: TypeAlias = frozenset[tuple[int, int]]
"""The state of matching: the patterns that still can match, each with its next step."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Compiled patterns, matched step by step so that a walk can leave out what cannot match.

    A pattern is a tuple of steps, each a compiled name or None for `**`; `excluded` is what is taken out again.
    """

    patterns: tuple[tuple[Step, ...], ...]
    excluded: "Scope | None" = None
    _reached: dict[Steps, Steps] = field(default_factory=dict[Steps, Steps], repr=False, compare=False)

    @property
    def start(self) -> Steps:
        """The state of matching at the root."""
        return self._skip(frozenset((i, 0) for i in range(len(self.patterns))))

    def descend(self, at: Steps, name: str) -> Steps:
        """Return the state of matching after one more name; empty when nothing can match any more."""
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
        """Return whether the path that led here is matched."""
        return any(step == len(self.patterns[i]) for i, step in at)

    def takes_all(self, at: Steps) -> bool:
        """Return whether every file below the path that led here is matched, as below the folder of `src/**`."""
        return any(self.patterns[i][step:] == (None, ANY_NAME) for i, step in at)

    def matches(self, path: str) -> bool:
        """Return whether one relative path is matched."""
        at = self.start
        for name in path.split("/"):
            at = self.descend(at, name)
        return self.accepts(at) and not self.excludes(path)

    def excludes(self, path: str) -> bool:
        """Return whether one relative path is taken out."""
        return self.excluded is not None and self.excluded.matches(path)

    def _skip(self, at: Steps) -> Steps:
        """Add the places that `**` reaches by matching nothing; files of one folder mostly lead to the same ones."""
        # Thousands of files lead to a few states, which are worked out once each.
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


def compile_scope(scope: Iterable[str]) -> Scope:
    """Compile scope patterns; `TREE101` where there is none, `TREE102` where one is no pattern."""
    given = list(scope)
    wanted = _compile(pattern for pattern in given if not pattern.startswith("!"))
    excluded = _compile(pattern[1:] for pattern in given if pattern.startswith("!"))
    # A scope of exclusions alone would hold no file, and every verdict on it would stay good for ever.
    if not wanted:
        raise TreeError("TREE101", "", "The scope has no pattern.", _FIX)
    return Scope(wanted, Scope(excluded) if excluded else None)


def _compile(scope: Iterable[str]) -> tuple[tuple[Step, ...], ...]:
    return tuple(dict.fromkeys(alternative for pattern in scope for alternative in _alternatives(pattern)))


def expand(pattern: str) -> list[str]:
    """Return the patterns that one with braces expands to, in the order of writing; `TREE102` for none, or too many."""
    try:
        return patterns.expand(pattern)
    except FindingError as error:
        raise _refused(pattern, error.finding) from error


@lru_cache(maxsize=1024)
def _alternatives(pattern: str) -> list[tuple[Step, ...]]:
    """Read a pattern, and refuse what could leave the tree or is never part of a scope."""
    for plain in expand(pattern):
        steps = plain.split("/")
        if ":" in steps[0]:
            raise _bad(pattern, "is not relative to the root")
        if any(step in {"", ".", ".."} for step in (steps[:-1] if len(steps) > 1 and not steps[-1] else steps)):
            raise _bad(pattern, "is empty, or has a step that is empty, `.` or `..`")
        if steps[0] in {".git", ".interlock", "artifacts"}:
            raise _bad(pattern, f"names `{steps[0]}`, which is never part of a scope")
    try:
        alternatives = patterns.alternatives_of(pattern)
    except FindingError as error:
        raise _refused(pattern, error.finding) from error
    return [_steps(parts) for parts in alternatives]


def _steps(parts: tuple[Part, ...]) -> tuple[Step, ...]:
    """Everything below a folder is any number of names and then one."""
    steps = [None if part == DOUBLE else patterns.name_expression(part) for part in parts]
    return (*steps, ANY_NAME) if parts[-1] == DOUBLE else tuple(steps)


def _refused(pattern: str, problem: Finding) -> TreeError:
    return TreeError("TREE102", pattern, f"The scope pattern {pattern[:200]!r}: {problem.message}", problem.fix)


def _bad(pattern: str, what: str) -> TreeError:
    return TreeError("TREE102", pattern, f"The scope pattern {pattern[:200]!r} {what}.", _FIX)
