"""Held-out checks as they are read: a folder of tests, or a table of cases for one function.

Against T2, an agent that games the check during its turn. So what the checkout leads to is refused, and a message has
no name, path or value in it, since an agent may see it: only keys of the format and numbers of cases and lines.
"""

import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, Field, JsonValue, ValidationError, model_validator

from interlock.core.json import fingerprint
from interlock.gates.errors import CollectorError

MAX_FILES: Final = 10_000
# A file below the root, without `.` and `..`, and a function in it, with dots for an attribute of a class or object.
_FUNCTION: Final = r"^(\.?[^/:.][^/:]*/)*\.?[^/:.][^/:]*\.(py|[cm]?js):[^\W\d]\w*(\.[^\W\d]\w*)*$"
_LEFT_OUT: Final = frozenset({".git", "__pycache__", ".pytest_cache", ".DS_Store"})
_Tolerance: TypeAlias = Annotated[float, Field(ge=0, lt=0.1)]
"""Below 0.1, because it is relative as well: one of 1 would accept every number of the same sign."""
_AbsoluteTolerance: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class HeldOutError(CollectorError):
    """Held-out checks cannot be used, so their gate is not passed. An agent may read the message."""


@dataclass(frozen=True, slots=True)
class HeldOutFolder:
    """Tests that are laid over the export: by the path in the folder, the content and whether it is executable.

    The digest is over all of this; `paths` is what a sandbox must not show.
    """

    files: Mapping[str, tuple[bytes, bool]] = field(repr=False)
    digest: str
    paths: tuple[Path, ...] = field(repr=False)


class Case(BaseModel, extra="forbid", strict=True, frozen=True):
    """One call with positional arguments, and what it must come to: an error of the class `raises`, or else a value.

    A tolerance of None is that of the table.
    """

    args: list[JsonValue]
    expected: JsonValue = None
    raises: str = Field(default="", min_length=1)
    tolerance: _Tolerance | None = None
    absolute_tolerance: _AbsoluteTolerance | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_pair(cls, row: object) -> object:
        """Accept `[args, expected]`."""
        pair = cast("list[object]", row) if isinstance(row, list) else []
        return {"args": pair[0], "expected": pair[1]} if len(pair) == 2 else cast("object", row)

    @model_validator(mode="after")
    def _comes_to_one_thing(self) -> Self:
        if len({"expected", "raises"} & self.model_fields_set) != 1:
            raise ValueError
        return self


class HeldOutTable(BaseModel, extra="forbid", strict=True, frozen=True):
    """Cases for one function. The digest is over the file and the file of its cases; these two are the `paths`."""

    function: str = Field(pattern=_FUNCTION)
    timeout_seconds: float = Field(default=20.0, ge=0.1, le=3600)
    tolerance: _Tolerance = 0.0
    absolute_tolerance: _AbsoluteTolerance = 0.0
    cases: list[Case] = Field(min_length=1, repr=False)
    digest: str
    paths: tuple[Path, ...]

    @property
    def language(self) -> Literal["python", "javascript"]:
        """What the function is written in."""
        return "python" if ".py:" in self.function else "javascript"


@contextmanager
def long_integers() -> Generator[None]:
    """Let integers of up to 100,000 digits be read and written, which Python otherwise limits to 4,300."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(100_000)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


def load_held_out(path: Path, *, checkout: Path, recorded: str = "") -> HeldOutFolder | HeldOutTable:
    """Read held-out checks, a folder or a table, and refuse those that an agent reaches in its checkout.

    `recorded` is the digest that the run began with, or empty.

    Raises:
        HeldOutError: `HELD101` they cannot be read, `HELD102` they can be reached from the checkout, `HELD103` there
            are other files than regular ones, none, or too many, `HELD104` the table or one of its cases is malformed,
            `HELD108` the digest is not the recorded one.
    """
    try:
        where, root = (Path(os.path.realpath(place, strict=True)) for place in (path, checkout))
        _refuse_reachable(where, root)
        with long_integers():
            checks = _folder(where) if where.is_dir() else _table(where, root)
    except OSError as error:
        message = f"The held-out checks, or a folder of the checkout, cannot be read: {error.strerror}."
        raise HeldOutError("HELD101", message, "Correct `heldout`, or make them readable.") from error
    if recorded not in {"", checks.digest}:
        message = "The held-out checks are not those that the run began with."
        raise HeldOutError("HELD108", message, "Put them back and resume, or start a new run.")
    return checks


def unknown_function(table: HeldOutTable, read: Callable[[str], bytes | None]) -> str:
    """Say what a tree lacks of a table's function (`HELD109`), or nothing; `read` returns a file of it by the path."""
    program, _, name = table.function.partition(":")
    content = read(program)
    if content is None:
        return "the file of `function` does not exist"
    words = set(re.findall(r"\w+", content.decode("utf-8", "replace")))
    return "" if words.issuperset(name.split(".")) else "the file of `function` does not have its name"


