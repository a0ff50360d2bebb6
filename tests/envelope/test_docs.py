"""The page of the protocol has what findings cite: each section and each clause."""

import re
from pathlib import Path

import pytest

from interlock.envelope.rules import RULES
from interlock.gates.rules import RULES as EVIDENCE_RULES
from interlock.graph import RUN_RULES

CITED = sorted({rule.source for rule in (*RULES, *EVIDENCE_RULES, *RUN_RULES)})
SECTION = re.compile(r"^## §([1-6]) (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "strict-envelope.md").read_text("utf-8")


def test_every_clause_that_a_rule_cites_stands_under_its_section(page: str) -> None:
    _, *parts = SECTION.split(page)
    text = {
        number: " ".join(f"{title} {body}".partition("\n## ")[0].replace("*", "").split())
        for number, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }
    assert list(text) == list("123456")
    missing = list[str]()
    for source in CITED:
        cited = re.fullmatch(r"Strict Envelope §([1-6]):? ?(.*)", source)
        if cited is None:
            assert source.startswith("Interlock: "), source
            continue
        section = text[cited[1]]
        for part in re.split(r": |, (?=Status)", cited[2]):
            words = [part] if part in section else part.split(" ", 1)
            missing += [f"§{cited[1]} {word}" for word in words if word not in section]
    assert missing == []
