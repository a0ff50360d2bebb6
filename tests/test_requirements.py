"""Every promise has its tests, every clause of the protocol its rules, every sentence of the sources its row."""

import re
from pathlib import Path

import pytest

from interlock.catalog import catalog
from interlock.core.rule import Rule
from interlock.envelope import RULES
from interlock.envelope.protocol import TRANSITIONS
from interlock.gates.rules import BY_CODE as EVIDENCE_RULES
from interlock.server import make_server
from tests.names import existing_tests
from tests.sources import PAGES, lines
from tests.table import each_row

CLAUSES = (
    "§2 Required Envelope",
    "§3 STATUS",
    "§3 TASK_ID",
    "§3 TASK",
    "§3 ASSIGNED_AGENT",
    "§3 REPORTS_TO",
    "§3 INPUTS_USED",
    "§3 GATES_REQUIRED",
    "§3 GATES_PASSED",
    "§3 EVIDENCE",
    "§3 FAIL_REASONS",
    "§3 OUTPUT",
    "§3 NEXT_ACTIONS",
    "§4 No agent may self-approve its own work",
    "§4 No agent may omit GATES_REQUIRED",
    "§4: No agent may claim PASS without evidence files existing",
    "§4 Any missing field = automatic BLOCKED status",
    "§4 frontend-implementer CANNOT set status beyond READY_FOR_QA",
    "§4 APPROVED requires ALL gates",
    "§5: MUST verify evidence exists before approval",
    "§5: MUST invoke QA agents explicitly",
    "§6",
)
"""The sections and clauses of the strict envelope protocol; each is the source of a rule row or a transition row."""


@each_row("clause", CLAUSES)
def test_every_clause_of_the_protocol_is_enforced_by_a_row(clause: str) -> None:
    sources = [rule.source for rule in (*RULES, *EVIDENCE_RULES.values())] + [row.clause for row in TRANSITIONS]
    assert any(clause in source for source in sources)


@each_row("page", PAGES)
def test_every_line_of_the_sources_is_held_by_tests_that_exist_or_is_said_not_to_be_built(page: str) -> None:
    names, every = existing_tests(), list(lines(page))
    for row in every:
        assert ([name for name in row.tests if name not in names], len(set(row.tests))) == ([], len(row.tests))
        assert bool(row.tests) != row.settled.startswith("Not built."), row.text
    assert len({(row.source, row.heading, row.text) for row in every}) == len(every)
    missing = "; ".join(row.text.rpartition(": ")[2] for row in every if not row.tests)
    built = f"sentences. Not built: {missing}." if missing else "lines, all built."
    assert f"\n\n{len(every)} {built}" in PAGES[page]


HEADINGS = {(row.source, row.heading) for row in lines("ticket-protocol")}


@each_row("rule", [row for code, row in catalog().items() if code[:3] in ("STG", "TKT")], ids=lambda rule: rule.code)
def test_every_rule_of_tickets_names_a_heading_of_its_source(rule: Rule) -> None:
    source, _, clause = rule.source.partition(" §")
    heading = re.sub(r"^\d+\. ", "", clause.partition(":")[0])
    assert rule.source.startswith("Interlock: ") or (source, heading) in HEADINGS


@pytest.mark.anyio
async def test_the_tools_of_the_sources_are_those_of_the_server(tmp_path: Path) -> None:
    tools = [row for row in lines("negotiation-prd") if (row.source, row.heading) == ("Reservation Tools", "Tools")]
    served = await make_server(tmp_path, toolsets=["reservations"]).list_tools()
    assert [row.text.split("`")[1] for row in tools] == [tool.name for tool in served]
