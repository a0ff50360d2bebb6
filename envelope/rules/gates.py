"""Rows of what a claim about a gate needs (ENV41x)."""

from collections.abc import Iterable, Iterator
from typing import Final

from interlock.core.rule import error_rule
from interlock.envelope.case import GATE_IN_TEXT, REASON, Case, add, draft, drop, evidence_hole, state
from interlock.envelope.draft import Change, Draft, snippet
from interlock.envelope.model import Item


def _subset(case: Case) -> Iterator[Draft]:
    for gate in case.first_claims if case.required else ():
        if gate.id not in (case.required or ()):
            message = f"{gate.id} is in GATES_PASSED and not in GATES_REQUIRED."
            expected = "one of " + ", ".join(case.required or ())
            yield draft("ENV410", "GATES_PASSED", gate.item, message, expected, drop("GATES_PASSED", gate.position))


def _not_passed(case: Case) -> Iterator[Draft]:
    """APPROVED says that every gate passed, READY_FOR_REVIEW those of QA, unless it is an echo; nothing fails then."""
    item = case.value("STATUS")
    # A reviewer that echoes READY_FOR_REVIEW judges its own gate alone (ENV419).
    if item is None or case.status not in {"APPROVED", "READY_FOR_REVIEW"} or case.status == case.echo:
        return
    required = case.required or () if case.status == "APPROVED" else case.required_of_qa
    # With GATES_PASSED missing, ENV203 says so, and nothing is known of the gates.
    missing = [gate for gate in required if gate not in case.passed_ids]
    if missing and "GATES_PASSED" in case.fields:
        message = f"STATUS is {case.status} while {', '.join(missing)} is not in GATES_PASSED."
        advice = "Or list the gates in GATES_PASSED once they have passed, with their evidence."
        changes = [*state(case, "BLOCKED"), *_new_reasons(case, missing)]
        expected = f"{', '.join(missing)} in GATES_PASSED"
        yield draft("ENV411", "STATUS", item, message, expected, *changes, advice=advice)
    elif case.reasons:
        message = f"STATUS is {case.status} and FAIL_REASONS gives reasons."
        expected = "BLOCKED, or FAIL_REASONS: NONE"
        advice = "Or write FAIL_REASONS: NONE once nothing fails any more."
        yield draft("ENV411", "STATUS", item, message, expected, *state(case, "BLOCKED"), advice=advice)


def _new_reasons(case: Case, gates: Iterable[str]) -> list[Change]:
    """Return the changes that give a reason for each gate that no reason names."""
    named = {gate for _, item in case.reasons for gate in GATE_IN_TEXT.findall(item.text)}
    return [add("FAIL_REASONS", f"{gate}: <{REASON}>") for gate in gates if gate not in named]


def _evidence(case: Case) -> Iterator[Draft]:
    for gate in case.claims:
        spec = case.protocol.gate(gate.id)
        lacking = [
            key
            for key in case.evidence_keys(gate.id)
            # Without EVIDENCE there is one finding, that it is missing.
            if f"EVIDENCE.{key}" in case.fields and not any(item.text for item in case.items(f"EVIDENCE.{key}"))
        ]
        if not lacking:
            continue
        changes = [add(f"EVIDENCE.{key}", evidence_hole(gate.id, key)) for key in lacking]
        wanted = "any key" if spec.any_evidence else " and ".join(f"`{key}`" for key in lacking)
        message = f"{gate.id} is in GATES_PASSED and EVIDENCE has no entry under {wanted}."
        last = ", and answer BLOCKED" if gate.id == case.own_gate else ""
        advice = f"Without a file that exists, take {gate.id} out of GATES_PASSED instead{last}."
        yield draft("ENV412", "GATES_PASSED", gate.item, message, f"an entry under {wanted}", *changes, advice=advice)


def _self_approval(case: Case) -> Iterator[Draft]:
    for gate in case.first_claims if case.role else ():
        if (case.required and gate.id not in case.required) or case.may_claim(gate.id):
            continue
        spec = case.protocol.gate(gate.id)
        certifier = "its command" if spec.by_command else spec.certifier or "a QA or review agent"
        decides = "its command decides it" if spec.by_command else f"only {certifier} certifies it"
        message = f"{case.role.name if case.role else ''} lists {gate.id} in GATES_PASSED; {decides}."
        expected = f"{gate.id} left to {certifier}"
        yield draft("ENV413", "GATES_PASSED", gate.item, message, expected, drop("GATES_PASSED", gate.position))


def _both(case: Case) -> Iterator[Draft]:
    for gate in case.first_claims:
        if gate.id in case.reason_gates or gate.id in case.now_failed:
            where = "FAIL_REASONS" if gate.id in case.reason_gates else "the journal of this task"
            message = f"{gate.id} is in GATES_PASSED, and {where} says that it failed."
            expected = "each gate either passed or failed"
            yield draft("ENV416", "GATES_PASSED", gate.item, message, expected, drop("GATES_PASSED", gate.position))


def _lacking_reasons(case: Case) -> Iterator[Draft]:
    """BLOCKED has a reason, and whatever the status is, so has each gate that failed."""
    read = case.fields.get("FAIL_REASONS")
    if read is None:
        return
    failed = sorted(case.now_failed) or ([case.open_gate] if case.status == "BLOCKED" and not case.reasons else [])
    changes = _new_reasons(case, failed)
    if changes:
        gates = ", ".join(sorted(case.now_failed))
        message = f"{gates} failed, and FAIL_REASONS does not say so." if gates else "BLOCKED gives no reason."
        place = read.items[0] if read.items else read
        found = snippet(place.text) if isinstance(place, Item) else "`NONE`"
        yield draft("ENV414", "FAIL_REASONS", place, message, "a bullet for each failed gate", *changes, found=found)


GATE_RULES: Final = (
    error_rule(
        "ENV410",
        "GATES_PASSED is a subset of GATES_REQUIRED.",
        "Strict Envelope §3 GATES_PASSED: Must be a subset of GATES_REQUIRED",
        "Take the gate out of GATES_PASSED.",
        check=_subset,
    ),
    error_rule(
        "ENV411",
        "APPROVED needs every required gate in GATES_PASSED, READY_FOR_REVIEW those of QA; neither has fail reasons.",
        "Strict Envelope §4 APPROVED requires ALL gates in GATES_REQUIRED to be in GATES_PASSED",
        "State BLOCKED and say which gates have not passed.",
        check=_not_passed,
    ),
    error_rule(
        "ENV412",
        "Each gate in GATES_PASSED has its evidence.",
        "Strict Envelope §3 EVIDENCE is MANDATORY for gate claims",
        "Cite the evidence files of the gate, which exist already, or take it out of GATES_PASSED.",
        check=_evidence,
    ),
    error_rule(
        "ENV413",
        "No agent certifies a gate that is not its own.",
        "Strict Envelope §4 No agent may self-approve its own work",
        "Take the gate out of GATES_PASSED and leave it to its certifier.",
        check=_self_approval,
    ),
    error_rule(
        "ENV414",
        "BLOCKED gives its reasons, and a gate that failed has one whatever the status is.",
        "Strict Envelope §3 FAIL_REASONS: If STATUS is BLOCKED",
        "Write one bullet for each failure, each naming its gate.",
        check=_lacking_reasons,
    ),
    error_rule(
        "ENV416",
        "No gate has both passed and failed.",
        "Strict Envelope §3 GATES_PASSED: List of gate IDs that have been satisfied",
        "Take the gate out of GATES_PASSED.",
        check=_both,
    ),
)
