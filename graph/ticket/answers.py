"""What the ticket tools answer, and submissions that are refused before any gate: journaled, and bounded in number."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from interlock.core.json import canonical
from interlock.core.text import count
from interlock.gates.stages import Issue, issue_record
from interlock.graph.engine.folder import journal_beside, journal_run
from interlock.graph.errors import RunBusyError
from interlock.graph.ticket.contract import (
    FAIL_CLOSED,
    GateResult,
    GateStatus,
    HistoryEntry,
    IssueRecord,
    MinimalResponse,
    MinimalTicket,
    SentStep,
    SentTicket,
    Ticket,
    TicketResponse,
    Validation,
)
from interlock.graph.ticket.machine import digest, fields_of, signature
from interlock.graph.ticket.rules import busy_run, issue
from interlock.graph.ticket.spec import PipelineSpec
from interlock.graph.ticket.state import RunState
from interlock.graph.ticket.store import TicketStore
from interlock.journal import Journal
from interlock.redaction import redact

NEXT_ENDS: Final = "the next failure ends the run"
SAME_ENDS: Final = "the same findings once more end the run"

_BEGIN: Final = "Begin a run with interlock_begin_run(ticket_id)."


def records(issues: Iterable[Issue]) -> list[IssueRecord]:
    """Return findings as JSON objects."""
    return [cast("IssueRecord", issue_record(item)) for item in issues]


def gate_result(status: GateStatus, issues: Sequence[IssueRecord]) -> GateResult:
    """Return the gate result of findings."""
    return GateResult(status=status, missing_or_invalid_fields=fields_of(issues), issues=list(issues))


def response(spec: PipelineSpec, ticket: Ticket, gate: GateResult, reason: str, *, over: bool) -> TicketResponse:
    """Return the answer about a run that was found."""
    fields = spec.stage(ticket["state"]).fields if ticket["required_fields"] else ()
    return {
        "ticket_json": sent(ticket),
        "field_types": {field.name: field.words for field in fields},
        "continue": not over,
        "reason": reason,
        "next_role": ticket["agent_role"],
        "next_state": ticket["state"],
        "gate_result": gate,
    }


def sent(ticket: Ticket) -> SentTicket:
    """Return a ticket as an agent gets it and has to send it back."""
    validation, history = ticket["validation"], ticket["history"]
    codes = history[-1]["issues"] if validation["errors"] and history else []
    differing = {
        "agent_role": ticket["agent_role"].partition(". ")[0].removesuffix(".") + ".",
        "validation": Validation(status=validation["status"], errors=codes),
        "history": [_sent_step(entry) for entry in history],
    }
    return cast("SentTicket", {**ticket, **differing})


def _sent_step(entry: HistoryEntry) -> SentStep:
    step = SentStep(revision=entry["revision"], state=entry["state"], gate=entry["gate"])
    if entry["issues"]:
        step["issues"] = entry["issues"]
    if "outcomes" in entry:
        step["outcomes"] = entry["outcomes"]
    return step


def without_run(issues: Sequence[Issue], *, retry: bool) -> TicketResponse:
    """Return the answer where no run could be found, or none that the caller may see."""
    found = records(issues)
    return {
        "ticket_json": None,
        "field_types": {},
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
            warnings = f" {count(issues, 'warning')}." if issues else ""
            where = "the run is complete" if gate["done"] else f"the run is in {gate['next_state']}"
            return f"{state} passed; {where}.{warnings}"
        case "retry":
            failed = [item for item in issues if item["level"] != "warn"]
            left = gate["retries_left"]
            tries = f"{count(left, 'retry', 'retries')} left" if left else NEXT_ENDS
            # Lines that an older version wrote do not say how often the same may come back.
            same = f"; {SAME_ENDS}" if left and gate.get("identical_left") == 0 else ""
            return f"{state}: {count(failed, 'finding')} to fix, {tries}{same}."
        case "stop":
            why = gate["why"] or next(item["message"] for item in issues if item["level"] == "stop")
            return f"{FAIL_CLOSED} in {state} ({gate['reason_code']}): {why}"


def attempt_answer(spec: PipelineSpec, ticket: Ticket, gate: Mapping[str, Any]) -> TicketResponse:
    """Return the answer to one attempt: the ticket after it, and the data of its gate event."""
    status: GateStatus = gate["status"]
    result = gate_result(status, cast("list[IssueRecord]", gate["issues"]))
    return response(spec, ticket, result, attempt_reason(gate), over=gate["done"] or status == "stop")


def busy_answer(error: RunBusyError, *, minimal_too: bool) -> TicketResponse:
    """Return the answer to a call that was not admitted: that of a run which is busy.

    With `minimal_too` it has the keys of both forms.
    """
    answer = without_run([busy_run(error)], retry=True)
    return cast("TicketResponse", {**answer, **minimal(answer)}) if minimal_too else answer


def minimal(answer: TicketResponse, ticket: MinimalTicket | None = None) -> MinimalResponse:
    """Return an answer in the form for minimal tickets (Governance Design §Complete Flow)."""
    result = answer["gate_result"]
    blocking = [item for item in result["issues"] if item["level"] != "warn"] or result["issues"]
    # Where no finding stops the run by itself, a budget did.
    spent = result["status"] == "stop" and all(item["level"] != "stop" for item in result["issues"])
    stop = [(answer["reason"], "Stop and report this to the user.")] if spent else []
    said = [*stop, *((item["message"], item["fix"]) for item in blocking)]
    passed = [answer["reason"]] if result["status"] == "pass" else []
    fixes = [fix for _, fix in said]
    return MinimalResponse(
        status=result["status"],
        next_state=answer["next_state"] or (ticket["state"] if ticket else ""),
        agent_role=answer["next_role"],
        gate_result={**result, "reasons": [*passed, *(message for message, _ in said)], "fixes": fixes},
        reason=answer["reason"],
        fixes=fixes,
        updated_ticket=ticket,
    )


MAX_KEPT_CHARS: Final = 8 * 1024
"""So much of a refused submission is kept, as JSON; its digest is of the whole."""

REFUSED: Final = "tamper_refused"
UNREAD: Final = "submission_refused"


def kept(submitted: Mapping[str, Any]) -> dict[str, Any]:
    """Return a submission as the journal keeps it: its digest, its size, and its beginning without keys."""
    text = canonical(submitted).decode()
    return {
        "submitted_sha256": digest(submitted),
        "submitted_bytes": len(text),
        "submitted": redact(text)[:MAX_KEPT_CHARS],
    }


def record_refusal(
    journal: Journal,
    state: RunState,
    wrong: Sequence[Issue],
    call: Mapping[str, str],
    submitted: Mapping[str, Any],
    *,
    closing: bool = False,
) -> Issue | None:
    """Write a refusal into the journal of its run; return the finding that ends the run once the budget is spent.

    Refusals have the budgets of gate failures and are counted apart from them: so many of one kind, in one stage and in
    the run. What is handed over after the end, `closing`, has lines beside those of the run.
    """
    name = journal_beside(state["run_id"]) if closing else journal_run(state["run_id"])
    before = _rows(journal, name)
    row: dict[str, Any] = {
        **call,
        "state": state["state"],
        "revision": state["revision"],
        "signature": signature(wrong),
        "issues": cast("list[Any]", records(wrong)),
        **kept(submitted),
    }
    journal.append(name, f"refused/{len(before) + 1}", REFUSED, row)
    return _spent(state, [*before, row], wrong[0])


def closing_spent(journal: Journal, state: RunState) -> bool:
    """Return whether so much was refused of what a run hands over after its end that nothing more is looked at."""
    rows = _rows(journal, journal_beside(state["run_id"]))
    return bool(rows) and _why(state, rows) is not None


def _rows(journal: Journal, name: str) -> list[Mapping[str, Any]]:
    return [entry.data for entry in journal.entries(name) if entry.type == REFUSED]


def _spent(state: RunState, rows: Sequence[Mapping[str, Any]], last: Issue) -> Issue | None:
    why = _why(state, rows)
    if why is None:
        return None
    return issue(
        "TKT124", last.field, f"{why[:1].upper()}{why[1:]}; the last one: {last.message}", found=why,
        expected="the ticket as the server returned it last, with `payload` filled in",
        fix="Begin a new run, and submit its tickets as they come back.",
    )  # fmt: skip


def _why(state: RunState, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return which budget some refusals have spent, the last one of them; None where something is left of each."""
    policy, row = state["policy"], rows[-1]
    here = [each for each in rows if each["state"] == row["state"]]
    same = sum(each.get("signature") == row["signature"] for each in here)
    if same >= policy["max_identical"]:
        return f"{same} submissions were refused with the same findings"
    if len(here) > policy["max_retries"]:
        return f"{len(here)} submissions of this stage were refused"
    if len(rows) > policy["max_retries_run"]:
        return f"{len(rows)} submissions of this run were refused"
    return None


def note_unread(
    journal: Journal, store: TicketStore, code: str, call: Mapping[str, str], submitted: Mapping[str, Any]
) -> None:
    """Count a submission that was rejected unread; the journal has a line at each power of two.

    Such a submission cannot be read, comes from another caller, or after the end of the run.
    """
    number = store.count_refused()
    if number & (number - 1) == 0:
        row: dict[str, Any] = {**call, "code": code, "refused_so_far": number, **kept(submitted)}
        journal.append(journal_beside(store.run_id), f"unheard/{number}", UNREAD, row)
