"""Every promise has its tests, every clause of the protocol its rules, every sentence of the sources its row."""

import re

from interlock.catalog import catalog
from interlock.core.rule import Rule
from interlock.envelope import RULES
from interlock.envelope.protocol import TRANSITIONS
from interlock.gates.rules import RULES as EVIDENCE_RULES
from tests.clauses.page import PAGE, SOURCES, render, rows
from tests.names import existing_tests
from tests.requirements import CLAUSES, PROMISES
from tests.table import each_row


@each_row("promise", PROMISES)
def test_every_promise_is_held_by_tests_that_exist(promise: str) -> None:
    names = existing_tests()
    assert PROMISES[promise]
    assert [name for name in PROMISES[promise] if name not in names] == []


@each_row("clause", CLAUSES)
def test_every_clause_of_the_protocol_is_enforced_by_a_row(clause: str) -> None:
    sources = [rule.source for rule in (*RULES, *EVIDENCE_RULES)] + [row.clause for row in TRANSITIONS]
    assert any(clause in source for source in sources)


HEADINGS = [(source, heading) for source, headings in SOURCES.items() for heading in headings]


@each_row(("source", "heading"), HEADINGS)
def test_every_sentence_of_the_sources_is_held_by_tests_that_exist_or_is_said_not_to_be_built(
    source: str, heading: str
) -> None:
    names = existing_tests()
    for row in SOURCES[source][heading]:
        assert [name for name in row.tests if name not in names] == []
        assert len(set(row.tests)) == len(row.tests)
        assert bool(row.tests) != row.settled.startswith("Not built."), row.text


def test_no_sentence_stands_twice_under_its_heading() -> None:
    every = [(source, heading, row.text) for source, heading, row in rows()]
    assert len(set(every)) == len(every)


@each_row("rule", [row for code, row in catalog().items() if code[:3] in ("STG", "TKT")], ids=lambda rule: rule.code)
def test_every_rule_of_tickets_names_a_heading_of_its_source(rule: Rule) -> None:
    source, _, clause = rule.source.partition(" §")
    heading = re.sub(r"^\d+\. ", "", clause.partition(":")[0])
    assert rule.source.startswith("Interlock: ") or heading in SOURCES[source]


def test_the_page_of_the_sources_is_what_the_tables_give() -> None:
    """To renew it: `python -m tests.clauses.page`."""
    assert PAGE.read_text(encoding="utf-8") == render()
