"""What a run has changed: in its scope since its first agent was asked, outside it, and after its end.

Where the run froze a base, that is how they were. For what a base lacks, such as ignored files, and where there is no
base, a listing and texts lie in the run's folder, which an agent could write: what is made of them is read by other
agents, and decides nothing.

Outside the scope, changes between an assignment and its hand-over are noticed in every run, whatever its gates, by two
trees in the store. Nobody is asked to undo anything: another agent or a person may work there.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from interlock.agents.ask import RunnerError, agent_of_run
from interlock.agents.changes import MAX_COMPARED_BYTES, ChangedFile, ChangeKind, unified
from interlock.agents.confined import read_confined
from interlock.core.files import write_atomically
from interlock.gates.errors import TreeError
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.gates.git_files import ignored_paths
from interlock.gates.manifest import from_json
from interlock.gates.patterns import Scope, compile_scope
from interlock.gates.sealed import EVIDENCE, Base, SealError, Store
from interlock.gates.shared import hidden_count, shared
from interlock.gates.tree import left_out, tree_diff
from interlock.graph.task.context import TaskContext
from interlock.graph.task.sealing import base_of, place_in
from interlock.graph.task.state import CollectedEvidence, Outside
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.redaction import Redactor
from interlock.reservations import ReservationError, open_reservations

MAX_KEPT_BYTES: Final = 8 * 1024 * 1024
"""How much of the texts that no base holds is kept in all; what is beyond that is listed, and not compared."""
MAX_COMPARED: Final = 200
"""How many files are compared; the others are listed."""

_START: Final = "start.json"

OldContent: TypeAlias = Callable[[str], bytes | None]
"""Returns what a file held when the run began; None when that is not known."""


@dataclass(frozen=True, slots=True)
class Start:
    """The files in scope as they were when the run began.

    `files` maps a path to `<mode> <sha256>`, as `gates.tree.tree_files` does; `texts` has what was kept.
    """

    files: Mapping[str, str]
    texts: Mapping[str, str]

    def old_content(self, path: str) -> bytes | None:
        """Return what a file held; None when that was not kept, or is not what was listed."""
        text = self.texts.get(path)
        data = None if text is None else text.encode("utf-8")
        listed = self.files.get(path, "").rpartition(" ")[2]
        return data if data is not None and hashlib.sha256(data).hexdigest() == listed else None


def keep_start(context: TaskContext, store: RunStore, sealing: Mapping[str, Any]) -> None:
    """Keep the files in scope as they are now, unless that was done; a tree that cannot be read is not kept.

    What `sealing` froze need not be kept again.
    """
    path = store.folder / _START
    if path.exists():
        return
    try:
        files = context.files()
    except TreeError:
        return
    base, texts = base_of(context.root, sealing), dict[str, str]()
    there: Mapping[str, object] = base.files if base is not None else {}
    left = MAX_KEPT_BYTES
    for name, value in files.items():
        if left <= 0:
            break
        if base is not None and base.inside(name) in there:
            continue
        data = _plain(context.root, name, value)
        if data is None or b"\0" in data or len(data) > min(left, MAX_COMPARED_BYTES):
            continue
        try:
            texts[name] = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        left -= len(data)
    write_atomically(path, json.dumps({"files": dict(files), "texts": texts}, ensure_ascii=True).encode("ascii"))


def read_start(store: RunStore) -> Start | None:
    """Return what `keep_start` kept; None when there is none that can be read."""
    try:
        read: Any = json.loads((store.folder / _START).read_bytes())
        return Start(*({str(path): str(value) for path, value in read[part].items()} for part in ("files", "texts")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def changes_in_scope(context: TaskContext, store: RunStore, sealing: Mapping[str, Any]) -> list[ChangedFile] | None:
    """Return the files in scope that changed since the run began; None when that is not known."""
    start, base = read_start(store), base_of(context.root, sealing)
    if start is None and base is None:
        return None
    start = start or Start({}, {})
    try:
        now = context.files()
        before = start.files if base is None else _frozen(context, base, start.files, now)
    except (TreeError, SealError):
        return None
    found = tree_diff(before, now)
    kinds: list[tuple[str, ChangeKind]] = [
        *((path, "added") for path in found.added),
        *((path, "removed") for path in found.removed),
        *((path, "changed") for path in found.changed),
    ]
    old = start.old_content if base is None else _old_content(base, start)
    ignored = ignored_paths(context.root, [path for path, _ in kinds])
    return [
        ChangedFile(path, kind, diff="[git ignores it: not shown]")
        if path in ignored
        else ChangedFile(path, kind, diff=_diff(context, path, before.get(path, ""), now.get(path, ""), old))
        if number < MAX_COMPARED
        else ChangedFile(path, kind)
        for number, (path, kind) in enumerate(sorted(kinds))
    ]


def _frozen(context: TaskContext, base: Base, start: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return the files in scope as they were when the tree was frozen.

    A base has no ignored files, so these are as `start` says. What is not ignored and not in the base was not there.
    """
    scope = compile_scope(context.task.scope)
    present = base.store.snapshot(base.root)
    differing = base.store.differing(base.tree, present)
    found: dict[str, str] = {}
    for inside, entry in base.files.items():
        path = base.outside(inside)
        if path is None or left_out(path) or not scope.matches(path):
            continue
        if path in now and inside not in differing:
            found[path] = now[path]
        else:
            found[path] = f"{entry.mode} {hashlib.sha256(base.store.content(entry.oid)).hexdigest()}"
    listed = base.store.files(present)
    return found | {path: row for path, row in start.items() if path not in found and base.inside(path) not in listed}


