"""Who may say what, and when: every role, status and current status, held against a table written by hand."""

from itertools import chain, combinations, product

import pytest

from interlock.envelope.protocol import DEFAULT_PROTOCOL, STATUSES, Status
from tests.envelope.texts import check
from tests.table import each_row

GATES = ("GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-CODE-REVIEW")
JUDGES: dict[str, tuple[str, Status]] = {
    "visual-qa": ("GATE-VISUAL-QA", "QA_IN_PROGRESS"),
    "code-reviewer": ("GATE-CODE-REVIEW", "READY_FOR_REVIEW"),
}
LETTERS: dict[str, Status] = dict(zip("BIFQRA", STATUSES, strict=True))
# What each role may state when the current status is not given, then under each of the six, by the letters above.
MAY_STATE = {
    "orchestrator": ("BQRA", "B", "B", "BQ", "BR", "BA", ""),
    "web-design-lead": ("BI", "BI", "BI", "B", "B", "B", ""),
    "frontend-implementer": ("BIF", "BI", "BIF", "B", "B", "B", ""),
    "visual-qa": ("B", "B", "B", "B", "BQ", "B", ""),
    "a11y-auditor": ("B", "B", "B", "B", "BQ", "B", ""),
    "code-reviewer": ("B", "B", "B", "B", "B", "BR", ""),
}


def _answer(role: str, status: str, passed: tuple[str, ...], reasons: str, gates: tuple[str, ...] = GATES) -> str:
    return (
        f"STATUS: {status}\nTASK_ID: HOME-UI-001\nTASK: Build the page\nASSIGNED_AGENT: {role}\n"
        f"REPORTS_TO: orchestrator\nINPUTS_USED: []\nGATES_REQUIRED: [{', '.join(gates)}]\n"
        f"GATES_PASSED: [{', '.join(passed)}]\nEVIDENCE:\n  screenshots: [artifacts/a.png]\n"
        "  a11y: [artifacts/b.json]\n  console: [artifacts/c.jsonl]\n  reports: [artifacts/d.md]\n"
        f"FAIL_REASONS: {reasons}\nOUTPUT: Done.\nNEXT_ACTIONS:\n1. orchestrator to read this\n"
    )


@each_row("role", MAY_STATE)
def test_a_role_states_what_the_table_gives_it_and_nothing_else(role: str) -> None:
    gate = DEFAULT_PROTOCOL.roles[role].certifies
    gates = (gate,) if gate else ("GATE-MSG-STRICT",)
    for (current, letters), status in product(zip((None, *STATUSES), MAY_STATE[role], strict=True), STATUSES):
        blocked = status == "BLOCKED"
        text = _answer(role, status, () if blocked else gates, f"\n- {gates[0]}: no" if blocked else "NONE", gates)
        report = check(text, current_status=current)
        allowed = {LETTERS[letter] for letter in letters}
        assert report.ok is (status in allowed), (current, status, report.findings)


@pytest.mark.parametrize("role", JUDGES)
def test_what_a_judging_role_says_is_a_pass_or_a_fail_or_is_refused(role: str) -> None:
    own, echo = JUDGES[role]
    pairs = [pair for pair in product(GATES, GATES) if pair[0] != pair[1]]
    reasons = ["NONE", "\n- NONE", *(f"\n- {gate}: no" for gate in GATES)]
    reasons += [f"\n- {one}: as {other}" for one, other in pairs]
    reasons += [f"\n- {one}: no\n- {other}: no" for one, other in pairs]
    claims = chain.from_iterable(combinations(GATES, count) for count in range(4))
    verdicts: set[str | None] = set()
    for passed, reason, status in product(claims, reasons, (echo, "BLOCKED")):
        report = check(_answer(role, status, passed, reason), current_status=echo)
        if not report.ok:
            assert report.verdict is None
            continue
        verdicts.add(report.verdict)
        if report.verdict == "PASS":
            assert (status, own in passed, "GATE" in reason) == (echo, True, False)
        else:
            assert (report.verdict, status, own in passed, own in reason) == ("FAIL", "BLOCKED", False, True)
    assert verdicts == {"PASS", "FAIL"}
