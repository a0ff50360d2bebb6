"""What a run has changed in its scope: the files as they were when its first agent was asked, and as they are now.

Where the run froze a base, that is how they were. For what a base lacks, such as ignored files, and where there is no
base, a listing and texts lie in the run's folder, which an agent could write: what is made of them is read by other
agents, and decides nothing.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from interlock.agents.ask import RunnerError
from interlock.agents.changes import MAX_COMPARED_BYTES, ChangedFile, ChangeKind, unified
from interlock.agents.confined import read_confined
from interlock.core.files import write_atomically
from interlock.gates.errors import TreeError
from interlock.gates.git_files import ignored_paths
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed import Base, SealError, list_tree
from interlock.gates.tree import left_out, tree_diff
from interlock.graph.task.desk import Desk
from interlock.graph.task.sealing import base_of
from interlock.graph.task.store import RunStore

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


def keep_start(desk: Desk, store: RunStore, sealing: Mapping[str, Any]) -> None:
    """Keep the files in scope as they are now, unless that was done; a tree that cannot be read is not kept.

    What `sealing` froze need not be kept again.
    """
    path = store.folder / _START
    if path.exists():
        return
    try:
        files = desk.files()
    except TreeError:
        return
    base, texts = base_of(desk.root, sealing), dict[str, str]()
    left = MAX_KEPT_BYTES
    for name, value in files.items():
        if left <= 0:
            break
        if base is not None and base.inside(name) in base.files:
            continue
        data = _plain(desk.root, name, value)
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


def changes_in_scope(desk: Desk, store: RunStore, sealing: Mapping[str, Any]) -> list[ChangedFile] | None:
    """Return the files in scope that changed since the run began; None when that is not known."""
    start, base = read_start(store), base_of(desk.root, sealing)
    if start is None and base is None:
        return None
    start = start or Start({}, {})
    try:
        now = desk.files()
        before = start.files if base is None else _frozen(desk, base, start.files, now)
    except (TreeError, SealError):
        return None
    found = tree_diff(before, now)
    kinds: list[tuple[str, ChangeKind]] = [
        *((path, "added") for path in found.added),
        *((path, "removed") for path in found.removed),
        *((path, "changed") for path in found.changed),
    ]
    old = start.old_content if base is None else _old_content(base, start)
    ignored = ignored_paths(desk.root, [path for path, _ in kinds])
    return [
        ChangedFile(path, kind, diff="[git ignores it: not shown]")
        if path in ignored
        else ChangedFile(path, kind, diff=_diff(desk, path, before.get(path, ""), now.get(path, ""), old))
        if number < MAX_COMPARED
        else ChangedFile(path, kind)
        for number, (path, kind) in enumerate(sorted(kinds))
    ]


def _frozen(desk: Desk, base: Base, start: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return the files in scope as they were when the tree was frozen.

    A base has no ignored files, so these are as `start` says. What is not ignored and not in the base was not there.

    Raises:
        TreeError, SealError: A tree cannot be listed.
    """
    scope = compile_scope(desk.task.scope)
    found = {
        path: f"{entry.mode} {entry.sha256}"
        for inside, entry in base.files.items()
        if (path := base.outside(inside)) is not None and (path in now or (not left_out(path) and scope.matches(path)))
    }
    if others := start.keys() - found.keys():
        listed = list_tree(base.top, base.root).files
        found |= {path: start[path] for path in others if base.inside(path) not in listed}
    return found


def _old_content(base: Base, start: Start) -> OldContent:
    def old_content(path: str) -> bytes | None:
        if base.inside(path) not in base.files:
            return start.old_content(path)
        with suppress(SealError):
            return base.content(base.inside(path))
        return None

    return old_content


def _diff(desk: Desk, path: str, was: str, now: str, old_content: OldContent) -> str:
    """Return the difference of one file, between two values of a listing; empty where it did not exist."""
    if any(value and not value.startswith("100") for value in (was, now)):
        return "[a link or a special file]"
    old = old_content(path) if was else None
    new = _plain(desk.root, path, now) if now else None
    if (was and old is None) or (now and new is None):
        return "[not compared: one of the two contents cannot be had]"
    modes = [value.partition(" ")[0] for value in (was, now)]
    mode = f"mode {modes[0]} → {modes[1]}\n" if was and now and modes[0] != modes[1] else ""
    return mode + desk.redactor.text(unified(path, old, new))


def _plain(root: Path, path: str, value: str) -> bytes | None:
    """Return the beginning of a plain file, long enough to see that it is too long; None when it cannot be read."""
    if not value.startswith("100"):
        return None
    try:
        return read_confined(str(root), path, MAX_COMPARED_BYTES)
    except RunnerError:
        return None
