"""Random mixtures of envelopes and planted texts: whatever is accepted, its role owned."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.agents import Ask
from interlock.envelope import validate
from interlock.envelope.protocol import ECHO, STATUSES, Protocol, Status
from interlock.gates import build_protocol
from interlock.gates.config import load_config
from interlock.graph import outcome_of
from tests.agents.injection.texts import forged, texts
from tests.effort import examples
from tests.graph.conftest import CONFIG, GATES, envelope

ROLES = ("builder", "tester", "reviewer")


def ask_of(role: str) -> Ask:
    reports = "artifacts/reports/HELLO-001/1"
    return Ask("HELLO-001.1", "HELLO-001", role, 1, 0, "qa", "", "/nowhere", "", {}, reports, "", required=GATES)


def passing(role: str, status: str, gate: str) -> str:
    """Return the answer of a judge that passes a gate."""
    evidence = {"screenshots": (), "a11y": (), "console": (), "reports": ("artifacts/reports/HELLO-001/1/a.md",)}
    return envelope(ask_of(role), status, gates_passed=("GATE-MSG-STRICT", gate), evidence=evidence)


RIGHTFUL = [
    *(envelope(ask_of("builder"), status) for status in ("IN_PROGRESS", "READY_FOR_QA")),
    *(envelope(ask_of(role), "BLOCKED", fail_reasons=("GATE-TESTS: it fails", "GATE-REVIEW: no")) for role in ROLES),
    passing("tester", "QA_IN_PROGRESS", "GATE-TESTS"),
    passing("reviewer", "READY_FOR_REVIEW", "GATE-REVIEW"),
]
FORGED = [forged(ask_of(role), status, role) for role in (*ROLES, "orchestrator") for status in STATUSES]
ENVELOPES = RIGHTFUL * 3 + FORGED
LINES = sorted({line for text in ENVELOPES for line in text.splitlines()})
PLANTED = [text.filled(ask_of("tester")) for text in texts()]
FRAGMENTS = (
    st.sampled_from(LINES) | st.sampled_from(PLANTED) | st.text("STATUSAPROVED:- \n\r\t\u200b\u202e\0", max_size=12)
)


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> Protocol:
    root = tmp_path_factory.mktemp("protocol")
    Path(root, "interlock.toml").write_text(CONFIG)
    return build_protocol(load_config(root))


@st.composite
def mixtures(draw: st.DrawFn) -> str:
    """Draw an envelope some of whose lines were replaced, taken out, or had others put before them."""
    rows = draw(st.sampled_from(ENVELOPES)).splitlines()
    for _ in range(draw(st.integers(0, 3))):
        at, width = draw(st.integers(0, len(rows))), draw(st.integers(0, 2))
        rows[at : at + width] = draw(st.lists(FRAGMENTS, max_size=2))
    return draw(st.sampled_from(("\n", "\n", "\r\n"))).join(rows) + draw(st.sampled_from(("\n", "", "\n\n")))


def accepted(protocol: Protocol, name: str, text: str, status: Status, failed: frozenset[str]) -> bool:
    """Return whether a text counts as an answer of a role; then all that it claims must be that role's."""
    role = protocol.roles[name]
    report = validate(
        text, agent=name, task_id="HELLO-001", gates=GATES, current_status=status, protocol=protocol,
        certified=("GATE-MSG-STRICT",), failed=failed,
    )  # fmt: skip
    outcome = outcome_of(role, ok=report.ok, status=report.effective_status, verdict=report.verdict)
    if outcome == "invalid":
        return False
    said = report.effective_status
    assert report.envelope is not None
    assert report.envelope.assigned_agent == name
    assert protocol.may_set(role, said) or said == ECHO.get(role.kind) == status
    assert all(gate == "GATE-MSG-STRICT" or protocol.may_certify(role, gate) for gate in report.envelope.gates_passed)
    assert not failed & set(report.envelope.gates_passed)
    assert outcome != "handover" or role.hands_over
    assert outcome != "pass" or role.certifies not in failed
    return True


@pytest.mark.long
@given(
    text=mixtures(),
    name=st.sampled_from(ROLES),
    status=st.sampled_from(STATUSES),
    failed=st.sampled_from((frozenset[str](), frozenset({"GATE-TESTS"}))),
)
@settings(max_examples=examples(500))
def test_no_mixture_is_accepted_for_what_its_role_does_not_own(
    protocol: Protocol, text: str, name: str, status: Status, failed: frozenset[str]
) -> None:
    accepted(protocol, name, text, status, failed)


@pytest.mark.long
def test_of_the_envelopes_that_are_mixed_the_rightful_ones_alone_are_accepted(protocol: Protocol) -> None:
    counted = {
        text
        for text in ENVELOPES
        for name in ROLES
        for status in STATUSES
        if accepted(protocol, name, text, status, frozenset())
    }
    assert counted == set(RIGHTFUL)
