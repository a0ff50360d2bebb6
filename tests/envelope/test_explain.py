"""Every rule can be looked up, and cites a clause that exists."""

import re
from pathlib import Path

from interlock.core.rule import Rule, explain, overview
from interlock.envelope.rules import RULES as ENVELOPE_RULES
from interlock.gates.rules import BY_CODE as EVIDENCE_RULES
from interlock.graph import RUN_RULES
from tests.table import each_row

RULES: tuple[Rule, ...] = (*ENVELOPE_RULES, *EVIDENCE_RULES.values(), *RUN_RULES)


@each_row("row", RULES, ids=lambda row: row.code)
def test_every_rule_has_a_page_with_its_clause_and_its_fix(row: Rule):
    page = explain(RULES, row.code)
    assert page is not None
    for part in (row.code, row.level, row.title, f"Source: {row.source}", f"Fix: {row.remedy}"):
        assert part in page
    assert row.source


def test_the_overview_has_one_line_for_each_rule():
    codes = [row.code for row in RULES]
    assert [line.split()[0] for line in overview(RULES).splitlines()] == codes
    assert len(set(codes)) == len(codes)


def test_a_code_is_found_in_any_case_and_an_unknown_one_is_not():
    assert explain(RULES, "env203") == explain(RULES, "ENV203")
    assert explain(RULES, "ENV999") is None


SECTION = re.compile(r"^## §([1-6]) (.*)$", re.MULTILINE)


def test_every_clause_that_a_rule_cites_is_under_its_section(root: Path) -> None:
    _, *parts = SECTION.split((root / "docs" / "strict-envelope.md").read_text("utf-8"))
    text = {
        number: " ".join(f"{title} {body}".partition("\n## ")[0].replace("*", "").split())
        for number, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }
    assert list(text) == list("123456")
    missing = list[str]()
    for source in sorted({rule.source for rule in RULES}):
        cited = re.fullmatch(r"Strict Envelope §([1-6]):? ?(.*)", source)
        if cited is None:
            assert source.startswith("Interlock: "), source
            continue
        section = text[cited[1]]
        for part in re.split(r": |, (?=Status)", cited[2]):
            words = [part] if part in section else part.split(" ", 1)
            missing += [f"§{cited[1]} {word}" for word in words if word not in section]
    assert missing == []
