"""The files of each hand-over, kept to be compared later: when work is assigned first, and after each attempt.

So are the files at each objection, for the person who answers it. That is no hand-over: nothing is judged there.

Below `hand-overs` in the run's folder, `<label>.json` says which files there were, and `<label>.files` holds contents:
a line of JSON with the place of each by its digest, then the contents one after another. So a hand-over is two writes,
whatever the size of the scope, and `interlock prune` takes all of it with the run. They are not in the object store of
evidence, which outlives runs: what an agent wrote on the way is not evidence.

A content is written once. What a run froze as its base lies in the store of sealed gates already, and is read from
there. Not kept are files that git ignores, private ones (`gates.shared`), large and binary ones; and no verdict goes by
anything that is read here. A run of an older version has no hand-overs.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from interlock.agents.changes import ChangeKind
from interlock.core.errors import InterlockError
from interlock.gates.tree import digest_of
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.policy import key_variables
from interlock.graph.task.sealing import base_of
from interlock.graph.task.store import RunStore
from interlock.redaction import redactor_for

MAX_FILE_BYTES: Final = 1024 * 1024
"""A larger file is named with its size and digest."""
MAX_RUN_BYTES: Final = 64 * 1024 * 1024
"""How much of contents is kept of one run; what comes after that is named too."""

BASE: Final = "base"
"""The label of the files as they were when work was assigned first; see `label_of` for the others."""
_LABEL: Final = re.compile(r"([0-9]{1,9})(?:\.objection-([0-9]{1,9}))?", re.ASCII)

Reason: TypeAlias = Literal["ignored", "private", "large", "binary", "full", "link", "special", "changed"]
"""Why a content is not kept.

Git ignores the file; its name begins with a dot and git does not track it; it has more than `MAX_FILE_BYTES`; it is no
text in UTF-8; the run keeps `MAX_RUN_BYTES` already; it is a link, or a pipe, socket or device; it changed meanwhile,
or could not be read.
"""

FOLDER: Final = "hand-overs"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why the content of a file is not kept, and its size; -1 where that is not known."""

    why: Reason
    size_bytes: int = -1


@dataclass(frozen=True, slots=True)
class OutsideFile:
    """One file outside the scope that changed since work was assigned first, by its path relative to the root.

    `before` and `after` are digests of its content; empty where it was not there, or that is not known. `holder` is
    the agent that held it.
    """

    path: str
    kind: ChangeKind
    holder: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class HandOver:
    """The files of a task at one moment.

    Args:
        label: `base`, the number of an attempt, or `2.objection-1` for the files at question 1, in attempt 2.
        attempt: That number; 0 for the base.
        tree: The digest of the files in scope, as verdicts are bound to it.
        files: Each file in scope and the SHA-256 of its content in hex; empty for what is neither file nor link.
        modes: Git's mode of those files that are not plain ones (`100644`).
        left_out: The files whose content is not kept, those outside the scope too.
        outside: The files outside the scope that had changed.
    """

    label: str
    attempt: int
    tree: str
    files: Mapping[str, str]
    modes: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: Mapping[str, LeftOut] = field(default_factory=dict[str, LeftOut])
    outside: tuple[OutsideFile, ...] = ()


def hand_overs(root: Path, run_id: str) -> tuple[HandOver, ...]:
    """Return what is kept of each hand-over and objection of a run in order, the base first.

    It is empty for a run of an older version.

    One whose files cannot be read back is passed over.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """
    return tuple(row for _, row in _read(RunStore(root, run_id)))


def kept_file(root: Path, run_id: str, digest: str) -> bytes | None:
    """Return a content by the SHA-256 that a hand-over gives of it, without keys; None where it is not kept.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """
    store = RunStore(root, run_id)
    for path in sorted((store.folder / FOLDER).glob("*.files")):
        if (data := _content(path, digest)) is not None:
            return data
    with suppress(RunDamagedError, InterlockError, OSError):
        _, policy, _ = store.load()
        base = base_of(root, policy.sealing)
        path = _shown(store).get(digest)
        data = None if base is None or path is None else base.content(base.inside(path))
        if data is not None and sha256(data).hexdigest() == digest and len(data) <= MAX_FILE_BYTES and is_text(data):
            return redactor_for(root, key_variables(policy)).data(data)
    return None


