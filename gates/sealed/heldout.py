"""Held-out checks: tests and tables of cases that no agent sees, read from outside the checkout.

A folder holds tests that are laid over the export at the end; a file, in TOML or JSON, has cases for one function. Its
keys are described in docs/sealed-gates.md.

An agent may see what a refusal says, so a message here never has a name, a path or a value in it, only keys of the
format and numbers of cases.
"""

import json
import math
import os
import stat
import sys
import threading
import tomllib
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, TypeAlias, cast

from interlock.gates.errors import CollectorError

Language: TypeAlias = Literal["python", "javascript"]

DEFAULT_TIMEOUT_SECONDS: Final = 20.0
MAX_TIMEOUT_SECONDS: Final = 3600.0
MAX_FILES: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 100
MAX_DIGITS: Final = 100_000
_DIGITS: Final = threading.Lock()

_LANGUAGES: Final[Mapping[str, Language]] = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
}
_LEFT_OUT: Final = frozenset({".git", "__pycache__", ".pytest_cache", ".DS_Store"})
_TABLE_KEYS: Final = frozenset({"function", "timeout_seconds", "tolerance", "absolute_tolerance", "cases"})
_CASE_KEYS: Final = frozenset({"args", "expected", "raises", "tolerance", "absolute_tolerance"})
_MOST_RELATIVE: Final = 0.099
"""A relative tolerance of 1 accepts every number of the same sign."""
_MOST_ABSOLUTE: Final = 1e300


_Tolerances: TypeAlias = tuple[float | None, float | None]


class HeldOutError(CollectorError):
    """Held-out checks cannot be used, so their gate is not passed. An agent may read the message."""


@dataclass(frozen=True, slots=True)
class HeldOutFile:
    """One file of a folder of held-out tests; its path is relative to the folder, with `/`."""

    path: str
    content: bytes = field(repr=False)
    executable: bool = False


@dataclass(frozen=True, slots=True)
class HeldOutFolder:
    """Tests that are laid over the export, sorted by path; the digest is over paths, modes and contents."""

    files: tuple[HeldOutFile, ...] = field(repr=False)
    digest: str


@dataclass(frozen=True, slots=True)
class Case:
    """One call with positional arguments, as JSON values, and what it must come to: a value, or an error of a class.

    `expected` is without meaning where `raises` is given. A tolerance of None is none.
    """

    args: tuple[Any, ...]
    expected: Any = None
    raises: str = ""
    tolerance: float | None = None
    absolute: float | None = None


@dataclass(frozen=True, slots=True)
class HeldOutTable:
    """Cases, at least one, for one function.

    `program` is relative to the project's root; `function` has dots for an attribute of a class or object; the time for
    each call includes the start of the interpreter; the digest is over the table and the file of its cases.
    """

    program: str
    function: str
    language: Language
    cases: tuple[Case, ...] = field(repr=False)
    timeout_seconds: float
    digest: str