def _old_content(base: Base, start: Start) -> OldContent:
    def old_content(path: str) -> bytes | None:
        if base.inside(path) not in base.files:
            return start.old_content(path)
        with suppress(SealError):
            return base.content(base.inside(path))
        return None

    return old_content


def _diff(context: TaskContext, path: str, was: str, now: str, old_content: OldContent) -> str:
    """Return the difference of one file, between two values of a listing; empty where it did not exist."""
    if any(value and not value.startswith("100") for value in (was, now)):
        return "[a link or a special file]"
    old = old_content(path) if was else None
    new = _plain(context.root, path, now) if now else None
    if (was and old is None) or (now and new is None):
        return "[not compared: one of the two contents cannot be had]"
    modes = [value.partition(" ")[0] for value in (was, now)]
    mode = f"mode {modes[0]} → {modes[1]}\n" if was and now and modes[0] != modes[1] else ""
    return mode + context.redactor.text(unified(path, old, new))


def _plain(root: Path, path: str, value: str) -> bytes | None:
    """Return the beginning of a plain file, long enough to see that it is too long; None when it cannot be read."""
    if not value.startswith("100"):
        return None
    try:
        return read_confined(str(root), path, MAX_COMPARED_BYTES)
    except RunnerError:
        return None


MAX_NAMED: Final = 200
_MAX_ASKED: Final = 50
_PRIVATE: Final = "[git ignores it, or its name begins with a dot and git does not track it: not shown]"


def keep_listing(root: Path, store: RunStore, sealing: Mapping[str, Any]) -> None:
    """Keep what the project looks like when work is first assigned; of a tree that cannot be listed, nothing."""
    path = _listing_path(store)
    if path.exists():
        return
    with suppress(SealError):
        top, relative = place_in(root, sealing)
        tree = Store(top).snapshot(relative)
        write_atomically(path, json.dumps({"tree": tree}).encode("ascii"))


def changes_outside(
    root: Path, task: Task, store: RunStore, sealing: Mapping[str, Any], *, reserve: bool
) -> list[Outside]:
    """Return the files outside the scope that changed since work was first assigned, at most `MAX_NAMED`."""
    try:
        before = str(json.loads(_listing_path(store).read_bytes())["tree"])
        top, relative = place_in(root, sealing)
        kept = Store(top)
        old, differing = kept.files(before), kept.differing(before, kept.snapshot(relative))
    except (OSError, ValueError, TypeError, KeyError, SealError):
        return []
    scope = compile_scope(task.scope)
    found = [
        Outside(path=path, kind="removed" if entry is None else "changed" if inside in old else "added", holder="")
        for inside, entry in sorted(differing.items())
        if (path := _outside(inside, relative, scope)) is not None
    ][:MAX_NAMED]
    if not reserve:
        return found
    asked = [row["path"] for row in found if not row["path"].startswith("../")]
    held = holders(root, store.run_id, asked)
    return [Outside(path=row["path"], kind=row["kind"], holder=held.get(row["path"], "")) for row in found]


