"""The lines of a recording: asks with their answers and the files that changed, read and written as JSON."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import inf
from pathlib import Path
from types import NoneType
from typing import Any, Final, Self, cast

from interlock.agents.ask import AgentConfigError, Answer, RunnerError
from interlock.agents.confined import read_confined
from interlock.agents.usage import Usage
from interlock.redaction import Redactor

SCHEMA: Final = "interlock.recording/1"
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""A larger file is named in a recording and not kept."""


_NUMBER: Final = (int, float)
_ANSWER: Final = {"text": str, "usage": dict, "model": str, "tool_calls": (int, NoneType), "stopped": str, "told": bool,
    "opened": (list, NoneType),
}  # fmt: skip
_USAGE: Final = {
    "calls": int,
    "input_tokens": int,
    "output_tokens": int,
    "seconds": _NUMBER,
    "usd": (*_NUMBER, NoneType),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One file that changed.

    Args:
        path: Relative to the root.
        value: `<mode> <sha256>` as it was found; empty when it was deleted.
        data: Its bytes, without keys; None when it was deleted or left out.
        left_out: Why it cannot be put back; empty when it can.
    """

    path: str
    value: str
    data: bytes | None = None
    left_out: str = ""

    @property
    def is_redacted(self) -> bool:
        """Whether a key was taken out of it, so that it is not the file that it was."""
        return self.data is not None and sha256(self.data).hexdigest() != self.value.rpartition(" ")[2]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values: `text`, or `base64` for what is no UTF-8."""
        row: dict[str, Any] = {"path": self.path, "value": self.value}
        if self.left_out:
            return row | {"left_out": self.left_out}
        if self.data is None:
            return row
        try:
            return row | {"text": self.data.decode("utf-8")}
        except UnicodeDecodeError:
            return row | {"base64": b64encode(self.data).decode("ascii")}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Read back what `to_json` wrote."""
        data = b64decode(row["base64"]) if "base64" in row else None
        data = str(row["text"]).encode("utf-8") if "text" in row else data
        return cls(str(row["path"]), str(row["value"]), data, str(row.get("left_out", "")))


@dataclass(frozen=True, slots=True)
class Row:
    """One ask (see `Ask.name`), its answer, and what changed since the line above.

    `tree` is the digest of the files in scope at the ask; `touched` says that some of them had changed before without
    any agent that this recording knows of.
    """

    name: str
    step: str
    tree: str
    touched: bool
    system: str
    prompt: str
    answer: Answer
    changes: tuple[Change, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, with digests of the texts."""
        return {
            "ask": self.name,
            "step": self.step,
            "tree": self.tree,
            "touched": self.touched,
            "system_sha256": digest(self.system),
            "prompt_sha256": digest(self.prompt),
            "system": self.system,
            "prompt": self.prompt,
            "answer": _renamed(asdict(self.answer), "cost_reported", "told") | {"usage": self.answer.usage.to_json()},
            "files": [change.to_json() for change in self.changes],
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Read back what `to_json` wrote."""
        row["answer"].setdefault("opened", None)  # older recordings do not say
        _check(row["answer"], _ANSWER)
        _check(row["answer"]["usage"], _USAGE)
        answer = replace(
            Answer(**_renamed(row["answer"], "told", "cost_reported")), usage=Usage.from_json(row["answer"]["usage"])
        )
        answer = replace(answer, opened=None if answer.opened is None else tuple(answer.opened))
        changes = tuple(Change.from_json(item) for item in row["files"])
        return cls(
            name=str(row["ask"]),
            step=str(row["step"]),
            tree=str(row["tree"]),
            touched=bool(row["touched"]),
            system=str(row["system"]),
            prompt=str(row["prompt"]),
            answer=answer,
            changes=changes,
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording as it was read: where and what was recorded, the files in scope at its start, and its asks in order.

    `size_bytes` counts whole lines; a last line that a killed process left is not read.
    """

    run_id: str
    root: str
    task_id: str
    files: Mapping[str, str]
    rows: tuple[Row, ...]
    size_bytes: int


def read_recording(path: Path) -> Recorded:
    """Read a recording.

    Raises:
        AgentConfigError: It cannot be read, or is none.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _bad(path, 0, f"the recording cannot be read: {error.strerror}") from error
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.split(b"\n")[:-1]
    number = 1
    try:
        head = cast("dict[str, Any]", json.loads(lines[0] if lines else b""))
        if head["schema"] != SCHEMA:
            raise _bad(path, number, f"its schema is not `{SCHEMA}`")
        rows: list[Row] = []
        for number, line in enumerate(lines[1:], 2):  # noqa: B007 - named in the error
            rows.append(Row.from_json(json.loads(line)))
        return Recorded(
            run_id=str(head["run_id"]),
            root=str(head["root"]),
            task_id=str(head["task_id"]),
            files=dict(head["files"]),
            rows=tuple(rows),
            size_bytes=len(whole),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _bad(path, number, "it is no line of a recording") from error


def _renamed(row: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in row.items()}


def _check(row: Mapping[str, Any], kinds: Mapping[str, type | tuple[type, ...]]) -> None:
    """Refuse a value of another kind; what runs do with it would fail later, and far from the file."""
    for name, kind in kinds.items():
        value = row[name]
        if not isinstance(value, kind) or (isinstance(value, _NUMBER) and not 0 <= value < inf):
            raise TypeError(name)


def _bad(path: Path, line: int, message: str) -> AgentConfigError:
    fix = "Name a file that `interlock run TASK --record FILE` wrote."
    return AgentConfigError(str(path), f"line {line}" if line else "", message, fix)


def change_at(root: str, path: str, value: str, redactor: Redactor) -> Change:
    """Return a change as it is recorded: with the bytes that the file has now, without keys."""
    if not value:
        return Change(path, "")
    if not value.startswith("100"):
        return Change(path, value, left_out="it is a link or a special file")
    try:
        data = read_confined(root, path, MAX_FILE_BYTES)
    except RunnerError as error:
        return Change(path, value, left_out=error.message)
    if len(data) > MAX_FILE_BYTES:
        return Change(path, value, left_out=f"it is larger than {MAX_FILE_BYTES} bytes")
    return Change(path, value, redactor.data(data))


def apply(files: dict[str, str], changes: tuple[Change, ...]) -> None:
    """Make a listing what it is after some changes."""
    for change in changes:
        if change.value:
            files[change.path] = change.value
        else:
            files.pop(change.path, None)


def is_report(path: str) -> bool:
    """Return whether a path is one of a report: nothing below `artifacts` is in any scope."""
    return path.startswith("artifacts/")


def digest(text: str) -> str:
    """Return the digest of a text."""
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