def _refuse_reachable(where: Path, root: Path) -> None:
    """Refuse what lies in the checkout, around it, or behind a link in it, also in `.git` and in ignored folders."""
    places = [root, *(Path(os.path.realpath(entry.path)) for entry in _entries(root) if entry.is_symlink())]
    if any(place.is_relative_to(where) or where.is_relative_to(place) for place in places):
        message = "The held-out checks lie inside the checkout or around it, or a symbolic link in it leads there."
        raise HeldOutError("HELD102", message, "Keep them in a separate folder, and remove links to it.")


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


def _unusable(what: str) -> HeldOutError:
    return HeldOutError("HELD103", f"The held-out checks {what}.", "Write regular files, without links, at least one.")


def _read(path: Path) -> tuple[bytes, bool]:
    """Read a regular file that has no other name; return its bytes and whether it is executable."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise _unusable("have a link, a second hard link, or something else that is no regular file")
    return path.read_bytes(), bool(status.st_mode & stat.S_IXUSR)


def _folder(where: Path) -> HeldOutFolder:
    found = sorted(Path(entry.path).relative_to(where) for entry in _entries(where))
    paths = [path for path in found if _LEFT_OUT.isdisjoint(path.parts)]
    if not 0 < len(paths) <= MAX_FILES:
        raise _unusable(f"have no file, or more than {MAX_FILES}")
    files = {path.as_posix(): _read(where / path) for path in paths}
    rows = [[path, executable, sha256(content).hexdigest()] for path, (content, executable) in files.items()]
    return HeldOutFolder(files, fingerprint(rows), (where,))


def _table(where: Path, root: Path) -> HeldOutTable:
    paths, contents = [where], [_read(where)[0]]
    keys = _parsed(contents[0], "it", toml=where.suffix == ".toml")
    table = cast("dict[str, object]", keys) if isinstance(keys, dict) else {}
    name = table.get("cases")
    if isinstance(name, str):
        if "/" in name or "\0" in name:
            raise _malformed("the file of `cases` is not beside it")
        paths.append(where.parent / name)
        _refuse_reachable(paths[1], root)
        contents.append(_read(paths[1])[0])
        lines = enumerate(contents[1].splitlines(), 1)
        table["cases"] = [_parsed(line, f"line {number} of the cases") for number, line in lines if line.strip()]
    digest = fingerprint([sha256(content).hexdigest() for content in contents])
    try:
        return HeldOutTable.model_validate(table | {"digest": digest, "paths": tuple(paths)})
    except ValidationError as error:
        raise _refusal(error) from None


def _parsed(content: bytes, what: str, *, toml: bool = False) -> object:
    try:
        return tomllib.loads(content.decode()) if toml else json.loads(content)
    except (ValueError, RecursionError):
        # The parser's own message would quote the content.
        raise _malformed(f"{what} cannot be parsed") from None


def _malformed(what: str) -> HeldOutError:
    fix = 'Use the keys of docs/sealed-gates.md, with values in their bounds; `function` is like "src/gcd.py:gcd".'
    return HeldOutError("HELD104", f"The held-out table is malformed: {what}.", fix)


def _refusal(error: ValidationError) -> HeldOutError:
    """Say where a table is wrong: the number of the case, and the key where it is one of ours."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    names = [f"case {part + 1}" if isinstance(part, int) else f"`{part}`" for part in fault["loc"][:3]]
    if fault["type"] == "extra_forbidden":
        names[-1] = "an unknown key"
    return _malformed(", ".join(names[1:] or names))
