"""`[reservations]` of the project's configuration, read with the standard library alone.

What counts is the last commit of the main checkout: the table says when a holder loses its files, so an edit of the
file must not change it for the others. Before a first commit, and outside of git, it is the file on the disk. Hooks
read it at each call and run no git: what was read is kept by the id of the commit in the state folder, and git is asked
once for each new commit. What is wrong with the table is reported and stops nobody: there the default counts.

`gates/config.py` checks the file on the disk here, so that both say the same of every file.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from interlock.core import state
from interlock.core.finding import Finding
from interlock.core.record import Record
from interlock.core.text import closest, shown
from interlock.reservations.place import commit_at, main_root
from interlock.reservations.store.records import replace

NORMAL_TIMEOUT_MINUTES: Final = 10
"""How long the holder has to answer a normal request (Negotiation PRD F5)."""
URGENT_TIMEOUT_MINUTES: Final = 5
"""How long the holder has to answer an urgent request (Negotiation PRD F5)."""
NEGOTIATION_POLL_SECONDS: Final = 0.02
"""How often a waiting call looks whether the store has changed."""
SHARED_POLL_SECONDS: Final = 0.2
"""The same where the store is a database on the network."""

NEVER: Final = "never"

Escalation: TypeAlias = Literal["advisory", "force"]


class Settings(Record):
    """How reservations work. What is a key of the table (`KEYS`) a project may set.

    Args:
        ttl_minutes: How long a lease lives when the call does not say.
        max_ttl_minutes: How long a call may ask for.
        dead_after_minutes: An agent that was not seen for this long is silent, and its leases may be taken over.
        claim_minutes: How long a lease lives that was granted to a waiter without a call at that moment.
        linger_seconds: How long a call that gave up keeps its place in the wait queue.
        max_patterns: How many patterns one call may name.
        max_wait_seconds: How long one call may wait; clients give up on a call after about a minute.
        escalation: What happens to a request whose time ran out: `advisory` reports it, `force` takes the lease.
        urgent_timeout_minutes: Time limit of an urgent request; `"never"` for none.
        normal_timeout_minutes: Time limit of a normal request; `"never"` for none.
        low_timeout_minutes: Time limit of a request with low urgency; `"never"` for none.
    """

    ttl_minutes: float = 15
    max_ttl_minutes: float = 1440
    dead_after_minutes: float = 5
    claim_minutes: float = 2
    linger_seconds: float = 60
    max_patterns: int = 100
    max_wait_seconds: float = 45
    escalation: Escalation = "advisory"
    urgent_timeout_minutes: float | None = URGENT_TIMEOUT_MINUTES
    normal_timeout_minutes: float | None = NORMAL_TIMEOUT_MINUTES
    low_timeout_minutes: float | None = None


class _Number(Record):
    least: float
    most: float
    may_be_never: bool = False


_DAY: Final = 1440.0
KEYS: Final[Mapping[str, _Number | tuple[str, ...]]] = {
    "ttl_minutes": _Number(0.01, 7 * _DAY),
    "max_ttl_minutes": _Number(0.01, 7 * _DAY),
    "dead_after_minutes": _Number(0.01, _DAY),
    "escalation": ("advisory", "force"),
    "timeout_minutes.urgent": _Number(0.01, _DAY, may_be_never=True),
    "timeout_minutes.normal": _Number(0.01, _DAY, may_be_never=True),
    "timeout_minutes.low": _Number(0.01, _DAY, may_be_never=True),
}
"""Every key of the table and what its value may be: a number within bounds, or one of some words."""
_TABLE: Final = "timeout_minutes"


class Report(Record):
    """The settings that count, with the default for each key that is wrong, and what is wrong with their table."""

    settings: Settings
    problems: tuple[Finding, ...] = ()


def faults(table: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield everything that is wrong with a `[reservations]` table, in the order of its keys."""
    if not isinstance(table.get(_TABLE, {}), dict):
        yield _bad(f"reservations.{_TABLE}", "it is not a table.", f"Write it as [reservations.{_TABLE}].")
    flat = _flat(table)
    for key, value in flat.items():
        if fault := _fault(key, value):
            yield fault
    ttl, most = (_plain(flat.get(key, getattr(Settings(), key))) for key in ("ttl_minutes", "max_ttl_minutes"))
    if ttl is not None and most is not None and ttl > most:
        message = f"ttl_minutes is {ttl:g} and max_ttl_minutes is {most:g}."
        yield _bad("reservations.ttl_minutes", message, "Let max_ttl_minutes be at least as large.")


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by their keys, those of the table inside by both: `timeout_minutes.low`."""
    inner: object = table.get(_TABLE)
    limits = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    own = {key: value for key, value in table.items() if key != _TABLE}
    return own | {f"{_TABLE}.{name}": limit for name, limit in limits.items()}


def _plain(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _bad(key: str, message: str, fix: str, code: str = "CFG104") -> Finding:
    return Finding(code, "error", key, message, fix=fix)


def _fault(key: str, value: object) -> Finding | None:
    where, said = f"reservations.{key}", shown(repr(value), 60)
    rule = KEYS.get(key)
    if rule is None:
        return _unknown(key)
    if not isinstance(rule, _Number):
        wanted = " or ".join(f'"{word}"' for word in rule)
        return None if value in rule else _bad(where, f"{said} is not one of its values.", f"Write {wanted}.")
    wanted = f"a number from {rule.least:g} to {rule.most:g}"
    wanted += f' or "{NEVER}"' if rule.may_be_never else ""
    if rule.may_be_never and value == NEVER:
        return None
    number = _plain(value)
    if number is not None and rule.least <= number <= rule.most:
        return None
    return _bad(where, f"{said} is not {wanted}.", f"Write {wanted}.")


def _unknown(key: str) -> Finding:
    folder, _, name = key.rpartition(".")
    prefix = f"{folder}." if folder else ""
    known = [row[len(prefix) :] for row in KEYS if row.startswith(prefix) and "." not in row[len(prefix) :]]
    known += [] if folder else [_TABLE]
    near = closest(name, known)
    fix = f"Write `{near}`." if near else f"Remove it; the keys here are {', '.join(known)}."
    return _bad(f"reservations.{key}", f"the key `{name}` is unknown.", fix, "CFG103")


def read(root: str) -> Settings:
    """Return the settings of a project; it never raises for what is in its files.

    One store has one set of rules: all worktrees of a repository use those of the main one (`place.main_root`).
    """
    return build(_counting(main_root(root)).table).settings


def report(root: str) -> Report:
    """Return the settings of a project with all that is wrong with them, and whether the disk has others."""
    main = main_root(root)
    found, disk = _counting(main), _on_disk(main)
    made = build(found.table)
    problems = (*found.problems, *(fault._replace(path=found.path) for fault in made.problems))
    if json.dumps(found, default=str) == json.dumps(disk, default=str):
        return replace(made, problems=problems)
    message = "[reservations] on the disk is not that of the last commit, which counts."
    fix = "Commit the file, or take the change back."
    late = Finding("CFG106", "warning", "", message, fix=fix, path=disk.path or found.path)
    return replace(made, problems=(*problems, late))


_NAMES: Final = ("interlock.toml", "pyproject.toml")
_KEPT: Final = "interlock.settings/1"


class _Found(Record):
    """A `[reservations]` table, empty for none, the file that it is from, and what is wrong with the files."""

    table: Mapping[str, Any]
    path: str = ""
    problems: tuple[Finding, ...] = ()


def build(table: Mapping[str, Any]) -> Report:
    """Return the settings in a table, and its faults."""
    problems = tuple(faults(table))
    wrong = {fault.field for fault in problems}
    values: dict[str, Any] = {}
    for key, value in _flat(table).items():
        if f"reservations.{key}" not in wrong:
            folder, _, name = key.rpartition(".")
            values[f"{name}_{folder}" if folder else name] = None if value == NEVER else value
    made = Settings(**values)
    return Report(replace(made, ttl_minutes=min(made.ttl_minutes, made.max_ttl_minutes)), problems)


def _counting(main: str) -> _Found:
    """Return the table that counts: of the last commit, or on the disk where there is none."""
    commit = commit_at(main).partition("\n")[0]
    if not commit:
        return _on_disk(main)
    path = os.path.join(state.folder(), "settings", main.lstrip("/"), "reservations.json")
    if (kept := _kept(path, commit)) is not None:
        return kept
    found = _of_commit(main, commit)
    if found is None:
        fix = f"Run `git cat-file -p {commit[:12]}` in {main}, and repair what it says."
        return _Found({}, problems=(_bad("", "git cannot read the last commit: the defaults count.", fix, "CFG101"),))
    _keep(path, commit, found)
    return found


def _kept(path: str, commit: str) -> _Found | None:
    """Return what was read of a commit before; None where it is not there, or damaged."""
    try:
        with open(path, "rb") as file:
            kept = json.load(file)
        if (kept["schema"], kept["commit"]) != (_KEPT, commit):
            return None
        rows = tuple(
            Finding(code, "error", key, said, fix=fix, path=at) for code, key, said, fix, at in kept["problems"]
        )
        return _Found(dict(kept["table"]), str(kept["path"]), rows)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _keep(path: str, commit: str, found: _Found) -> None:
    from contextlib import suppress  # noqa: PLC0415 - once for each commit

    from interlock.core.files import write_atomically  # noqa: PLC0415

    rows = [(row.code, row.fix, row.path, row.field, row.message) for row in found.problems]
    data = {"schema": _KEPT, "commit": commit, "table": found.table, "path": found.path, "problems": rows}
    with suppress(OSError):  # then git is asked again
        write_atomically(path, json.dumps(data, default=str).encode(), mode=0o600, durable=False)


def _of_commit(main: str, commit: str) -> _Found | None:
    """Return the table in a commit; None where git does not answer."""
    from interlock.core import git  # noqa: PLC0415 - once for each commit

    asked = "".join(f"{commit}:{name}\n" for name in _NAMES)
    arguments = ("cat-file", "--batch=%(objecttype) %(objectsize)", "--follow-symlinks")
    # Another object that stands in the place of the commit is not the last commit.
    ran = git.run(main, arguments, "listing", data=asked.encode(), also={"GIT_NO_REPLACE_OBJECTS": "1"})
    if ran.status != 0:
        return None
    files: list[bytes | None] = []
    rest = ran.output
    for _ in _NAMES:
        head, _, rest = rest.partition(b"\n")
        kind, _, size = head.rpartition(b" ")
        length = int(size) if size.isdigit() else -1  # `missing`
        files.append(rest[:length] if kind == b"blob" else None)
        rest = rest[length + 1 :]
    return _of_files(files)


def _on_disk(main: str) -> _Found:
    files: list[bytes | None] = []
    for name in _NAMES:
        try:
            with open(os.path.join(main, name), "rb") as file:
                files.append(file.read())
        except FileNotFoundError:
            files.append(None)
        except OSError as error:
            problem = _unread(name, f"the file cannot be read: {error.strerror}.", "Make it readable.")
            return _Found({}, name, (problem,))
    return _of_files(files)


def _of_files(files: list[bytes | None]) -> _Found:
    """Return the table in `interlock.toml`, or in `[tool.interlock]` of `pyproject.toml`, by their contents."""
    found = [_table(name, data) for name, data in zip(_NAMES, files, strict=True) if data is not None]
    with_table = [each for each in found if each.table]
    problems = tuple(problem for each in found for problem in each.problems)
    if len(with_table) > 1:
        message = "both interlock.toml and [tool.interlock] in pyproject.toml have [reservations]: the defaults count."
        problem = _bad("", message, "Move everything into one of them and remove the other.", "CFG102")
        return _Found({}, _NAMES[0], (problem._replace(path=_NAMES[0]),))
    return replace((*with_table, _Found({}))[0], problems=problems)


def _unread(name: str, message: str, fix: str) -> Finding:
    return _bad("", message, fix, "CFG101")._replace(path=name)


def _table(name: str, data: bytes) -> _Found:
    """Return the table in the content of a file; one without the word `reservations` is not parsed."""
    if b"reservations" not in data:
        return _Found({}, name)
    import tomllib  # noqa: PLC0415 - slow to import, and most projects have no such table

    try:
        table: object = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return _Found({}, name, (_unread(name, f"it is not valid TOML: {error}.", "Correct it at the place named."),))
    for key in (*(() if name == _NAMES[0] else ("tool", "interlock")), "reservations"):
        table = cast("dict[str, object]", table).get(key, {}) if isinstance(table, dict) else table
    if not isinstance(table, dict):
        problem = _bad("reservations", "it is not a table.", "Write it as [reservations].")
        return _Found({}, name, (problem._replace(path=name),))
    return _Found(cast("dict[str, Any]", table), name)
