"""Changes outside the scope between an assignment and its hand-over: noticed in every run, whatever its gates.

The listing of the assignment holds stamps alone, so that a look costs no reading. A file whose stamp differs and whose
content is that of the base was only touched. Nobody is told to undo anything: another agent or a person may work there.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from interlock.agents.ask import agent_of_run
from interlock.agents.changes import ChangedFile, ChangeKind, unified
from interlock.core.files import write_atomically
from interlock.gates.patterns import Scope, compile_scope
from interlock.gates.sealed import EVIDENCE, Base, SealError, Stamp, list_tree, read_entry
from interlock.gates.shared import shared, untold
from interlock.gates.tree import left_out
from interlock.graph.task.sealing import base_of, place_in
from interlock.graph.task.state import Outside
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.redaction import Redactor
from interlock.reservations import ReservationError, open_reservations

MAX_NAMED: Final = 200
_MAX_ASKED: Final = 50
_PRIVATE: Final = "[git ignores it, or its name begins with a dot and git does not track it: not shown]"


def keep_listing(root: Path, task: Task, store: RunStore, sealing: Mapping[str, Any]) -> None:
    """Keep what the project looks like when work is first assigned; of a tree that cannot be listed, nothing."""
    path = _listing_path(store)
    if path.exists():
        return
    with suppress(SealError):
        files = _listed(*place_in(root, sealing), compile_scope(task.scope))
        write_atomically(path, json.dumps(files, separators=(",", ":")).encode("ascii"))


def changes_outside(
    root: Path, task: Task, store: RunStore, sealing: Mapping[str, Any], *, reserve: bool
) -> list[Outside]:
    """Return the files outside the scope that changed since work was first assigned, at most `MAX_NAMED`."""
    try:
        read: Any = json.loads(_listing_path(store).read_bytes())
        before = {str(path): Stamp(*row) for path, row in read.items()}
        top, relative = place_in(root, sealing)
        scope = compile_scope(task.scope)
        now = _listed(top, relative, scope)
    except (OSError, ValueError, TypeError, AttributeError, SealError):
        return []
    base = base_of(root, sealing)
    touched = [path for path in before.keys() | now.keys() if before.get(path) != now.get(path)]
    found = [
        Outside(path=path, kind=kind, holder="")
        for inside in sorted(touched)
        if (path := _outside(inside, relative, scope)) is not None
        and (kind := _kind(inside, before, now, top, base)) is not None
    ][:MAX_NAMED]
    return _with_holders(root, store, found) if reserve else found


def diffs_outside(root: Path, rows: list[Outside], sealing: Mapping[str, Any], redactor: Redactor) -> list[ChangedFile]:
    """Return the changes as a reviewer is shown them, with a diff where the content at the start is known.

    Of private files, which `gates.shared` tells nobody of who may not read the project's files, there is none.
    """
    base = base_of(root, sealing)
    told, inside = frozenset[str](), dict[str, str]()
    with suppress(SealError):
        top, relative = place_in(root, sealing)
        inside = {row["path"]: os.path.normpath(f"{relative or os.curdir}/{row['path']}") for row in rows}
        told = shared(top, inside.values())
    return [
        ChangedFile(
            row["path"],
            row["kind"],
            in_scope=False,
            holder=row["holder"],
            diff=redactor.text(_diff(row, base)) if inside.get(row["path"]) in told else _PRIVATE,
        )
        for row in rows
    ]


def as_told(root: Path, files: Sequence[ChangedFile]) -> list[ChangedFile]:
    """Return changes as somebody is shown them who may not read the project's files: private ones are only counted."""
    told = shared(root, [file.path for file in files])
    hidden = [file.path for file in files if file.path not in told]
    shown = [file for file in files if file.path in told]
    return [*shown, ChangedFile(untold(hidden), "changed", in_scope=False)] if hidden else shown


def _listing_path(store: RunStore) -> Path:
    return store.folder / "trees" / "project.json"


def _listed(top: Path, relative: str, scope: Scope) -> dict[str, Stamp]:
    """List the files of the checkout, but for folders that are in scope with all that they hold."""

    def covered(inside: str) -> bool:
        path = os.path.relpath(inside, relative) if relative else inside
        return path != "." and not path.startswith("..") and scope.covers(path)

    return list_tree(top, relative, but=covered).files


def _outside(inside: str, relative: str, scope: Scope) -> str | None:
    """Return the path relative to the root, or None for a file of the scope and for evidence."""
    path = os.path.relpath(inside, relative) if relative else inside
    if path.startswith(f"{EVIDENCE}/"):
        return None
    return None if not path.startswith("../") and not left_out(path) and scope.matches(path) else path


def _kind(
    path: str, before: Mapping[str, Stamp], now: Mapping[str, Stamp], top: Path, base: Base | None
) -> ChangeKind | None:
    """Return what became of a file whose stamp is another; None when it was only touched."""
    if path not in now:
        return "removed"
    if path not in before:
        return "added"
    entry = None if base is None else base.files.get(path)
    if entry is not None:
        with suppress(SealError):
            return None if read_entry(top, path)[0] == entry else "changed"
    return "changed"


def _with_holders(root: Path, store: RunStore, rows: list[Outside]) -> list[Outside]:
    """Return the rows with the agents that hold these files now; where that cannot be known, nobody is named."""
    holders: dict[str, str] = {}
    with suppress(ReservationError):
        mine = open_reservations(str(root), "run", name=agent_of_run(store.run_id))
        try:
            asked = [row["path"] for row in rows[:_MAX_ASKED] if not row["path"].startswith("../")]
            for conflict in mine.check_conflicts(asked)["conflicts"] if asked else []:
                holders.setdefault(conflict["pattern"], conflict["holder"])
        finally:
            mine.runtime.store.close()
    return [Outside(path=row["path"], kind=row["kind"], holder=holders.get(row["path"], "")) for row in rows]


def _diff(row: Outside, base: Base | None) -> str:
    """Return the difference of one file, or one line that says why there is none."""
    if base is None:
        return "[not compared: the content at the start of the run was not kept]"
    inside = os.path.normpath(base.inside(row["path"]))
    try:
        old = base.content(inside) if row["kind"] != "added" else None
        new = read_entry(base.top, inside)[1] if row["kind"] != "removed" else None
    except SealError as error:
        return f"[not compared: {error.message}]"
    return unified(row["path"], old, new)
