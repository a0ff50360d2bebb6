"""Acting against the tree and the tasks: what changed lies inside the plan, and success is what was approved."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope, expand
from interlock.gates.stages.case import Case
from interlock.gates.stages.rules import MAX_NAMED, copied, issue, listed, shown
from interlock.gates.stages.stage import Issue
from interlock.gates.stages.tree import revealed
from interlock.gates.tree import tree_diff

_APPROVED: Final = "APPROVED"

_MAX_ENTRIES_NAMED: Final = 8
_MAX_ENTRY_CHARS: Final = 60

_MAX_ALTERNATIVES: Final = 2000
"""So many plain patterns are matched; a pattern beyond counts as a path alone."""


def observed(case: Case) -> Iterator[Issue]:
    """Yield the files that changed outside the plan, or that none changed.

    What git ignores when the stage begins is not observed. What a `.gitignore` hides that changed since then is, but
    for the files that the same rules hid before.
    """
    seen = case.surroundings.observed
    if seen is None:
        return
    diff = tree_diff(seen.before, revealed(case.surroundings.root, seen.before, seen.now))
    if not diff:
        yield issue(
            "STG602" if seen.unchanged == "error" else "STG603",
            "",
            "No file changed while acting.",
            found="the same files as when the plan passed",
            expected="a change that the plan intends",
        )
        return
    allowed = Allowed(seen.allowed)
    outside = [
        (path, what)
        for what, paths in (("changed", diff.changed), ("added", diff.added), ("removed", diff.removed))
        for path in paths
        if not allowed.covers(path)
    ]
    scope = listed([shown(entry, _MAX_ENTRY_CHARS) for entry in seen.allowed], _MAX_ENTRIES_NAMED)
    for number, (path, what) in enumerate(outside[:MAX_NAMED]):
        back = "Remove" if what == "added" else "Restore"
        yield issue(
            "STG601",
            "",
            f"The file {shown(path)} was {what}, and the plan does not cover it.",
            found=f"{copied(path)} {what}",
            expected=f"changes in {scope}" if seen.allowed and not number else "no change outside the plan",
            fix=f"{back} {copied(path)}; if the work needs it, have `[tickets] scope` widened and begin a new run.",
        )
    if len(outside) > MAX_NAMED:
        more = [path for path, _ in outside[MAX_NAMED:]]
        yield issue(
            "STG601",
            "",
            f"{len(more)} more files changed outside the plan.",
            found=listed([shown(path, _MAX_ENTRY_CHARS) for path in more], _MAX_ENTRIES_NAMED),
            expected="changes that the plan covers",
            fix="Restore or remove these files too.",
        )


class Allowed:
    """The paths that a plan covers: plain ones, and patterns; `!` takes out.

    Args:
        entries: Scope patterns and plain paths; what is no pattern counts as a path alone, and so do patterns whose
            braces expand to more than can be matched.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._paths = frozenset(entry for entry in entries if not entry.startswith("!"))
        self._inside = _Patterns(entry for entry in entries if not entry.startswith("!"))
        self._outside = _Patterns(entry[1:] for entry in entries if entry.startswith("!"))

    def covers(self, path: str) -> bool:
        """Say whether a path may change."""
        return (path in self._paths or self._inside.match(path)) and not self._outside.match(path)


class _Patterns:
    """Those of some texts that are scope patterns, compiled once for many paths."""

    def __init__(self, texts: Iterable[str]) -> None:
        fit: list[str] = []
        left = _MAX_ALTERNATIVES
        for text in dict.fromkeys(texts):
            try:
                left -= len(expand(text)) if left > 0 else 0
                if left > 0:
                    compile_scope([text])
                    fit.append(text)
            except TreeError:  # a plain path may hold what no pattern may
                continue
        self._scope = compile_scope(fit) if fit else None
        self._start = self._scope.start if self._scope else frozenset[tuple[int, int]]()

    def match(self, path: str) -> bool:
        """Say whether one of them matches a path."""
        if self._scope is None:
            return False
        at = self._start
        for name in path.split("/"):
            at = self._scope.descend(at, name)
            if not at:
                return False
        return self._scope.accepts(at)


def consistent_outcome(case: Case) -> Iterator[Issue]:
    """Yield a success that the statuses of delegated steps contradict."""
    short = [f"`{step}` {status}" for step, status in case.surroundings.outcomes.items() if status != _APPROVED]
    if short and case.payload.get("outcome") == "success":
        yield issue(
            "STG701",
            "outcome",
            "The outcome says success, and not every delegated step was approved.",
            found=listed(short),
            expected=f"every step {_APPROVED}, or another outcome",
            fix="Write `partial` if some steps were approved, otherwise `blocked`.",
        )
