"""Held-out checks as they are read: a folder of tests, or a table of cases for one function.

Against T2, an agent that games the check during its turn. So what the checkout leads to is refused, and a message has
no name, path or value in it, since an agent may see it: only keys of the format and numbers of cases and lines.
"""

import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, Field, JsonValue, ValidationError, model_validator

from interlock.core.json import fingerprint
from interlock.gates.errors import CollectorError

# A file below the root, without `.` and `..`, and a function in it, with dots for an attribute of a class or object.
_FUNCTION: Final = r"^(\.?[^/:.][^/:]*/)*\.?[^/:.][^/:]*\.(py|[cm]?js):[^\W\d]\w*(\.[^\W\d]\w*)*$"
_LEFT_OUT: Final = frozenset({".git", "__pycache__", ".pytest_cache", ".DS_Store"})
_Tolerance: TypeAlias = Annotated[float, Field(ge=0, lt=0.1)]
"""Below 0.1, because it is relative as well: one of 1 would accept every number of the same sign."""


@dataclass(frozen=True, slots=True)
class HeldOutFolder:
    """Tests that are laid over the export: by the path in the folder, the content and whether it is executable.

    The digest is over all of this; `paths` is what a sandbox must not show.
    """

    files: Mapping[str, tuple[bytes, bool]] = field(repr=False)
    digest: str
    paths: tuple[Path, ...] = field(repr=False)


class Case(BaseModel, extra="forbid", strict=True, frozen=True):
    """One call with positional arguments, and what it must come to: an error of the class `raises`, or else a value."""

    args: list[JsonValue]
    expected: JsonValue = None
    raises: str = Field(default="", min_length=1)

    @model_validator(mode="after")
    def _comes_to_one_thing(self) -> Self:
        if len({"expected", "raises"} & self.model_fields_set) != 1:
            raise ValueError
        return self


class HeldOutTable(BaseModel, extra="forbid", strict=True, frozen=True):
    """Cases for one function, from the file that is the one of the `paths`; the digest is over it."""

    function: str = Field(pattern=_FUNCTION)
    timeout_seconds: float = Field(default=20.0, ge=0.1, le=3600)
    tolerance: _Tolerance = 0.0
    cases: list[Case] = Field(min_length=1, repr=False)
    digest: str
    paths: tuple[Path, ...]

    @property
    def language(self) -> Literal["python", "javascript"]:
        """What the function is written in."""
        return "python" if ".py:" in self.function else "javascript"


def load_held_out(path: Path, *, checkout: Path, recorded: str = "") -> HeldOutFolder | HeldOutTable:
    """Read held-out checks, a folder or a table, and refuse those that an agent reaches in its checkout.

    `recorded` is the digest that the run began with, or empty.

    Raises:
        CollectorError: `HELD101` they cannot be read, are no regular files, or none, `HELD102` they can be reached from
            the checkout, `HELD104` the table or one of its cases is malformed, `HELD108` the digest is not the recorded
            one. An agent may read the message.
    """
    try:
        # Strict: a place that is not there yet could come to lie anywhere.
        where, root = (Path(os.path.realpath(place, strict=True)) for place in (path, checkout))
        _refuse_reachable(where, root)
        checks = _folder(where) if where.is_dir() else _table(where)
    except OSError as error:
        message = f"The held-out checks, or a folder of the checkout, cannot be read: {error.strerror}."
        raise CollectorError("HELD101", message, "Correct `heldout`, or make them readable.") from error
    if recorded not in {"", checks.digest}:
        message = "The held-out checks are not those that the run began with."
        raise CollectorError("HELD108", message, "Put them back and resume, or start a new run.")
    return checks


def _refuse_reachable(where: Path, root: Path) -> None:
    """Refuse what lies in the checkout, around it, or behind a link in it, also in `.git` and in ignored folders."""
    places = [root, *(Path(os.path.realpath(entry.path)) for entry in _entries(root) if entry.is_symlink())]
    if any(place.is_relative_to(where) or where.is_relative_to(place) for place in places):
        message = "The held-out checks lie inside the checkout or around it, or a symbolic link in it leads there."
        raise CollectorError("HELD102", message, "Keep them in a separate folder, and remove links to it.")


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield everything below a folder that is no folder; links are yielded, never followed."""
    waiting = [os.fspath(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    yield entry


def _unusable(what: str) -> CollectorError:
    return CollectorError(
        "HELD101", f"The held-out checks {what}.", "Write regular files, without links, at least one."
    )


def _read(path: Path) -> tuple[bytes, bool]:
    """Read a regular file that has no other name; return its bytes and whether it is executable."""
    status = path.lstat()
    # A second name of the file may lie in the checkout, and no look at paths finds it.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise _unusable("have a link, a second hard link, or something else that is no regular file")
    return path.read_bytes(), bool(status.st_mode & stat.S_IXUSR)


def _folder(where: Path) -> HeldOutFolder:
    found = sorted(Path(entry.path).relative_to(where) for entry in _entries(where))
    paths = [path for path in found if _LEFT_OUT.isdisjoint(path.parts)]
    if not paths:
        raise _unusable("have no file")
    files = {path.as_posix(): _read(where / path) for path in paths}
    # The digest is what a run keeps of the checks: it tells any two folders apart, and gives nothing of them away.
    rows = [[path, executable, sha256(content).hexdigest()] for path, (content, executable) in files.items()]
    return HeldOutFolder(files, fingerprint(rows), (where,))


def _table(where: Path) -> HeldOutTable:
    content, _ = _read(where)
    try:
        keys: object = tomllib.loads(content.decode()) if where.suffix == ".toml" else json.loads(content)
    except (ValueError, RecursionError):
        # The parser's own message would quote the content.
        raise _malformed("it cannot be parsed") from None
    table = cast("dict[str, object]", keys) if isinstance(keys, dict) else {}
    try:
        return HeldOutTable.model_validate(table | {"digest": sha256(content).hexdigest(), "paths": (where,)})
    except ValidationError as error:
        raise _refusal(error) from None


def _malformed(what: str) -> CollectorError:
    fix = 'Use the keys of docs/sealed-gates.md, with values in their bounds; `function` is like "src/gcd.py:gcd".'
    return CollectorError("HELD104", f"The held-out table is malformed: {what}.", fix)


def _refusal(error: ValidationError) -> CollectorError:
    """Say where a table is wrong: the number of the case, and the key where it is one of ours."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    names = [f"case {part + 1}" if isinstance(part, int) else f"`{part}`" for part in fault["loc"][:3]]
    if fault["type"] == "extra_forbidden":
        names[-1] = "an unknown key"
    return _malformed(", ".join(names[1:] or names))
