"""`[reservations]` of the project's configuration, read with the standard library alone.

The hooks read it here and `gates/config.py` checks it here, so that both say the same of every file.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from interlock.core.finding import Finding
from interlock.core.text import closest, shown
from interlock.reservations.errors import SettingsError
from interlock.reservations.place import main_root

NORMAL_TIMEOUT_MINUTES: Final = 10
"""How long the holder has to answer a normal request (Negotiation PRD F5)."""
URGENT_TIMEOUT_MINUTES: Final = 5
"""How long the holder has to answer an urgent request (Negotiation PRD F5)."""
NEGOTIATION_POLL_SECONDS: Final = 0.02
"""How often a waiting call looks whether the store has changed."""

MAX_FILE_BYTES: Final = 1024 * 1024
NEVER: Final = "never"

Escalation: TypeAlias = Literal["advisory", "force"]


class Settings(NamedTuple):
    """What a project may set; the defaults count without a file.

    Args:
        ttl_minutes: How long a lease lives when the call does not say.
        max_ttl_minutes: How long a call may ask for.
        dead_after_minutes: An agent that was not seen for this long is silent, and its leases may be taken over.
        claim_minutes: How long a lease lives that was granted to a waiter without a call at that moment.
        linger_seconds: How long a call that gave up keeps its place in the wait queue.
        max_patterns: How many patterns one call may name.
        max_leases: How many leases one agent may hold.
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
    max_leases: int = 1000
    max_wait_seconds: float = 45
    escalation: Escalation = "advisory"
    urgent_timeout_minutes: float | None = URGENT_TIMEOUT_MINUTES
    normal_timeout_minutes: float | None = NORMAL_TIMEOUT_MINUTES
    low_timeout_minutes: float | None = None


class _Number(NamedTuple):
    least: float
    most: float
    whole: bool = False
    may_be_never: bool = False


_DAY: Final = 1440.0
_KEYS: Final[Mapping[str, _Number | tuple[str, ...]]] = {
    "ttl_minutes": _Number(0.01, 7 * _DAY), "max_ttl_minutes": _Number(0.01, 7 * _DAY),
    "dead_after_minutes": _Number(0.01, _DAY), "claim_minutes": _Number(0.01, 60),
    "linger_seconds": _Number(0, 3600), "max_patterns": _Number(1, 1000, whole=True),
    "max_leases": _Number(1, 100_000, whole=True), "max_wait_seconds": _Number(0, 45),
    "escalation": ("advisory", "force"), "timeout_minutes.urgent": _Number(0.01, _DAY, may_be_never=True),
    "timeout_minutes.normal": _Number(0.01, _DAY, may_be_never=True),
    "timeout_minutes.low": _Number(0.01, _DAY, may_be_never=True),
}  # fmt: skip
"""Every key of the table and what its value may be: a number within bounds, or one of some words."""
_TABLE: Final = "timeout_minutes"


