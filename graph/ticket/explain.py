"""The state of ticket runs and its reasons, for people and programs: what the reading commands print."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from interlock.graph.engine.folder import ABANDONED, find_run, journal_run, list_runs
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.explain import run_summary
from interlock.graph.task.runs import Graphs, view_run
from interlock.graph.ticket.contract import FAIL_CLOSED
from interlock.graph.ticket.store import TicketStore
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import Entry


def find_ticket_run(root: Path, name: str) -> str | None:
    """Return the ticket run of that id, with or without `ticket:` before it, or the newest run of that ticket."""
    return find_run(root, "tickets", name.removeprefix(journal_run("")))


def ticket_summary(tickets: Tickets, run_id: str) -> dict[str, Any]:
    """Return the status of a ticket run and what it waits for; nothing is changed.

    Raises:
        UnknownRunError: There is no such run.
        RunDamagedError: It cannot be read back.
    """
    status = tickets.look(run_id)
    if status is None:
        # A kill came before the first checkpoint: nothing but what the run was to begin with is known.
        ticket_id = TicketStore(tickets.root, run_id).load().get("ticket_id")
        row = {"run_id": run_id, "ticket_id": ticket_id, "state": None, "revision": 0, "terminal": False}
        return {"schema": "interlock.ticket-run/1", **row, "waits_for": ["the next call"], "head": None}
    abandoned = tickets.journal.find(journal_run(run_id), ABANDONED) is not None
    head = tickets.journal.head(journal_run(run_id))
    return {
        "schema": "interlock.ticket-run/1",
        **status,
        **({"terminal": True, "abandoned": True} if abandoned else {}),
        "waits_for": [] if status["terminal"] else [f"a payload with {', '.join(status['required_fields'])}"],
        "head": None if head is None else {"seq": head.seq, "hash": head.hash},
    }


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
    # What was refused at an earlier revision does not hold the run up any more.
    refused = [entry for entry in refused if entry.data["revision"] == summary["revision"]]
    return {
        **summary,
        "schema": "interlock.ticket-explanation/1",
        "why": _why(summary, gates),
        "findings": list(gates[-1].data["issues"]) if gates else [],
        "refused": list(refused[-1].data["issues"]) if refused else [],
        "next": _next(summary),
    }


def _why(summary: Mapping[str, Any], gates: list[Entry]) -> str:
    if summary["state"] is None:
        return "The run was cut off while it began."
    if "abandoned" in summary:
        return f"The run was abandoned in {summary['state']}."
    if not gates:
        return "Nothing was submitted yet."
    last = gates[-1].data
    match last["status"]:
        case "pass":
            return f"{last['state']} passed at revision {last['revision']}."
        case "retry":
            return f"{last['state']} was refused at revision {last['revision']} and can be fixed."
        case _:
            why = f": {last['why']}" if last["why"] else ""
            return f"{last['state']} failed closed at revision {last['revision']} ({last['reason_code']}){why}."


def _next(summary: Mapping[str, Any]) -> list[str]:
    # The report says more than that the run is over, and so comes first.
    if summary["state"] == FAIL_CLOSED:
        return [summary["invalidation_report"]["required_next_action"]]
    if summary["terminal"]:
        return ["Nothing: the run is over."]
    if summary["state"] is None:
        return [f"Call interlock_begin_run again with ticket_id {summary['ticket_id']} and run_id {summary['run_id']}."]
    return [str(summary["agent_role"]), *(f"It waits for {item}." for item in summary["waits_for"])]


def summary_text(summary: Mapping[str, Any]) -> str:
    """Return a summary for a person."""
    head = summary["head"]
    rows = [
        ("run", summary["run_id"]),
        ("ticket", summary["ticket_id"]),
        ("path", " → ".join(summary.get("path", ())) or "(not begun)"),
        ("state", summary["state"] or "(not begun)"),
        ("revision", str(summary["revision"])),
        *([("ended", "abandoned")] if "abandoned" in summary else []),
        *(("waits for", item) for item in summary["waits_for"]),
        *(("reason", item) for item in summary.get("validation", {}).get("errors", ())),
        *([("head", f"{journal_run(summary['run_id'])}:{head['seq']}:{head['hash']}")] if head else []),
    ]
    return "\n".join(f"{name:<12}{text}" for name, text in rows)


def explanation_text(data: Mapping[str, Any]) -> str:
    """Return an explanation for a person."""
    lines = [
        f"{data['run_id']}: {data['state'] or 'not begun'} (ticket {data['ticket_id']}, revision {data['revision']})",
        f"why: {data['why']}",
    ]
    for item in (*data["findings"], *data["refused"]):
        where = f" {item['field']}" if item["field"] else ""
        lines += [f"  {item['code']} ({item['level']}){where}: {item['message']}", f"    fix: {item['fix']}"]
    return "\n".join([*lines, "next:", *(f"  - {item}" for item in data["next"])])


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
