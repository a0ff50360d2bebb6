"""Promises of the contract: it says what the tables say, and every answer that it shows is valid."""

import re
from typing import Any

from interlock.agents.contract import answer_form, contract
from interlock.envelope import Case, validate
from interlock.envelope.protocol import (
    DEFAULT_PROTOCOL,
    ECHO,
    EVIDENCE_KEYS,
    LABELS,
    ROLES,
    STATUSES,
    EvidenceKey,
    GateSpec,
    Protocol,
    Role,
    Status,
)
from tests.table import each_row

OWN = Protocol(
    roles={
        "orchestrator": ROLES[0],
        "coder": Role("coder", "build", hands_over=True),
        "test-runner": Role("test-runner", "qa", certifies="GATE-UNIT"),
        "senior": Role("senior", "review", certifies="GATE-SENIOR"),
    },
    gates={
        "GATE-MSG-STRICT": DEFAULT_PROTOCOL.gates["GATE-MSG-STRICT"],
        "GATE-UNIT": GateSpec("GATE-UNIT", "the unit tests pass", "test-runner", ("reports",), grade="runner"),
        "GATE-SENIOR": GateSpec("GATE-SENIOR", "a senior agrees", "senior", any_evidence=True),
    },
)
CASES = [(own, role) for own in (DEFAULT_PROTOCOL, OWN) for role in own.roles.values() if role.kind != "orchestrator"]
BEFORE: dict[str, Status] = {"build": "IN_PROGRESS", "qa": "QA_IN_PROGRESS", "review": "READY_FOR_REVIEW"}


def shown(text: str, tag: str) -> dict[str, str]:
    """Return the answers that a prompt shows, by outcome."""
    found = re.findall(rf"^<{tag} outcome='([a-z-]+)'>\n(.*?)^</{tag}>$", text, re.MULTILINE | re.DOTALL)
    return dict(found)


def errors(text: str, protocol: Protocol, role: Role) -> list[str]:
    report = validate(text, Case(agent=role.name, current_status=BEFORE[role.kind], protocol=protocol))
    return [f"{item.code} {item.message}" for item in report.findings if item.level == "error"]


each_role = each_row(("protocol", "role"), CASES)


@each_role
def test_every_example_of_the_contract_is_a_valid_answer(protocol: Protocol, role: Role) -> None:
    examples = shown(contract(role.name, protocol), "example")
    assert len(examples) >= 2
    for text in examples.values():
        assert errors(text, protocol, role) == []


@each_role
def test_every_filled_form_is_a_valid_answer(make_ask: Any, protocol: Protocol, role: Role) -> None:
    ask = make_ask(
        role=role.name, protocol=protocol, task="Build the page", required=tuple(protocol.gates), evidence={}
    )
    forms = shown(answer_form(ask), "form")
    assert len(forms) == 2
    for text in forms.values():
        filled = re.sub(r"/<[^>\n]+>", "/file.png", text)
        filled = re.sub(r"<[^>\n]+>", "docs", filled)
        assert errors(filled, protocol, role) == []
        assert "TASK_ID: HOME-UI-001\n" in text


@each_role
def test_the_contract_names_owners_of_statuses_labels_keys_and_evidence(protocol: Protocol, role: Role) -> None:
    text = contract(role.name, protocol, examples=False)
    for status in STATUSES:
        line = next(line for line in text.splitlines() if line.startswith(f"- `{status}` is "))
        if protocol.may_set(role, status):
            assert "yours to set" in line
        elif ECHO.get(role.kind) == status:
            assert "yours to repeat" in line
        else:
            assert "refused" in line
    assert ", ".join(LABELS) in text
    assert ", ".join(f"`{key}`" for key in EVIDENCE_KEYS) in text
    assert ("### Verdict" in text) == (role.kind in ECHO)
    for gate in protocol.gates.values():
        line = next((line for line in text.splitlines() if line.startswith(f"- `{gate.id}` (")), "")
        assert ("yours to certify" in line) == (gate.id == role.certifies)
        if line and gate.id == role.certifies:
            assert all(f"`{key}`" in line for key in gate.evidence)
            assert ("Interlock collected" in line) == (gate.grade == "runner")


def test_the_collected_files_are_in_the_form_ready_to_cite(make_ask: Any) -> None:
    files: dict[EvidenceKey, tuple[str, ...]] = {
        "screenshots": ("artifacts/screenshots/a.png",),
        "console": ("artifacts/console/c.jsonl",),
    }
    gates = tuple(DEFAULT_PROTOCOL.gates)
    form = answer_form(make_ask(role="visual-qa", task="Build the page", required=gates, evidence=files))
    for text in shown(form, "form").values():
        assert all(path in text for paths in files.values() for path in paths)
