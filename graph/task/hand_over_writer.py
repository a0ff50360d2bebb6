"""Writes the files of each hand-over; `graph.task.hand_overs` describes their layout and what is left out."""

import json
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from interlock.core.errors import InterlockError
from interlock.core.files import write_atomically
from interlock.gates.git_files import ignored_paths, tracked_paths
from interlock.gates.sealed import Base
from interlock.gates.tree import digest_of, file_value
from interlock.graph.task.context import TaskContext
from interlock.graph.task.hand_overs import (
    BASE,
    FOLDER,
    MAX_FILE_BYTES,
    MAX_RUN_BYTES,
    LeftOut,
    OutsideFile,
    Reason,
    index_of,
    is_text,
    label_of,
    listing,
)
from interlock.graph.task.sealing import base_of, place_in
from interlock.graph.task.state import Outside, TaskState
from interlock.graph.task.store import RunStore

MAX_DIGESTED_BYTES: Final = 64 * 1024 * 1024
"""Of a larger file outside the scope not even the digest is taken."""

_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LINK: Final = "120000"


def keep_base(context: TaskContext, store: RunStore, sealing: Mapping[str, Any]) -> None:
    """Keep the files in scope as they are before any work, unless that was done; what cannot be kept stops nobody."""
    if not (store.folder / FOLDER / f"{BASE}.json").exists():
        with suppress(InterlockError, OSError, ValueError):
            _Keeping(context, store, sealing).keep(BASE, {}, ())


def keep_hand_over(
    context: TaskContext, store: RunStore, state: TaskState, outside: Iterable[Outside], tree: str, objection: int = 0
) -> None:
    """Keep the files in scope as an attempt handed them over, and those outside that had changed, as `keep_base`.

    A listing of this `tree` that is there already stays: after a kill the files may be others. With the number of a
    question and no tree they are kept as they are now, at that objection, beside the hand-over of the attempt.
    """
    label = label_of(state["attempt"], objection)
    if listing(store, label).get("tree", "none") != tree:
        with suppress(InterlockError, OSError, ValueError):
            keeping = _Keeping(context, store, state.get("sealing", {}))
            keeping.keep(label, listing(store, BASE).get("files", {}), tuple(outside))


