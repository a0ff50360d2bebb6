"""The reference of sealed gates names every key and every code, and none that is not there."""

import re
from pathlib import Path

from interlock.gates.checks.sealed import CODES
from interlock.gates.sealed.settings import KEYS

REPO = Path(__file__).parents[2]
TEXT = (REPO / "docs" / "sealed-gates.md").read_text(encoding="utf-8")
SOURCES = [*REPO.glob("gates/sealed/**/*.py"), *REPO.glob("graph/*.py")]


def test_every_code_of_a_gate_that_cannot_be_judged_is_in_the_reference() -> None:
    raised = set(re.findall(r'"((?:SEAL|HELD)\d{3})"', "".join(path.read_text(encoding="utf-8") for path in SOURCES)))
    rows = {code for line in TEXT.splitlines() if line.startswith(("| SEAL", "| HELD"))
            for code in re.findall(r"\b(?:SEAL|HELD)\d{3}\b", line.split("|")[1])}  # fmt: skip
    assert raised == rows


def test_every_finding_and_every_key_is_in_the_reference() -> None:
    assert set(CODES.values()) <= set(re.findall(r"EVD\d{3}", TEXT))
    keys = {match[1] for line in TEXT.splitlines() if (match := re.match(r"\| `(\w+)` \|", line))}
    assert {*KEYS, "sealed"} <= keys
