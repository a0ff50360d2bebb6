"""What the ticket tools answer, in the form of the Ticket Protocol and in that of the Governance Design."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from interlock.core.text import count
from interlock.gates.stages import Issue, issue_record
from interlock.graph.ticket.contract import (
    FAIL_CLOSED,
    GateResult,
    GateStatus,
    IssueRecord,
    MinimalResponse,
    MinimalTicket,
    TicketResponse,
)
from interlock.graph.ticket.spec import PipelineSpec
from interlock.graph.ticket.state import RunState, agent_role, fields_of, issue_ticket, required_fields, terminal

_BEGIN: Final = "Begin a run with interlock_begin_run(ticket_id)."


def records(issues: Iterable[Issue]) -> list[IssueRecord]:
    """Return findings as JSON objects."""
    return [cast("IssueRecord", issue_record(item)) for item in issues]


def gate_result(status: GateStatus, issues: Sequence[IssueRecord]) -> GateResult:
    """Return the gate result of findings."""
    return GateResult(status=status, missing_or_invalid_fields=fields_of(issues), issues=list(issues))


def response(spec: PipelineSpec, state: RunState, gate: GateResult, reason: str) -> TicketResponse:
    """Return the answer about a run that was found, with its present ticket."""
    fields = spec.stage(state["state"]).fields if required_fields(spec, state) else ()
    return {
        "ticket_json": issue_ticket(spec, state),
        "field_types": {field.name: field.words for field in fields},
        "continue": not terminal(state),
        "reason": reason,
        "next_role": agent_role(spec, state),
        "next_state": state["state"],
        "gate_result": gate,
    }


def without_run(issues: Sequence[Issue], *, retry: bool) -> TicketResponse:
    """Return the answer where no run could be found, or none that the caller may see."""
    found = records(issues)
    return {
        "ticket_json": None,
        "field_types": {},
        "continue": retry,
        "reason": found[0]["message"],
        # Without a run there is no stage whose role could be told: what to do is the first fix.
        "next_role": found[0]["fix"] if retry else _BEGIN,
        "next_state": "",
        "gate_result": gate_result("retry" if retry else "stop", found),
    }


def attempt_answer(spec: PipelineSpec, state: RunState, gate: Mapping[str, Any]) -> TicketResponse:
    """Return the answer to one attempt: the ticket after it, and the data of its gate event."""
    result = gate_result(gate["status"], cast("list[IssueRecord]", gate["issues"]))
    return response(spec, state, result, attempt_reason(gate))


def attempt_reason(gate: Mapping[str, Any]) -> str:
    """Return the sentence about one attempt, from the data of its gate event."""
    state, issues = gate["state"], cast("list[IssueRecord]", gate["issues"])
    match cast("GateStatus", gate["status"]):
        case "pass":
            warnings = f" {count(issues, 'warning')}." if issues else ""
            where = "the run is complete" if gate["done"] else f"the run is in {gate['next_state']}"
            return f"{state} passed; {where}.{warnings}"
        case "retry":
            failed = [item for item in issues if item["level"] != "warn"]
            left = count(gate["retries_left"], "retry", "retries")
            return f"{state}: {count(failed, 'finding')} to fix, {left} left."
        case "stop":
            # A spent budget has a clause of its own; else it is a finding that stops the run.
            why = gate["why"] or next(item["message"] for item in issues if item["level"] == "stop")
            return f"{FAIL_CLOSED} in {state} ({gate['reason_code']}): {why}"


def both_forms(answer: TicketResponse) -> TicketResponse:
    """Return an answer with the keys of both forms, where it is not known which ticket was meant."""
    return cast("TicketResponse", {**answer, **minimal(answer)})


def minimal(answer: TicketResponse, ticket: MinimalTicket | None = None) -> MinimalResponse:
    """Return an answer in the form for minimal tickets (Governance Design §Complete Flow)."""
    result = answer["gate_result"]
    blocking = [item for item in result["issues"] if item["level"] != "warn"] or result["issues"]
    said = [(item["message"], item["fix"]) for item in blocking]
    if result["status"] == "stop" and all(item["level"] != "stop" for item in result["issues"]):
        # A spent budget ended the run: without this the answer would only say how to fix what no longer counts.
        said.insert(0, (answer["reason"], "Stop and report this to the user."))
    passed = [answer["reason"]] if result["status"] == "pass" else []
    fixes = [fix for _, fix in said]
    return MinimalResponse(
        status=result["status"],
        next_state=answer["next_state"],
        agent_role=answer["next_role"],
        gate_result={**result, "reasons": [*passed, *(message for message, _ in said)], "fixes": fixes},
        reason=answer["reason"],
        fixes=fixes,
        updated_ticket=ticket,
    )