def _shown(store: RunStore) -> dict[str, str]:
    """Return the digests whose contents the base of a run may be asked for, those that hand-overs show: to a path."""
    found: dict[str, str] = {}
    for stored, row in _read(store):
        left_out = row.left_out
        rows = {path: value.partition(" ")[2] for path, value in stored["files"].items() if stored["of"] == ""}
        rows |= {item.path: item.before for item in row.outside}
        found |= {digest: path for path, digest in rows.items() if path not in left_out}
    return found


def _read(store: RunStore) -> Iterator[tuple[Mapping[str, Any], HandOver]]:
    """Yield the listing of each hand-over as it is stored, and the hand-over that it and the base make."""
    first = listing(store, BASE)
    before: dict[str, str] = dict(first.get("files", {}))
    base: HandOver | None = None
    if first:
        base = _made(BASE, 0, first, before, {})
        yield first, base
    names = (_LABEL.fullmatch(path.stem) for path in (store.folder / FOLDER).glob("*.json"))
    # In an attempt, objections come before its hand-over.
    for number, _, question in sorted(
        (int(name[1]), name[2] is None, int(name[2] or 0)) for name in names if name is not None
    ):
        label = label_of(number, question)
        row = listing(store, label)
        if not row or row["of"] != (first.get("tree", "") if before else ""):
            continue
        files = {path: value for path, value in before.items() if path not in set(row["removed"])} | row["files"]
        if digest_of(files) != row["tree"]:
            continue
        same = {} if base is None else {p: item for p, item in base.left_out.items() if p not in row["files"]}
        yield row, _made(label, number, row, dict(sorted(files.items())), same)


def label_of(attempt: int, objection: int = 0) -> str:
    """Return the label of the hand-over of an attempt, or of the files at an objection, by the question's number."""
    return f"{attempt}.objection-{objection}" if objection else str(attempt)


def _made(
    label: str, attempt: int, row: Mapping[str, Any], files: Mapping[str, str], same: Mapping[str, LeftOut]
) -> HandOver:
    parts = {path: value.partition(" ") for path, value in files.items()}
    return HandOver(
        label,
        attempt,
        row["tree"],
        {path: digest for path, (_, _, digest) in parts.items()},
        {path: mode for path, (mode, _, _) in parts.items() if mode != "100644"},
        {path: item for path, item in same.items() if path in files}
        | {path: LeftOut(*item) for path, item in row["left_out"].items()},
        tuple(OutsideFile(**item) for item in row["outside"]),
    )


def listing(store: RunStore, label: str) -> Mapping[str, Any]:
    """Return a listing as it is stored; empty when there is none that can be read."""
    path = store.folder / FOLDER / f"{label}.json"
    with suppress(OSError, ValueError, RecursionError):
        status = path.stat()
        return _loaded(path, status.st_ino, status.st_mtime_ns, status.st_size)
    return {}


@lru_cache(maxsize=32)
def _loaded(path: Path, *_version: int) -> Mapping[str, Any]:
    """Read a listing and hold it to its form, so that no reader meets another one.

    Raises:
        ValueError: It is not what is written here.
    """
    read: Any = json.loads(path.read_bytes())
    try:
        texts = [read["tree"], read["of"], *read["removed"]]
        texts += [text for row in read["files"].items() for text in row]
        for name, (why, size) in read["left_out"].items():
            texts += [name]
            if why not in get_args(Reason) or type(size) is not int:
                raise ValueError("a reason is none")
        for row in read["outside"]:
            texts += asdict(OutsideFile(**row)).values()
            if row["kind"] not in get_args(ChangeKind):
                raise ValueError("a change is none")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a text is none")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("it is not a hand-over") from error
    return cast("Mapping[str, Any]", read)


def index_of(path: Path) -> tuple[Mapping[str, tuple[int, int, str]], int]:
    """Return where the contents of a pack are, and where in the file they begin; of a damaged one nothing."""
    with suppress(OSError, ValueError, RecursionError), path.open("rb") as file:
        first = file.readline()
        read: Any = json.loads(first)
        if isinstance(read, dict):
            return cast("dict[str, tuple[int, int, str]]", read), len(first)
    return {}, 0


def _content(path: Path, digest: str) -> bytes | None:
    index, begin = index_of(path)
    with suppress(OSError, ValueError, TypeError, KeyError), path.open("rb") as file:
        offset, size, kept = index[digest]
        if 0 <= size <= 2 * MAX_FILE_BYTES:
            file.seek(begin + offset)
            data = file.read(size)
            return data if sha256(data).hexdigest() == kept else None
    return None


def is_text(data: bytes) -> bool:
    """Return whether a content can be compared line by line."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data
