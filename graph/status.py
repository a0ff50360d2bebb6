"""Where every run below a root stands: what `interlock status` lists."""

from pathlib import Path
from typing import Any, NamedTuple

from interlock.graph.engine.folder import list_runs
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.explain import run_summary
from interlock.graph.task.runs import Graphs, view_run
from interlock.graph.ticket.explain import ticket_summary
from interlock.graph.ticket.tickets import Tickets


class Summaries(NamedTuple):
    """The summaries of all runs as JSON values, and those that cannot be read back: `run_id`, `message`, `fix`."""

    tasks: list[dict[str, Any]]
    tickets: list[dict[str, Any]]
    damaged: list[dict[str, str]]


def all_summaries(root: Path) -> Summaries:
    """Return where every run stands; what is damaged does not hide the rest, and nothing is changed."""
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
