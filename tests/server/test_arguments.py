"""A call is compared with its tool's own schema, and everything wrong with it is reported at once."""

from typing import Any

import pytest

from interlock.server.mcp.arguments import MAX_PROBLEMS, check_arguments, unknown_tool
from tests.table import each_row

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string"},
        "revision": {"type": "integer"},
        "payload": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        "gates": {"type": "array", "items": {"type": "string"}},
        "status": {"enum": ["IN_PROGRESS", "BLOCKED"], "type": "string"},
        "extract": {"type": "boolean"},
        "wait": {"type": "number"},
    },
    "required": ["run_id", "revision", "payload"],
}
GOOD: dict[str, Any] = {"run_id": "r", "revision": 1, "payload": {}}


@each_row(
    "extra",
    [
        {},
        {"payload": "{}"},
        {"payload": '{"a":1,"a":2}'},
        {"gates": []},
        {"gates": ["GATE-A"]},
        {"gates": None},
        {"status": "BLOCKED", "extract": True, "wait": 1.5},
        {"revision": 2.0},
    ],
)
def test_arguments_that_fit_pass(extra: dict[str, Any]) -> None:
    assert check_arguments(SCHEMA, {**GOOD, **extra}) == ()


@each_row(
    ("arguments", "code", "place"),
    [
        ({**GOOD, "run": "r"}, "MCP202", "run"),
        ({**GOOD, "x" * 500: 1}, "MCP202", "x" * 79 + "…"),
        ({"run_id": "r", "revision": 1}, "MCP203", "payload"),
        ({**GOOD, "run_id": None}, "MCP204", "run_id"),
        ({**GOOD, "run_id": 3}, "MCP204", "run_id"),
        ({**GOOD, "revision": "1"}, "MCP204", "revision"),
        ({**GOOD, "revision": True}, "MCP204", "revision"),
        ({**GOOD, "revision": 1.5}, "MCP204", "revision"),
        ({**GOOD, "payload": []}, "MCP204", "payload"),
        ({**GOOD, "payload": None}, "MCP204", "payload"),
        ({**GOOD, "gates": "GATE-A"}, "MCP204", "gates"),
        ({**GOOD, "gates": ["GATE-A", 1]}, "MCP204", "gates"),
        ({**GOOD, "status": "DONE"}, "MCP204", "status"),
        ({**GOOD, "extract": "true"}, "MCP204", "extract"),
        ({**GOOD, "wait": "1"}, "MCP204", "wait"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: dict[str, Any], code: str, place: str) -> None:
    (problem,) = check_arguments(SCHEMA, arguments)
    assert (problem.code, problem.field) == (code, place)
    assert all((problem.message, problem.found, problem.expected, problem.fix))


def test_a_near_miss_is_named() -> None:
    (problem,) = check_arguments(SCHEMA, {**GOOD, "revison": 1})
    assert problem.fix == "Write `revision`."


def test_everything_wrong_is_reported_at_once() -> None:
    found = check_arguments(SCHEMA, {"run": "r", "revision": "1", "status": 1})
    assert [each.code for each in found] == ["MCP202", "MCP203", "MCP203", "MCP204", "MCP204"]


def test_an_unknown_tool_gets_the_nearest_one() -> None:
    known = ["interlock_begin_run", "interlock_submit_ticket"]
    assert unknown_tool("interlock_beginrun", known).fix == "Call `interlock_begin_run`."
    assert "interlock_submit_ticket" in unknown_tool("bash", known).fix


@pytest.mark.timeout(20)
def test_a_flood_of_unknown_arguments_gets_a_short_answer() -> None:
    found = check_arguments(SCHEMA, {f"revision{number}": 1 for number in range(200_000)})
    assert len(found) == MAX_PROBLEMS
