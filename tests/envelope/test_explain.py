"""Every rule can be looked up, and says why it is there and what right and wrong look like."""

from syrupy.assertion import SnapshotAssertion

from interlock.core.rule import Rule, explain, overview
from interlock.envelope.rules import RULES as ENVELOPE_RULES
from interlock.gates.rules import RULES as EVIDENCE_RULES
from interlock.graph import RUN_RULES
from tests.table import each_row

RULES: tuple[Rule, ...] = (*ENVELOPE_RULES, *EVIDENCE_RULES, *RUN_RULES)


@each_row("row", RULES, ids=lambda row: row.code)
def test_every_rule_has_a_page_with_its_clause_and_two_examples(row: Rule):
    page = explain(RULES, row.code)
    assert page is not None
    for part in (row.code, row.level, row.title, f"Source: {row.source}", "Bad:\n", "Good:\n"):
        assert part in page
    assert row.source
    assert row.good != ""
    assert row.bad != ""


def test_codes_are_unique():
    codes = [row.code for row in RULES]
    assert len(set(codes)) == len(codes)


def test_the_overview_has_one_line_for_each_rule():
    assert [line.split()[0] for line in overview(RULES).splitlines()] == [row.code for row in RULES]


def test_a_code_is_found_in_any_case_and_an_unknown_one_is_not():
    assert explain(RULES, "env203") == explain(RULES, "ENV203")
    assert explain(RULES, "ENV999") is None


def test_a_page_reads_as_reviewed(snapshot: SnapshotAssertion):
    assert explain(RULES, "ENV203") == snapshot
