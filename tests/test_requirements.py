"""Every promise has its tests, and every clause of the protocol has its rules."""

import ast
from pathlib import Path

import pytest

from interlock.envelope import RULES
from interlock.envelope.protocol import TRANSITIONS
from interlock.gates.rules import RULES as EVIDENCE_RULES
from tests.requirements import CLAUSES, PROMISES

TESTS = Path(__file__).parent


def test_names() -> dict[str, Path]:
    """Return every test function of the suite."""
    return {
        node.name: path
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


test_names.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_is_held_by_tests_that_exist(promise: str) -> None:
    names = test_names()
    assert PROMISES[promise]
    assert [name for name in PROMISES[promise] if name not in names] == []


@pytest.mark.parametrize("clause", CLAUSES)
def test_every_clause_of_the_protocol_is_enforced_by_a_row(clause: str) -> None:
    sources = [rule.source for rule in (*RULES, *EVIDENCE_RULES)] + [row.clause for row in TRANSITIONS]
    assert any(clause in source for source in sources)
