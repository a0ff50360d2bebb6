"""The state of ticket runs and its reasons, for people and programs: what the reading commands print."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from interlock.agents.usage import Limits
from interlock.graph.engine.folder import copies_dir, find_run, journal_path, journal_run, list_runs
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.explain import run_summary
from interlock.graph.task.runs import Graphs, view_run
from interlock.graph.ticket.answers import NEXT_ENDS, SAME_ENDS
from interlock.graph.ticket.by_model import answer_lines, ticket_usage
from interlock.graph.ticket.contract import FAIL_CLOSED, RunStatus
from interlock.graph.ticket.store import TicketStore
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import Entry


def find_ticket_run(root: Path, name: str) -> str | None:
    """Return the ticket run of that id, with or without `ticket:` before it, or the newest run of that ticket."""
    return find_run(root, "tickets", name.removeprefix(journal_run("")))


def ticket_summary(tickets: Tickets, run_id: str, limits: Limits | None = None) -> dict[str, Any]:
    """Return the status of a ticket run, what its model cost and where its records are; nothing is changed.

    Raises:
        UnknownRunError: There is no such run.
        RunDamagedError: It cannot be read back.
    """
    status = tickets.look(run_id)
    copies = copies_dir(tickets.root, run_id)
    places = {
        "journal": str(journal_path(tickets.root).relative_to(tickets.root)),
        "copies": str(copies.relative_to(tickets.root)) if copies.is_dir() else None,
    }
    if status is None:
        ticket_id = TicketStore(tickets.root, run_id).load().get("ticket_id")
        row = {"run_id": run_id, "ticket_id": ticket_id, "state": None, "revision": 0, "terminal": False}
        rest = {"waits_for": ["the next call"], "driven": False, "usage": ticket_usage(())}
        return {"schema": "interlock.ticket-run/1", **row, **rest, **places, "head": None}
    store = TicketStore(tickets.root, run_id)
    abandoned, asked = store.abandoned(), store.has_answers()
    head = tickets.journal.head(journal_run(run_id))
    return {
        "schema": "interlock.ticket-run/1",
        **status,
        **({"terminal": True, "abandoned": True} if abandoned else {}),
        "waits_for": [] if abandoned else _waits_for(status),
        "driven": store.driven(),
        "usage": ticket_usage(answer_lines(tickets.journal, run_id) if asked else (), limits),
        **places,
        "head": None if head is None else {"seq": head.seq, "hash": head.hash},
    }


def _waits_for(status: RunStatus) -> list[str]:
    if status["terminal"]:
        return []
    asked = ", ".join(status["required_fields"])
    return status["waiting"] or ([f"a payload with {asked}"] if asked else ["a submission that takes its tasks on"])


def explain_ticket(tickets: Tickets, run_id: str) -> dict[str, Any]:
    """Return why a ticket run is where it is, as JSON values with the schema `interlock.ticket-explanation/1`.

    Raises:
        UnknownRunError: There is no such run.
        RunDamagedError: It cannot be read back.
    """
    summary = ticket_summary(tickets, run_id)
    entries = list(tickets.journal.entries(journal_run(run_id)))
    gates = [entry for entry in entries if entry.type.startswith("gate_")]
    refused = [entry for entry in entries if entry.type == "tamper_refused"]
    refused = [entry for entry in refused if entry.data["revision"] == summary["revision"]]
    return {
        **summary,
        "schema": "interlock.ticket-explanation/1",
        "why": _why(summary, gates),
        "attempts": [_attempt(entry) for entry in gates],
        "findings": list(gates[-1].data["issues"]) if gates else [],
        "refused": list(refused[-1].data["issues"]) if refused else [],
        "next": _next(summary),
    }


def _why(summary: Mapping[str, Any], gates: list[Entry]) -> str:
    if summary["state"] is None:
        return "The run was cut off while it began."
    if not gates:
        return "Nothing was submitted yet."
    last = gates[-1].data
    match last["status"]:
        case "pass":
            return f"{last['state']} passed at revision {last['revision']}."
        case "retry":
            ends = f"; {end}" if (end := _what_ends(summary["retries_left"])) else ""
            return f"{last['state']} was refused at revision {last['revision']} and can be fixed{ends}."
        case _:
            why = f": {last['why']}" if last["why"] else ""
            return f"{last['state']} failed closed at revision {last['revision']} ({last['reason_code']}){why}."


def _what_ends(left: Mapping[str, int]) -> str:
    """Return which further failure ends a run that was refused, as a clause; empty while none does at once."""
    if not (left["stage"] and left["run"]):
        return NEXT_ENDS
    return "" if left["identical"] else SAME_ENDS


def _attempt(entry: Entry) -> dict[str, Any]:
    kept = ("revision", "state", "status", "next_state")
    codes = [item["code"] for item in entry.data["issues"]]
    return {**{name: entry.data[name] for name in kept}, "at": entry.at, "issues": codes}


def _next(summary: Mapping[str, Any]) -> list[str]:
    if summary["state"] == FAIL_CLOSED:
        return [summary["invalidation_report"]["required_next_action"]]
    if summary["terminal"]:
        return ["Nothing: the run is complete."]
    if summary["state"] is None:
        return [f"Call interlock_begin_run again with ticket_id {summary['ticket_id']} and run_id {summary['run_id']}."]
    return [str(summary["agent_role"]), *(f"It waits for {item}." for item in summary["waits_for"])]


def summary_text(summary: Mapping[str, Any]) -> str:
    """Return a summary for a person."""
    head = summary["head"]
    report = summary["invalidation_report"] if summary["terminal"] else None
    # One that is over, or whose last submission passed, is not about to end.
    fixable = summary.get("validation", {}).get("status") == "invalid_fixable"
    rows = [
        ("run", summary["run_id"]),
        ("ticket", summary["ticket_id"]),
        ("path", " → ".join(summary.get("path", ())) or "(not begun)"),
        ("state", summary["state"] or "(not begun)"),
        ("revision", str(summary["revision"])),
        *(("waits for", item) for item in summary["waits_for"]),
        *(("reason", item) for item in summary.get("validation", {}).get("errors", ())),
        *([("ended", report["reason_code"])] if report else []),
        *([("beware", ends)] if fixable and (ends := _what_ends(summary["retries_left"])) else []),
        ("journal", summary["journal"]),
        *([("copies", summary["copies"])] if summary["copies"] else []),
        *([("head", f"{journal_run(summary['run_id'])}:{head['seq']}:{head['hash']}")] if head else []),
    ]
    return "\n".join(f"{name:<12}{text}" for name, text in rows)


def explanation_text(data: Mapping[str, Any]) -> str:
    """Return an explanation for a person."""
    state = data["state"] or "not begun"
    lines = [
        f"{data['run_id']}: {state} (ticket {data['ticket_id']}, revision {data['revision']})",
        f"why: {data['why']}",
        *_finding_lines(data["findings"]),
        *(["refused since, and not counted:"] if data["refused"] else []),
        *_finding_lines(data["refused"]),
        *(["attempts:"] if data["attempts"] else []),
    ]
    for row in data["attempts"]:
        codes = ", ".join(dict.fromkeys(row["issues"]))
        lines.append(f"  {row['revision']:>3}  {row['state']:<22} {row['status']:<6} {codes}".rstrip())
    return "\n".join([*lines, "next:", *(f"  - {item}" for item in data["next"])])


def _finding_lines(findings: list[dict[str, Any]]) -> Iterator[str]:
    for item in findings:
        where = f" {item['field']}" if item["field"] else ""
        yield f"  {item['code']} ({item['level']}){where}: {item['message']}"
        yield f"    fix: {item['fix']}"


class Summaries(NamedTuple):
    """The summaries of all runs as JSON values, and those that cannot be read back: `run_id`, `message`, `fix`."""

    tasks: list[dict[str, Any]]
    tickets: list[dict[str, Any]]
    damaged: list[dict[str, str]]


def all_summaries(root: Path) -> Summaries:
    """Return the summary of every run; what is damaged does not hide the rest, and nothing is changed."""
    found = Summaries([], [], [])
    tickets, graphs = Tickets(root), Graphs()
    for log in (tickets.journal, tickets.snapshots):
        log.runs()  # reads all of it once, where each run would be searched for
    for run_id in list_runs(root, "runs"):
        try:
            found.tasks.append(run_summary(view_run(run_id, root=root, graphs=graphs), root, tickets.journal))
        except RunDamagedError as error:
            found.damaged.append({"run_id": run_id, "message": error.message, "fix": error.fix})
    for run_id in tickets.runs():
        try:
            found.tickets.append(ticket_summary(tickets, run_id))
        except RunDamagedError as error:
            found.damaged.append({"run_id": f"ticket:{run_id}", "message": error.message, "fix": error.fix})
    return found
