"""Whatever is sent as an argument is answered: with success, or with a refusal that has changed nothing."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pytest

from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.rules import RULES
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from interlock.reservations.store.sqlite import SqliteStore

ODD: Final[dict[str, object]] = {
    "none": None, "true": True, "false": False, "zero": 0, "one": 1, "minus one": -1, "half": 0.5,
    "minus half": -0.5, "large": 2**31, "larger than a column": 2**63, "huge": 10**30,
    "more digits than Python shows": 10**5000, "nan": float("nan"), "infinity": float("inf"),
    "minus infinity": float("-inf"), "empty": "", "blank": " ", "blanks": "   ", "newline": "\n", "text": "a",
    "folder": "src/", "everything": "**", "star": "*", "absolute": "/etc/passwd", "home": "~/x", "above": "../x",
    "inside above": "a/../../x", "dot": ".", "slash": "/", "slashes": "//", "backslash": "a\\b",
    "open bracket": "a[", "open brace": "a{", "braces": "{a,b}", "many braces": "{a,b}" * 20, "NUL": "\0",
    "NUL inside": "a\0b", "control": "a\x1bb", "unit separator": "\x1freleased neg_0", "delete": "\x7f",
    "half of a pair": "\ud800", "other half inside": "a\udfffb", "undecoded byte": "\udc80.py",
    "last character": "\U0010ffff", "direction": "\u202eabc", "zero width": "a\u200bb", "combining": "e\u0301",
    "emoji": "🦀", "long": "x" * 5000, "very long": "x" * 200_000, "long and wide": "é" * 3000, "quotes": '"' * 400,
    "json": '{"type": "release-ack", "file": 1}',
    "json with half of a pair": '{"type": "release-ack", "file": "a", "released": true, "released_by": "\\ud800"}',
    "deep json": "[" * 900 + "]" * 900, "sql": "'; DROP TABLE lease; --", "plain": "interlock",
    "thread": "neg_0123456789abcdef", "reservation": "rsv_0123456789abcdef", "bytes": b"a", "empty list": [],
    "list": ["a", "b"], "list of odd texts": ["\ud800", "\0", "a\0b", ""],
    "list of anything": [None, 1, {}, [], 0.5], "long list": ["x"] * 10_000,
    "deep list": reduce(lambda row, _: [row], range(50_000), list[Any]()), "tuple": ("a",), "dict": {"a": "\ud800"},
    "set": {"a"}, "object": object(),
}  # fmt: skip

CALLS: Final[dict[str, dict[str, object]]] = {
    "reserve_files": {
        "patterns": ["mine/x"], "reason": "why", "ttl_minutes": 5, "exclusive": True, "no_force": False,
        "partial": False, "wait_seconds": 0, "idempotency_key": None,
    },
    "release_files": {"reservation_ids": ["rsv_0000000000000000"]},
    "check_conflicts": {"patterns": ["mine/x"]},
    "send_message": {"to": "bob", "body": "hello", "topic": None, "idempotency_key": None},
    "fetch_inbox": {"cursor": None, "unread_only": True, "limit": None},
    "request_release": {"agent_name": "bob", "pattern": "held/x", "reason": "why"},
    "negotiate_release": {
        "file": "held/x", "reason": "why", "urgency": "normal", "agent_name": None, "wait_seconds": 0,
    },
    "respond_to_release": {
        "thread_id": "neg_0000000000000000", "action": "defer", "file": None, "eta_minutes": 5, "reason": None,
    },
    "current_state": {"since_minutes": 60},
}  # fmt: skip
"""Every call that takes arguments, with good ones."""

TABLES: Final = ("lease", "waiter", "message", "negotiation", "answer")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    kept = SqliteStore(str(tmp_path / "store.sqlite"))
    yield kept
    kept.close()


def agent(store: SqliteStore, name: str) -> Reservations:
    """Return the calls of an agent; its waits are over at once."""
    now = iter(range(1_800_000_000, 1_900_000_000))
    runtime = Runtime(
        store, Settings(), clock=lambda: float(next(now)), monotonic=lambda: float(next(now)),
        pause=lambda _seconds: None,
    )  # fmt: skip
    return Reservations(runtime, Caller(name, "agent", "/checkout", "mcp"))


def rows(store: SqliteStore) -> list[Any]:
    """Return what a refusal must leave alone: signs of life and events are no part of it."""
    with sqlite3.connect(store.path) as connection:
        found = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]
    connection.close()
    return found


def refused(answer: Any) -> list[dict[str, Any]]:
    """Return the refusals of an answer, each whole and such that every entry point can send it."""
    json.dumps(answer, ensure_ascii=False).encode()
    errors = answer.get("errors", [])
    for error in errors:
        assert error["code"] in RULES
        assert all(error[part] for part in ("place", "expected", "fix"))
    return errors


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(("tool", "argument"), [(tool, name) for tool, given in CALLS.items() for name in given])
def test_any_argument_is_answered_and_a_refusal_changes_nothing(store: SqliteStore, tool: str, argument: str) -> None:
    agent(store, "bob").reserve_files(["held/**"])
    calls = agent(store, "ada")
    calls.my_reservations()
    work: Callable[..., Any] = getattr(calls, tool)
    before = rows(store)
    for name, value in ODD.items():
        errors = refused(work(**{**CALLS[tool], argument: value}))
        after = rows(store)
        if errors:
            assert after == before, name
        before = after


@pytest.mark.parametrize("value", ["\ud800", "a\0b"], ids=("half", "NUL"))
@pytest.mark.parametrize(
    ("tool", "argument", "code"),
    [
        ("reserve_files", "patterns", "RSV102"),
        ("reserve_files", "reason", "RSV105"),
        ("reserve_files", "idempotency_key", "RSV105"),
        ("release_files", "reservation_ids", "RSV203"),
        ("check_conflicts", "patterns", "RSV102"),
        ("send_message", "to", "RSV301"),
        ("send_message", "body", "RSV302"),
        ("send_message", "topic", "RSV302"),
        ("send_message", "idempotency_key", "RSV105"),
        ("request_release", "agent_name", "RSV301"),
        ("request_release", "reason", "RSV105"),
        ("negotiate_release", "file", "RSV102"),
        ("negotiate_release", "reason", "RSV105"),
        ("negotiate_release", "agent_name", "RSV301"),
        ("respond_to_release", "thread_id", "RSV304"),
        ("respond_to_release", "file", "RSV102"),
        ("respond_to_release", "reason", "RSV105"),
    ],
)
def test_half_a_pair_and_a_nul_are_no_text(store: SqliteStore, tool: str, argument: str, code: str, value: str) -> None:
    agent(store, "bob").reserve_files(["held/**"])
    given = [value] if argument in {"patterns", "reservation_ids"} else value
    work: Callable[..., Any] = getattr(agent(store, "ada"), tool)
    assert code in [error["code"] for error in refused(work(**{**CALLS[tool], argument: given}))]
