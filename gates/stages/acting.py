"""Acting against the tree and the tasks: what changed lies inside the plan, and success is what was approved."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.errors import TreeError
from interlock.gates.git_files import revealed
from interlock.gates.patterns import compile_scope, expand
from interlock.gates.shared import hidden_count, shared
from interlock.gates.stages.case import Case, texts_at
from interlock.gates.stages.rules import MAX_NAMED, copied, issue, listed, shown
from interlock.gates.stages.stage import Observed
from interlock.gates.tree import tree_diff
from interlock.reservations import Authors, is_ticket_file

_APPROVED: Final = "APPROVED"

_MAX_ENTRIES_NAMED: Final = 8
_MAX_ENTRY_CHARS: Final = 60

_MAX_ALTERNATIVES: Final = 2000
"""So many plain patterns are matched; a pattern beyond counts as a path alone."""


def observed(case: Case) -> Iterator[Finding]:
    """Yield the files that changed outside the plan, or that none changed.

    What git ignores when the stage begins is not observed. What a `.gitignore` hides that changed since then is, but
    for the files that the same rules hid before. The agent's copy of its ticket is no change, and a change that is
    another agent's is none of this one's, inside the plan either.
    """
    seen = case.surroundings.observed
    if seen is None:
        return
    root = case.surroundings.root
    diff = tree_diff(seen.before, revealed(root, seen.before, seen.now))
    rows = (("changed", diff.changed), ("added", diff.added), ("removed", diff.removed))
    changes = {path: what for what, paths in rows for path in paths if not is_ticket_file(root, path)}
    authors, allowed = seen.authors(tuple(changes)), Allowed(seen.allowed)
    known = shared(root, changes) if case.surroundings.remote else None
    # Another agent may have held a file of the plan for a moment; what it wrote itself is none of this one's work.
    changes = {
        path: what
        for path, what in changes.items()
        if path not in authors.others or (allowed.covers(path) and path not in authors.theirs)
    }
    if not changes:
        found = _theirs(authors, known) or "the same files as when the plan passed"
        yield issue("STG602" if seen.unchanged == "error" else "STG603", "", "No file changed while acting.", found)
        return
    scope = listed([shown(entry, _MAX_ENTRY_CHARS) for entry in seen.allowed], _MAX_ENTRIES_NAMED)
    outside = {path: what for path, what in changes.items() if not allowed.covers(path)}
    yield from _own([(path, what) for path, what in outside.items() if path in authors.own], scope)
    unknown = [path for path in outside if path not in authors.own]
    claimed = list(_claimed(case, unknown if known is None else [path for path in unknown if path in known]))
    yield from (finding for _, finding in claimed)
    rest = [path for path in unknown if path not in {path for path, _ in claimed}]
    if rest or authors.others or authors.problem:
        yield _unattributed(rest, authors, seen, scope, known)


def _own(outside: Sequence[tuple[str, str]], scope: str) -> Iterator[Finding]:
    """Yield the changes that the agent itself made outside the plan."""
    for number, (path, what) in enumerate(outside[:MAX_NAMED]):
        back = "Remove" if what == "added" else "Restore"
        message = f"You {what} the file {shown(path)}, and the plan does not cover it."
        expected = f"changes in {scope}" if scope != "none" and not number else "no change outside the plan"
        fix = f"{back} {copied(path)}; if the work needs it, have `[tickets] scope` widened and begin a new run."
        yield issue("STG601", "", message, f"{copied(path)} {what}, by an edit of yours", expected, fix)
    if len(outside) > MAX_NAMED:
        more = [shown(path, _MAX_ENTRY_CHARS) for path, _ in outside[MAX_NAMED:]]
        message, fix = f"You changed {len(more)} more files outside the plan.", "Undo your edits of these files too."
        yield issue("STG601", "", message, listed(more, _MAX_ENTRIES_NAMED), fix=fix)


def _claimed(case: Case, paths: Sequence[str]) -> Iterator[tuple[str, Finding]]:
    """Yield each of some paths that the agent says it changed, by its name as a word of its own."""
    for at, text in texts_at(case.payload, "actions_taken"):
        for path in paths:
            if re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-]|\.\w)", text):
                message = f"The action names {shown(path)}, which changed, and the plan does not cover it."
                fix = (
                    f"If you did not change {copied(path)}, leave it out of the action. If you did, tell the user, who "
                    "can have `[tickets] scope` widened for a new run."
                )
                yield path, issue("STG606", f"actions_taken[{at}]", message, shown(text), fix=fix)


def _unattributed(
    paths: Sequence[str], authors: Authors, seen: Observed, scope: str, known: Set[str] | None
) -> Finding:
    """Name what changed outside the plan and is not known to be the agent's, and what is others'.

    `scope` is what the plan covers, as a text; `known` are the files that may be named, None for all.
    """
    named = [shown(path, _MAX_ENTRY_CHARS) for path in paths if known is None or path in known]
    found = [f"author unknown: {listed(named, _MAX_ENTRIES_NAMED)}"] if named else []
    found += [f"changed by others: {theirs}"] if (theirs := _theirs(authors, known)) else []
    found += [hidden_count(rest)] if known is not None and (rest := {*paths, *authors.others}.difference(known)) else []
    found += [f"the reservations cannot be read: {shown(authors.problem)}"] if authors.problem else []
    message = "Files outside the plan changed while you acted, and nothing shows that you changed them."
    if not (paths and seen.unattributed == "error"):
        return issue("STG605", "", message, "; ".join(found), "none of yours; others may work here")
    fix = (
        "Tell the user about them: this checkout is set to be yours alone (`[tickets] unattributed`), so a person has "
        "to decide what becomes of these files."
    )
    return issue("STG607", "", message, "; ".join(found), f"changes in {scope}", fix)


def _theirs(authors: Authors, known: Set[str] | None) -> str:
    """Name the files of others that may be named; `known` as for `_unattributed`."""
    rows = [
        f"{shown(path, _MAX_ENTRY_CHARS)} ({how[:_MAX_ENTRY_CHARS]})"
        for path, how in authors.others.items()
        if known is None or path in known
    ]
    return listed(rows, _MAX_ENTRIES_NAMED) if rows else ""


class Allowed:
    """The paths that a plan covers: plain ones, and patterns; `!` takes out.

    What is no pattern counts as a path alone, and so do patterns whose braces expand to more than can be matched.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._paths = frozenset(entry for entry in entries if not entry.startswith("!"))
        self._inside = _Patterns(entry for entry in entries if not entry.startswith("!"))
        self._outside = _Patterns(entry[1:] for entry in entries if entry.startswith("!"))

    def covers(self, path: str) -> bool:
        """Return whether a path may change."""
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
        if self._scope is None:
            return False
        at = self._start
        for name in path.split("/"):
            at = self._scope.descend(at, name)
            if not at:
                return False
        return self._scope.accepts(at)


def consistent_outcome(case: Case) -> Iterator[Finding]:
    """Yield a success that the statuses of delegated steps contradict."""
    short = [f"`{step}` {status}" for step, status in case.surroundings.outcomes.items() if status != _APPROVED]
    if short and case.payload.get("outcome") == "success":
        message = "The outcome says success, and not every delegated step was approved."
        fix = "Write `partial` if some steps were approved, otherwise `blocked`."
        yield issue("STG701", "outcome", message, listed(short), f"every step {_APPROVED}, or another outcome", fix)