class _Keeping:
    """What is kept at one moment of a run."""

    def __init__(self, context: TaskContext, store: RunStore, sealing: Mapping[str, Any]) -> None:
        self._context = context
        self._folder = store.folder / FOLDER
        self._base = base_of(context.root, sealing)
        self._sealing = sealing
        packs = list(self._folder.glob("*.files"))
        self._held = {digest for path in packs for digest in index_of(path)[0]}
        self._hold(listing(store, BASE).get("files", {}))
        self._space_left = MAX_RUN_BYTES - sum(path.stat().st_size for path in packs)
        self._kept: list[tuple[str, bytes]] = []

    def keep(self, label: str, before: Mapping[str, str], outside: tuple[Outside, ...]) -> None:
        """Write what differs from `before`; the contents first, so that a listing has all of them."""
        files = self._context.files()
        if label == BASE:
            self._hold(files)
        changed = {path: value for path, value in files.items() if before.get(path) != value}
        left_out = self._take(Path(self._context.root), changed)
        beside = self._take_outside(outside, left_out)
        clean = self._context.redactor.value
        row = {
            "tree": digest_of(files),
            "of": digest_of(before) if before else "",
            "files": clean(changed),
            "removed": clean(sorted(before.keys() - files.keys())),
            "left_out": clean({path: [item.why, item.size_bytes] for path, item in left_out.items()}),
            "outside": clean([asdict(item) for item in beside]),
        }
        if self._kept:
            write_atomically(self._folder / f"{label}.files", self._pack(), mode=0o600, durable=False)
        data = json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode("ascii")
        write_atomically(self._folder / f"{label}.json", data, mode=0o600, durable=False)

    def _hold(self, values: Mapping[str, str]) -> None:
        """Take contents for kept, those of files which the base of the run holds."""
        if self._base is not None:
            there = self._base.files
            self._held |= {
                value.partition(" ")[2] for path, value in values.items() if self._base.inside(path) in there
            }

    def _take(self, top: Path, values: Mapping[str, str]) -> dict[str, LeftOut]:
        """Take the contents of files that have these values, and return those that are not kept."""
        left_out: dict[str, LeftOut] = {}
        hidden = self._hidden(top, values)
        for path, value in values.items():
            mode, _, digest = value.partition(" ")
            why: Reason | None = hidden.get(path)
            if why is None and not digest:
                why = "special"
            elif why is None and mode == _LINK:
                why = "link"
            if why is not None:
                left_out[path] = LeftOut(why)
            elif digest not in self._held and (found := self._take_one(f"{top}/{path}", digest)) is not None:
                left_out[path] = found
        return left_out

    def _hidden(self, top: Path, values: Mapping[str, str]) -> dict[str, Reason]:
        """Return the files that are not shown to everybody: what a base holds, git does not ignore."""
        base = self._base
        frozen = frozenset[str]()
        if base is not None and Path(os.path.realpath(top)) == Path(os.path.realpath(self._context.root)):
            there = base.files
            frozen = frozenset(path for path in values if base.inside(path) in there)
        ignored = ignored_paths(top, [path for path in values if path not in frozen])
        dotted = [path for path in values if path not in ignored and any(s.startswith(".") for s in path.split("/"))]
        private = frozenset(dotted) - tracked_paths(top, dotted)
        return {**dict.fromkeys(ignored, "ignored"), **dict.fromkeys(private, "private")}

    def _take_one(self, name: str, digest: str) -> LeftOut | None:
        """Take one content, which is the one of this digest; None when it is kept."""
        try:
            descriptor = os.open(name, _OPEN)
        except OSError:
            return LeftOut("changed")
        try:
            status = os.fstat(descriptor)
            size = status.st_size
            if not stat.S_ISREG(status.st_mode):
                return LeftOut("changed")
            if size > MAX_FILE_BYTES:
                return LeftOut("large", size)
            data = os.read(descriptor, MAX_FILE_BYTES + 1)
        except OSError:
            return LeftOut("changed")
        finally:
            os.close(descriptor)
        if sha256(data).hexdigest() != digest:
            return LeftOut("changed", size)
        if not is_text(data):
            return LeftOut("binary", size)
        if len(data) > self._space_left:
            return LeftOut("full", size)
        self._space_left -= len(data)
        self._kept.append((digest, data))
        self._held.add(digest)
        return None

    def _take_outside(self, rows: tuple[Outside, ...], left_out: dict[str, LeftOut]) -> list[OutsideFile]:
        """Take the contents of changed files outside the scope, which may lie beside the root."""
        if not rows:
            return []
        top, relative = place_in(self._context.root, self._sealing)
        inside = {row["path"]: os.path.normpath(f"{relative or os.curdir}/{row['path']}") for row in rows}
        values = {path: _value(top, place) for path, place in inside.items()}
        there = {inside[path]: value for path, value in values.items() if value}
        refused = self._take(top, there)
        left_out |= {path: refused[place] for path, place in inside.items() if place in refused}
        return [
            OutsideFile(
                row["path"],
                row["kind"],
                row["holder"],
                _digest_in(self._base, inside[row["path"]]) if row["kind"] != "added" else "",
                values[row["path"]].partition(" ")[2] if row["kind"] != "removed" else "",
            )
            for row in rows
        ]

    def _pack(self) -> bytes:
        """Return the contents, without keys, behind a line that says of each its place, its size and its SHA-256."""
        whole = b"".join(data for _, data in self._kept)
        clean = self._context.redactor.data
        if clean(whole) != whole:
            self._kept = [(digest, clean(data)) for digest, data in self._kept]
            whole = b"".join(data for _, data in self._kept)
        index: dict[str, tuple[int, int, str]] = {}
        at = 0
        for digest, data in self._kept:
            index[digest] = (at, len(data), sha256(data).hexdigest())
            at += len(data)
        return json.dumps(index, separators=(",", ":")).encode("ascii") + b"\n" + whole


def _value(top: Path, path: str) -> str:
    """Return the value of a file outside the scope; empty where it is not there, or would take long to read."""
    with suppress(OSError, InterlockError):
        if os.lstat(f"{top}/{path}").st_size <= MAX_DIGESTED_BYTES:
            return file_value(top, path)
    return ""


def _digest_in(base: Base | None, path: str) -> str:
    entry = None if base is None else base.files.get(path)
    return "" if base is None or entry is None else sha256(base.store.content(entry.oid)).hexdigest()