def faults(table: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield everything that is wrong with a `[reservations]` table, in the order of its keys."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if key != _TABLE:
            flat[key] = value
        elif isinstance(value, dict):
            flat |= {f"{_TABLE}.{name}": limit for name, limit in cast("dict[str, Any]", value).items()}
        else:
            yield _bad(f"reservations.{_TABLE}", "it is not a table.", f"Write it as [reservations.{_TABLE}].")
    for key, value in flat.items():
        if fault := _fault(key, value):
            yield fault
    ttl, most = (_plain(flat.get(key, getattr(Settings(), key))) for key in ("ttl_minutes", "max_ttl_minutes"))
    if ttl is not None and most is not None and ttl > most:
        message = f"ttl_minutes is {ttl:g} and max_ttl_minutes is {most:g}."
        yield _bad("reservations.ttl_minutes", message, "Let max_ttl_minutes be at least as large.")


def _plain(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _bad(key: str, message: str, fix: str, code: str = "CFG104") -> Finding:
    return Finding(code, "error", key, message, fix=fix)


def _fault(key: str, value: object) -> Finding | None:
    where, said = f"reservations.{key}", shown(repr(value), 60)
    rule = _KEYS.get(key)
    if rule is None:
        return _unknown(key)
    if not isinstance(rule, _Number):
        wanted = " or ".join(f'"{word}"' for word in rule)
        return None if value in rule else _bad(where, f"{said} is not one of its values.", f"Write {wanted}.")
    wanted = f"{'a whole number' if rule.whole else 'a number'} from {rule.least:g} to {rule.most:g}"
    wanted += f' or "{NEVER}"' if rule.may_be_never else ""
    if rule.may_be_never and value == NEVER:
        return None
    number = _plain(value)
    if number is None or (rule.whole and not isinstance(value, int)):
        return _bad(where, f"{said} is not {wanted.split(' from ')[0]}.", f"Write {wanted}.")
    if rule.least <= number <= rule.most:
        return None
    return _bad(where, f"{number:g} is out of bounds.", f"Write {wanted}.")


def _unknown(key: str) -> Finding:
    folder, _, name = key.rpartition(".")
    prefix = f"{folder}." if folder else ""
    known = [row[len(prefix) :] for row in _KEYS if row.startswith(prefix) and "." not in row[len(prefix) :]]
    known += [] if folder else [_TABLE]
    near = closest(name, known)
    fix = f"Write `{near}`." if near else f"Remove it; the keys here are {', '.join(known)}."
    return _bad(f"reservations.{key}", f"the key `{name}` is unknown.", fix, "CFG103")


def build(table: Mapping[str, Any]) -> Settings:
    """Return the settings in a table, or raise `SettingsError` for the first of its faults."""
    for fault in faults(table):
        raise SettingsError(f"{fault.field}: {fault.message}", fault.fix, fault.field)
    values: dict[str, Any] = {key: value for key, value in table.items() if key != _TABLE}
    for name, limit in table.get(_TABLE, {}).items():
        values[f"{name}_{_TABLE}"] = None if limit == NEVER else limit
    return Settings(**values)


def read(root: str) -> Settings:
    """Return the settings of a project: `interlock.toml`, or `[tool.interlock]` of `pyproject.toml`.

    One store has one set of rules: all worktrees of a repository use the files of the main one (`place.main_root`). A
    file that never says `reservations` is not parsed: it costs a hook nothing. One that cannot be read or is not TOML,
    or has a fault, raises `SettingsError`, and so do two with the table.
    """
    root = main_root(root)
    own = _table(root, "interlock.toml", ())
    shared = _table(root, "pyproject.toml", ("tool", "interlock"))
    if own is not None and shared is not None:
        message = f"{root}: both interlock.toml and [tool.interlock] in pyproject.toml have [reservations]."
        raise SettingsError(message, "Move everything into one of them and remove the other.", "reservations")
    for name, table in (("interlock.toml", own), ("pyproject.toml", shared)):
        if table is not None:
            try:
                return build(table)
            except SettingsError as error:
                where = os.path.join(root, name)
                raise SettingsError(f"{where}: {error.message}", error.fix, error.key) from None
    return Settings()


def _table(root: str, name: str, above: tuple[str, ...]) -> Mapping[str, Any] | None:
    path = os.path.join(root, name)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path}: it cannot be read: {error.strerror}.", "Make it readable.") from error
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError(f"{path}: it is larger than {MAX_FILE_BYTES} bytes.", "Make it smaller.")
    if b"reservations" not in data and b"\\u" not in data.lower():
        return None
    import tomllib  # noqa: PLC0415 - slow to import, and most projects have no such table

    try:
        table: object = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: it is not valid TOML: {error}.", "Correct it at the place named.") from error
    for key in (*above, "reservations"):
        if not isinstance(table, dict):
            raise SettingsError(f"{path}: `{key}` is looked for in what is not a table.", "Write a table there.", key)
        table = cast("dict[str, object]", table).get(key)
        if table is None:
            return None
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: reservations is not a table.", "Write it as [reservations].", "reservations")
    return cast("dict[str, Any]", table)
