"""Acting against the tree: what changed lies inside the plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.errors import TreeError
from interlock.gates.patterns import compile_scope
from interlock.gates.rules import MAX_NAMED, listed
from interlock.gates.shared import hidden_count, shared
from interlock.gates.stages.case import Case
from interlock.gates.stages.rules import copied, issue, shown
from interlock.gates.tree import tree_diff
from interlock.reservations import is_ticket_file

_NAMED: Final = 8
_NAME_CHARS: Final = 60


def observed(case: Case) -> Iterator[Finding]:
    """Yield the files that changed outside the plan, or that none changed.

    What git ignores is not observed. The agent's copy of its ticket is no change, and a change that is another agent's
    is none of this one's, inside the plan either.
    """
    seen, root = case.surroundings.observed, case.surroundings.root
    if seen is None:
        return
    diff = tree_diff(seen.before, seen.now)
    rows = (("changed", diff.changed), ("added", diff.added), ("removed", diff.removed))
    changes = {path: what for what, paths in rows for path in paths if not is_ticket_file(root, path)}
    authors, allowed = seen.authors(tuple(changes)), Allowed(seen.allowed)
    others = set(authors.others)
    # A caller with a token learns the names of shared files alone.
    known = shared(root, {*changes, *others}) if case.surroundings.remote else {*changes, *others}
    # Another agent may have held a file of the plan for a moment; what it wrote itself is none of this one's work.
    changes = {
        path: what
        for path, what in changes.items()
        if path not in others or (allowed.covers(path) and path not in authors.theirs)
    }
    theirs = _listed(
        f"{shown(path, _NAME_CHARS)} ({authors.others[path][:_NAME_CHARS]})" for path in authors.others if path in known
    )
    if not changes:
        found = theirs or "the same files as when the plan passed"
        level = "retry" if seen.unchanged == "error" else "warn"
        yield issue("STG602", "", "No file changed while acting.", found)._replace(level=level)
        return
    outside = {path: what for path, what in changes.items() if not allowed.covers(path)}
    scope = _listed(shown(entry, _NAME_CHARS) for entry in seen.allowed)
    yield from _own({path: what for path, what in outside.items() if path in authors.own}, scope)
    unknown = [path for path in outside if path not in authors.own]
    if unknown or others or authors.problem:
        hidden = {*unknown, *others} - known
        named = _listed(shown(path, _NAME_CHARS) for path in unknown if path in known)
        parts = (
            f"author unknown: {named}" if named else "",
            f"changed by others: {theirs}" if theirs else "",
            hidden_count(hidden) if hidden else "",
            f"the reservations cannot be read: {shown(authors.problem)}" if authors.problem else "",
        )
        message = "Files outside the plan changed while you acted, and nothing shows that you changed them."
        found = issue("STG605", "", message, "; ".join(filter(None, parts)))
        is_refused = unknown and seen.unattributed == "error"
        yield found._replace(level="retry", expected=f"changes in {scope}") if is_refused else found


def _own(outside: Mapping[str, str], scope: str) -> Iterator[Finding]:
    """Yield the changes that the agent itself made outside the plan; many of them are one finding."""
    if len(outside) > MAX_NAMED:
        more = _listed(shown(path, _NAME_CHARS) for path in outside)
        message = f"You changed {len(outside)} files outside the plan."
        yield issue("STG601", "", message, more, f"changes in {scope}", "Undo your edits of these files.")
        return
    for path, what in outside.items():
        back = "Remove" if what == "added" else "Restore"
        message = f"You {what} the file {shown(path)}, and the plan does not cover it."
        fix = f"{back} {copied(path)}; if the work needs it, have `[tickets] scope` widened and begin a new run."
        found, expected = f"{copied(path)} {what}, by an edit of yours", f"changes in {scope or 'no file'}"
        yield issue("STG601", "", message, found, expected, fix)


def _listed(rows: Iterable[str]) -> str:
    """List some names in bounded length; nothing where there is none."""
    names = list(rows)
    return listed(names, _NAMED) if names else ""


class Allowed:
    """The paths that a plan covers: plain ones, and patterns; `!` takes out. What is no pattern is a path alone."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._paths = frozenset(entry for entry in entries if not entry.startswith("!"))
        fit = [entry for entry in dict.fromkeys(entries) if _is_pattern(entry.removeprefix("!"))]
        wanted = [entry for entry in fit if not entry.startswith("!")]
        excluded = [entry[1:] for entry in fit if entry.startswith("!")]
        self._inside = compile_scope(wanted) if wanted else None
        self._outside = compile_scope(excluded) if excluded else None

    def covers(self, path: str) -> bool:
        """Return whether a path may change."""
        if self._outside is not None and self._outside.matches(path):
            return False
        return path in self._paths or (self._inside is not None and self._inside.matches(path))


def _is_pattern(text: str) -> bool:
    try:
        compile_scope([text])
    except TreeError:  # a plain path may hold what no pattern may
        return False
    return not text.startswith("!")