def diffs_outside(root: Path, rows: list[Outside], sealing: Mapping[str, Any], redactor: Redactor) -> list[ChangedFile]:
    """Return the changes as a reviewer is shown them, with a diff where the content at the start is known.

    Private files, which `gates.shared` hides from those who may not read the project's files, have none.
    """
    base = base_of(root, sealing)
    visible, inside = frozenset[str](), dict[str, str]()
    with suppress(SealError):
        top, relative = place_in(root, sealing)
        inside = {row["path"]: os.path.normpath(f"{relative or os.curdir}/{row['path']}") for row in rows}
        visible = shared(top, inside.values())
    return [
        ChangedFile(
            row["path"],
            row["kind"],
            in_scope=False,
            holder=row["holder"],
            diff=redactor.text(_diff_outside(row, base)) if inside.get(row["path"]) in visible else _PRIVATE,
        )
        for row in rows
    ]


def visible_changes(root: Path, files: Sequence[ChangedFile]) -> list[ChangedFile]:
    """Return changes for a reader who may not read the project's files: private ones are only counted."""
    visible = shared(root, [file.path for file in files])
    hidden = [file.path for file in files if file.path not in visible]
    shown = [file for file in files if file.path in visible]
    return [*shown, ChangedFile(hidden_count(hidden), "changed", in_scope=False)] if hidden else shown


def _listing_path(store: RunStore) -> Path:
    return store.folder / "trees" / "project.json"


def _outside(inside: str, relative: str, scope: Scope) -> str | None:
    """Return the path relative to the root, or None for a file of the scope and for evidence."""
    path = os.path.relpath(inside, relative) if relative else inside
    if path.startswith(f"{EVIDENCE}/"):
        return None
    return None if not path.startswith("../") and not left_out(path) and scope.matches(path) else path


def holders(root: Path, run_id: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the other agents that hold some files now, by path; where that cannot be known, nobody is named."""
    found: dict[str, str] = {}
    if not paths:
        return found
    with suppress(ReservationError):
        mine = open_reservations(str(root), "run", name=agent_of_run(run_id))
        try:
            for at in range(0, len(paths), _MAX_ASKED):
                for conflict in mine.check_conflicts([*paths[at : at + _MAX_ASKED]])["conflicts"]:
                    found.setdefault(conflict["pattern"], conflict["holder"])
        finally:
            mine.runtime.store.close()
    return found


def _diff_outside(row: Outside, base: Base | None) -> str:
    """Return the difference of one file, or one line that says why there is none."""
    if base is None:
        return "[not compared: the content at the start of the run was not kept]"
    inside = os.path.normpath(base.inside(row["path"]))
    try:
        old = base.content(inside) if row["kind"] != "added" else None
        new = (base.top / inside).read_bytes() if row["kind"] != "removed" else None
    except (OSError, SealError) as error:
        return f"[not compared: {error}]"
    return unified(row["path"], old, new)


def left_changed(root: Path, values: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that are not as they were when a run began, and that none of its sealed gates judged.

    These are files outside the scope, and files in scope that kept the content of the base. Files that other agents
    hold are theirs.
    """
    held = {row["path"] for row in values.get("outside", []) if row["holder"]}
    named = {row["path"] for row in values.get("outside", [])} | set(_held_back(root, values))
    base = base_of(root, record)
    return tuple(sorted(path for path in named - held if base is None or not base.is_there(base.inside(path))))


def _held_back(root: Path, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files in scope whose content of the base the sealed gates of the last attempt judged."""
    for row in cast("dict[str, CollectedEvidence]", values.get("collected", {})).values():
        if row["attempt"] != values.get("attempt") or row["collection"] is None:
            continue
        for file in from_json(row["collection"]).files:
            read = read_evidence(root, file.path) if file.path.endswith(".log") else None
            if isinstance(read, EvidenceFile) and read.sha256 == file.sha256:
                sealed: Mapping[str, Any] | None = json.loads(read.data.partition(b"\n")[0]).get("sealed")
                yield from () if sealed is None else map(str, sealed["held_back"])
