"""What the ticket tools answer, made from a ticket and the findings about a submission."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, cast

from interlock.gates.stages import Issue
from interlock.graph.pipeline.contract import (
    FAIL_CLOSED,
    GateResult,
    GateStatus,
    IssueRecord,
    MinimalResponse,
    Ticket,
    TicketResponse,
)
from interlock.graph.pipeline.machine import fields_of

NEXT_ENDS: Final = "the next failure ends the run"
SAME_ENDS: Final = "the same findings once more end the run"

_BEGIN: Final = "Begin a run with interlock_begin_run(ticket_id)."


def records(issues: Iterable[Issue]) -> list[IssueRecord]:
    """Return findings as JSON objects."""
    return [cast("IssueRecord", asdict(item)) for item in issues]


def gate_result(status: GateStatus, issues: Sequence[IssueRecord], passed: str = "") -> GateResult:
    """Return the gate result of findings; a pass names what passed."""
    blocking = [item for item in issues if item["level"] != "warn"] or list(issues)
    return GateResult(
        status=status,
        reasons=[*([passed] if passed else []), *(item["message"] for item in blocking)],
        fixes=[item["fix"] for item in blocking],
        missing_or_invalid_fields=fields_of(issues),
        issues=list(issues),
    )


def response(ticket: Ticket, gate: GateResult, reason: str, *, over: bool) -> TicketResponse:
    """Return the answer about a run that was found.

    Args:
        ticket: The authoritative ticket.
        gate: What came of the submission.
        reason: One sentence for the agent.
        over: The run is at its end.
    """
    return {
        "updated_ticket": ticket,
        "ticket_json": json.dumps(ticket, ensure_ascii=False, separators=(",", ":"), sort_keys=True),
        "continue": not over,
        "reason": reason,
        "next_role": ticket["agent_role"],
        "next_state": ticket["state"],
        "gate_result": gate,
    }


def nowhere(issues: Sequence[Issue], *, retry: bool) -> TicketResponse:
    """Return the answer where no run could be found, or none that the caller may see."""
    found = records(issues)
    return {
        "updated_ticket": None,
        "ticket_json": "",
        "continue": retry,
        "reason": found[0]["message"],
        "next_role": found[0]["fix"] if retry else _BEGIN,
        "next_state": "",
        "gate_result": gate_result("retry" if retry else "stop", found),
    }


def attempt_reason(gate: Mapping[str, Any]) -> str:
    """Return the sentence about one attempt, from the data of its gate event."""
    state, issues = gate["state"], cast("list[IssueRecord]", gate["issues"])
    match cast("GateStatus", gate["status"]):
        case "pass":
            warnings = f" {_count(issues, 'warning')}: {issues[0]['message']}" if issues else ""
            where = "the run is complete" if gate["done"] else f"the run is in {gate['next_state']}"
            return f"{state} passed; {where}.{warnings}"
        case "retry":
            failed = [item for item in issues if item["level"] != "warn"]
            left = gate["retries_left"]
            tries = f"{_count(range(left), 'retry', 'retries')} left" if left else NEXT_ENDS
            # Lines that an older version wrote do not say how often the same may come back.
            same = f"; {SAME_ENDS}" if left and gate.get("identical_left") == 0 else ""
            return f"{state}: {_count(failed, 'finding')} to mend, {tries}{same}. {failed[0]['message']}"
        case "stop":
            why = gate["why"] or next(item["message"] for item in issues if item["level"] == "stop")
            return f"{FAIL_CLOSED} in {state} ({gate['reason_code']}): {why}"


def attempt_answer(ticket: Ticket, gate: Mapping[str, Any]) -> TicketResponse:
    """Return the answer to one attempt: the ticket after it, and the data of its gate event."""
    status: GateStatus = gate["status"]
    reason = attempt_reason(gate)
    passed = f"{gate['state']} holds: every field is present and every check passed." if status == "pass" else ""
    result = gate_result(status, cast("list[IssueRecord]", gate["issues"]), passed)
    if gate["why"]:
        result["reasons"].insert(0, f"The run is closed: {gate['why']}.")
        result["fixes"].insert(0, "Stop and report this to the user.")
    return response(ticket, result, reason, over=gate["done"] or status == "stop")


def minimal(answer: TicketResponse) -> MinimalResponse:
    """Return an answer in the form for minimal tickets (Governance Design §Complete Flow)."""
    return MinimalResponse(
        status=answer["gate_result"]["status"],
        next_state=answer["next_state"],
        agent_role=answer["next_role"],
        gate_result=answer["gate_result"],
        reason=answer["reason"],
        fixes=answer["gate_result"]["fixes"],
    )


def _count(items: Sequence[object], noun: str, plural: str = "") -> str:
    return f"{len(items)} {noun if len(items) == 1 else plural or f'{noun}s'}"