def load_held_out(path: Path, *, checkout: Path) -> HeldOutFolder | HeldOutTable:
    """Read held-out checks, a folder or a table, and refuse those that an agent reaches in its checkout.

    Raises:
        HeldOutError: `HELD101` it cannot be read, `HELD102` it can be reached from the checkout, `HELD103` there are
            other files than plain ones, none, or too many, `HELD104` the table is malformed, `HELD105` one of its
            cases is, `HELD106` `function` names no function of the project.
    """
    try:
        where, root = path.resolve(strict=True), checkout.resolve(strict=True)
        _refuse_reachable(where, root)
        return _folder(where) if where.is_dir() else _table(where)
    except (OSError, RuntimeError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it leads in a circle"
        raise HeldOutError(
            "HELD101", f"The held-out checks cannot be read: {reason}.", "Correct `heldout`, or make them readable."
        ) from error


@contextmanager
def long_integers() -> Generator[None]:
    """Let integers of up to `MAX_DIGITS` digits be read and written, which Python otherwise limits to 4,300."""
    with _DIGITS:
        before = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(MAX_DIGITS)
        try:
            yield
        finally:
            sys.set_int_max_str_digits(before)


def paths_of(path: Path) -> tuple[str, ...]:
    """Return the folder or file of held-out checks, without links, and for a table the folder with it and its cases."""
    where = os.path.realpath(path)
    return (where,) if os.path.isdir(where) else (os.path.dirname(where), where)


# -- who reaches them ------------------------------------------------------------------------------------------------


def _refuse_reachable(where: Path, root: Path) -> None:
    """Refuse what lies in the checkout, around it, or behind a link in it."""
    fix = "Keep them in a folder that has nothing to do with the checkout."
    if where.is_relative_to(root):
        raise HeldOutError("HELD102", "The held-out checks lie inside the checkout.", fix)
    if root.is_relative_to(where):
        raise HeldOutError("HELD102", "The checkout lies inside the folder of held-out checks.", fix)
    for link in _links(root):
        target = Path(os.path.realpath(link))
        if target == where or target.is_relative_to(where) or where.is_relative_to(target):
            raise HeldOutError(
                "HELD102", "A symbolic link in the checkout leads to the held-out checks.", f"Remove the link. {fix}"
            )


def _links(root: Path) -> Iterable[str]:
    """Yield every symbolic link of the checkout, ignored folders and `.git` included."""
    waiting = [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.is_dir():
                    waiting.append(entry.path)


def _read(path: Path, left_bytes: int) -> tuple[bytes, bool]:
    """Read a plain file that has no other name; return its bytes and whether it may be run."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise HeldOutError("HELD103", "A held-out file is no plain file.", "Write plain files.")
        if about.st_nlink > 1:
            message = "A held-out file has a second hard link, perhaps in the checkout."
            raise HeldOutError("HELD103", message, "Copy it in place of linking it.")
        content = file.read(left_bytes + 1)
    if len(content) > left_bytes:
        raise HeldOutError("HELD103", f"The held-out files have more than {MAX_BYTES} bytes.", "Keep fewer or smaller.")
    return content, bool(about.st_mode & stat.S_IXUSR)


# -- a folder --------------------------------------------------------------------------------------------------------


def _folder(where: Path) -> HeldOutFolder:
    """Read every file below a folder; nothing in it is followed out of it."""
    found: list[HeldOutFile] = []
    size_bytes = 0
    waiting = [where]
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            entries = [entry for entry in listing if entry.name not in _LEFT_OUT]
        for entry in entries:
            if entry.is_symlink():
                raise HeldOutError("HELD103", "The folder of held-out tests has a symbolic link.", "Write plain files.")
            if entry.is_dir():
                waiting.append(Path(entry.path))
                continue
            content, executable = _read(Path(entry.path), MAX_BYTES - size_bytes)
            size_bytes += len(content)
            found.append(HeldOutFile(Path(entry.path).relative_to(where).as_posix(), content, executable))
            if len(found) > MAX_FILES:
                raise HeldOutError("HELD103", f"There are more than {MAX_FILES} held-out files.", "Keep fewer.")
    if not found:
        raise HeldOutError("HELD103", "The folder of held-out tests is empty.", "Write at least one test into it.")
    found.sort(key=lambda file: file.path)
    digest = sha256()
    for file in found:
        digest.update(f"{len(os.fsencode(file.path))} {int(file.executable)} ".encode("ascii"))
        digest.update(os.fsencode(file.path) + sha256(file.content).digest())
    return HeldOutFolder(tuple(found), f"sha256:{digest.hexdigest()}")


# -- a table ---------------------------------------------------------------------------------------------------------


def _fault(message: str, fix: str) -> HeldOutError:
    return HeldOutError("HELD104", f"The held-out table {message}", fix)


def _table(where: Path) -> HeldOutTable:
    content, _ = _read(where, MAX_BYTES)
    digest = sha256(content)
    table = _parsed(where.suffix, content)
    if unknown := table.keys() - _TABLE_KEYS:
        raise _fault(f"has {len(unknown)} unknown keys.", f"Use only {', '.join(sorted(_TABLE_KEYS))}.")
    program, function, language = _function(table.get("function"))
    rows = table.get("cases")
    if isinstance(rows, str):
        if rows in {"", ".", ".."} or "/" in rows or "\0" in rows:
            raise _fault("names a file of cases elsewhere.", "Write the name of a file beside the table.")
        beside, _ = _read(where.parent / rows, MAX_BYTES)
        digest.update(b"\0" + beside)
        rows = _lines(beside)
    if not isinstance(rows, list) or not rows:
        raise _fault("has no cases.", "Write `[[cases]]` tables, or the name of a `.jsonl` file beside it.")
    tolerances = _tolerances(table, (None, None))
    limit = _number(table.get("timeout_seconds", DEFAULT_TIMEOUT_SECONDS), "timeout_seconds", 0.1, MAX_TIMEOUT_SECONDS)
    cases = tuple(_case(number, row, tolerances) for number, row in enumerate(cast("list[object]", rows), 1))
    if language == "javascript" and any(_not_finite(case.args) for case in cases):
        raise _fault("gives JavaScript an argument that JSON has not.", "Leave out arguments that are NaN or infinite.")
    return HeldOutTable(program, function, language, cases, limit or 0.0, f"sha256:{digest.hexdigest()}")


def _parsed(suffix: str, content: bytes) -> dict[str, object]:
    """Return the table in a file; a list in a JSON file is none."""
    try:
        text = content.decode("utf-8")
        with long_integers():
            reads = {".json": json.loads, ".toml": tomllib.loads}
            table: object = reads[suffix](text) if suffix in reads else None
    except (ValueError, RecursionError):
        # The parser's own message would quote the table.
        raise _fault("cannot be parsed.", "Make it valid TOML or JSON in UTF-8.") from None
    if not isinstance(table, dict):
        raise _fault("is no table.", "Write a `.toml` file, or a `.json` file with an object.")
    return cast("dict[str, object]", table)


def _lines(content: bytes) -> list[object]:
    rows: list[object] = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            try:
                with long_integers():
                    rows.append(json.loads(line.decode("utf-8")))
            except (ValueError, RecursionError):
                raise _bad(f"line {number} is no JSON", "Write one JSON value in each line.") from None
    return rows


def _function(value: object) -> tuple[str, str, Language]:
    """Split `src/gcd.py:gcd`."""
    program, _, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    path = PurePosixPath(program)
    plain = program == str(path) and not path.is_absolute() and ".." not in path.parts and "\0" not in program
    language = _LANGUAGES.get(path.suffix)
    if not plain or language is None or not all(part.isidentifier() for part in name.split(".")):
        raise HeldOutError(
            "HELD106",
            "`function` of the held-out table names no function of the project.",
            'Write a file relative to the project\'s root and a name, such as "src/gcd.py:gcd"; '
            f"the file ends in {', '.join(_LANGUAGES)}.",
        )
    return program, name, language


def _number(value: object, key: str, least: float, most: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        more = "; a larger difference is `absolute_tolerance`." if key == "tolerance" else "."
        raise _fault(f"has a `{key}` that is no number in bounds.", f"Write {least:g} to {most:g}{more}")
    return float(value)


def _tolerances(row: Mapping[str, object], given: "_Tolerances") -> "_Tolerances":
    """Return both tolerances of a table or of a case, with those that are given where it has none."""
    relative = _number(row.get("tolerance", given[0]), "tolerance", 0.0, _MOST_RELATIVE)
    absolute = _number(row.get("absolute_tolerance", given[1]), "absolute_tolerance", 0.0, _MOST_ABSOLUTE)
    return relative, absolute


def _bad(what: str, fix: str) -> HeldOutError:
    return HeldOutError("HELD105", f"In the held-out table, {what}.", fix)


def _case(number: int, row: object, tolerances: "_Tolerances") -> Case:
    if isinstance(row, list) and len(cast("list[object]", row)) == 2:
        row = dict(zip(("args", "expected"), cast("list[object]", row), strict=True))
    if not isinstance(row, dict):
        raise _bad(f"case {number} is no table", "Write `args` and `expected`.")
    case = cast("dict[str, object]", row)
    args, raises = case.get("args"), case.get("raises", "")
    own = _tolerances(case, tolerances)
    if case.keys() - _CASE_KEYS or not isinstance(args, list) or ("expected" in case) == ("raises" in case):
        fix = "Write `args`, a list, and either `expected` or `raises`; only tolerances may be added."
        raise _bad(f"case {number} has not the keys of one", fix)
    if not isinstance(raises, str) or ("raises" in case and not raises):
        raise _bad(f"`raises` of case {number} is no name", "Write the name of the class of the error.")
    values = cast("list[Any]", args)
    if not (_is_json(values) and _is_json(case.get("expected"))):
        raise _bad(f"case {number} has a value that JSON has not", "Write dates and times as text.")
    return Case(tuple(values), case.get("expected"), raises, *own)


def _is_json(value: object, depth: int = 0) -> bool:
    """Return whether a value has only what JSON has, NaN and the infinities besides."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, list):
        return all(_is_json(item, depth + 1) for item in cast("list[object]", value))
    if isinstance(value, dict):
        return all(_is_json(item, depth + 1) for item in cast("dict[str, object]", value).values())
    return value is None or isinstance(value, bool | int | float | str)


def _not_finite(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(_not_finite(item) for item in cast("Iterable[object]", value))
    if isinstance(value, dict):
        return any(_not_finite(item) for item in cast("dict[str, object]", value).values())
    return isinstance(value, float) and not math.isfinite(value)
