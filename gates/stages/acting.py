"""Acting against the tree and the tasks: what changed lies inside the plan, and success is what was approved."""

from collections.abc import Iterator, Sequence
from typing import Final

from interlock.gates.errors import TreeError
from interlock.gates.patterns import Scope, compile_scope
from interlock.gates.stages.case import Case
from interlock.gates.stages.rules import MAX_NAMED, copied, issue, listed, shown
from interlock.gates.stages.stage import Issue
from interlock.gates.tree import tree_diff

_APPROVED: Final = "APPROVED"


def observed(case: Case) -> Iterator[Issue]:
    """Yield the files that changed outside the plan, or that none changed."""
    seen = case.surroundings.observed
    if seen is None:
        return
    diff = tree_diff(seen.before, seen.now)
    if not diff:
        yield issue(
            "STG602" if seen.unchanged == "error" else "STG603",
            "",
            "No file changed while acting.",
            found="the same files as when the plan passed",
            expected="a change that the plan intends",
        )
        return
    allowed = _Allowed(seen.allowed)
    outside = [
        (path, what)
        for what, paths in (("changed", diff.changed), ("added", diff.added), ("removed", diff.removed))
        for path in paths
        if not allowed.covers(path)
    ]
    scope = listed([shown(entry, 80) for entry in seen.allowed])
    for path, what in outside[:MAX_NAMED]:
        back = "Remove" if what == "added" else "Restore"
        yield issue(
            "STG601",
            "",
            f"The file {shown(path)} was {what}, and the plan does not cover it.",
            found=f"{copied(path)} {what}",
            expected=f"changes in {scope}" if seen.allowed else "no change",
            fix=f"{back} {copied(path)}; if the work needs it, have `[tickets] scope` widened and begin a new run.",
        )
    if len(outside) > MAX_NAMED:
        more = [path for path, _ in outside[MAX_NAMED:]]
        yield issue(
            "STG601",
            "",
            f"{len(more)} more files changed outside the plan.",
            found=listed([shown(path, 80) for path in more]),
            expected="changes that the plan covers",
            fix="Restore or remove these files too.",
        )


class _Allowed:
    """The paths that a plan covers: plain ones, and patterns; `!` takes out.

    Args:
        entries: Scope patterns and plain paths; what is no pattern counts as a path alone.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._paths = frozenset(entry for entry in entries if not entry.startswith("!"))
        self._patterns = _compiled(entry for entry in entries if not entry.startswith("!"))
        self._excluded = _compiled(entry[1:] for entry in entries if entry.startswith("!"))

    def covers(self, path: str) -> bool:
        """Say whether a path may change."""
        inside = path in self._paths or any(scope.matches(path) for scope in self._patterns)
        return inside and not any(scope.matches(path) for scope in self._excluded)


def _compiled(patterns: Iterator[str]) -> list[Scope]:
    """Compile what can be compiled."""
    found: list[Scope] = []
    for pattern in dict.fromkeys(patterns):
        try:
            found.append(compile_scope([pattern]))
        except TreeError:  # a plain path may hold what no pattern may
            continue
    return found


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
