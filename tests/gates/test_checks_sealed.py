"""What the header of a sealed gate's log comes to: one finding for each fault, and what a reviewer has to know."""

from typing import Any

import pytest

from interlock.core.finding import Finding
from interlock.envelope.protocol import GateSpec
from interlock.gates.checks import check_gate
from interlock.gates.checks.sealed import FAULTS
from tests.gates.support import codes, command_log, subject
from tests.table import each_row

GATE = GateSpec("GATE-TESTS", "x", None, ("reports",), check="command", grade="runner", command=("pytest",))
SEALED: dict[str, Any] = {"parsed": True, "observed": True, "runner": "pytest"} | dict.fromkeys(
    ("faults", "held_back", "outside", "inline", "product", "suppressions"), ()
)
FAULT = {"test": "t.py::a", "message": "It failed.", "found": "failed", "expected": "passed", "fix": "Correct it."}


def judged(**sealed: Any) -> list[Finding]:
    """Return what is found in a log whose header says this of a sealed run."""
    made = subject(command_log(GATE.id, sealed=SEALED | sealed), path="artifacts/reports/T-1/1/GATE-TESTS.log")
    return list(check_gate(GATE, [made], in_run=True))


CODES = (
    "EVD571",
    "EVD571",
    "EVD572",
    "EVD573",
    "EVD574",
    "EVD574",
    "EVD576",
    "EVD576",
    "EVD576",
    "EVD576",
    "EVD572",
    "EVD572",
    "EVD582",
    "EVD582",
    "EVD600",
    "EVD601",
    "EVD584",
    "EVD584",
    "EVD586",
    "EVD588",
    "EVD595",
    "EVD596",
    "EVD597",
)


@each_row(("kind", "code"), zip(FAULTS, CODES, strict=True))
def test_a_fault_is_an_error_of_its_code_whatever_the_exit_status(kind: str, code: str) -> None:
    (found,) = judged(faults=[{"kind": kind, **FAULT}])
    assert (found.code, found.level) == (code, "error")
    assert (found.found, found.expected, found.fix) == ("failed", "passed", "Correct it.")


@pytest.mark.parametrize(("key", "code"), [("held_back", "EVD590"), ("outside", "EVD591")])
def test_what_was_not_judged_explains_a_fault_and_is_no_finding_without_one(key: str, code: str) -> None:
    paths = [f"tests/test_{at}.py" for at in range(12)]
    assert judged() == judged(**{key: paths}) == []
    found = judged(**{key: paths}, faults=[{"kind": "failed", **FAULT}])
    assert (codes(found), found[1].level) == (["EVD574", code], "warning")
    assert "and 9 more" in found[1].message


@pytest.mark.parametrize(
    ("sealed", "code"),
    [
        ({"parsed": False, "observed": False, "runner": "exit"}, "EVD592"),
        ({"observed": False, "runner": "go"}, "EVD592"),
        ({"inline": ["src/lib.rs"]}, "EVD593"),
        ({"suppressions": ["src/cart.py:3 # noqa"]}, "EVD598"),
        ({"added": ["tests/conftest.py", "tests/test_new.py"], "new": ["tests/test_new.py::test_it"]}, "EVD599"),
    ],
)
def test_what_could_not_be_sealed_is_a_note(sealed: dict[str, Any], code: str) -> None:
    (found,) = judged(**sealed)
    assert (found.code, found.level) == (code, "note")


def test_many_faults_are_bounded_and_long_ones_cut() -> None:
    row = {"kind": "failed", **FAULT, "found": "x" * 5000}
    found = judged(faults=[row] * 50)
    assert len(found) == 20
    assert len(found[0].found) < 1000


@pytest.mark.parametrize(
    "sealed",
    [{"faults": [{"kind": "fine", **FAULT}]}, {"outside": None}],
)
def test_a_header_of_another_shape_is_refused(sealed: dict[str, Any]) -> None:
    assert codes(judged(**sealed)) == ["EVD531"]
