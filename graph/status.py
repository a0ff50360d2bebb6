"""Where every run below a root stands: what `interlock status` lists."""

from pathlib import Path
from typing import Any, NamedTuple

from interlock.graph.engine.index import list_runs
from interlock.graph.engine.paths import journal_path
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.explain import kept_summary, run_summary
from interlock.graph.task.runs import Graphs, view_run
from interlock.graph.ticket.explain import ticket_summary
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import Journal


class Summaries(NamedTuple):
    """The summaries of all runs as JSON values, and those that cannot be read back: `run_id`, `message`, `fix`."""

    tasks: list[dict[str, Any]]
    tickets: list[dict[str, Any]]
    damaged: list[dict[str, str]]


def all_summaries(root: Path) -> Summaries:
    """Return where every run stands; what is damaged does not hide the rest, and nothing is changed."""
    found = Summaries([], [], [])
    journal, graphs = Journal(journal_path(root)), Graphs()
    for run_id in list_runs(root, "runs"):
        try:
            kept = kept_summary(root, run_id, journal)
            found.tasks.append(kept or run_summary(view_run(run_id, root=root, graphs=graphs), root, journal))
        except RunDamagedError as error:
            found.damaged.append({"run_id": run_id, "message": error.message, "fix": error.fix})
    tickets = Tickets(root)
    for run_id in tickets.runs():
        try:
            found.tickets.append(ticket_summary(tickets, run_id))
        except RunDamagedError as error:
            found.damaged.append({"run_id": f"ticket:{run_id}", "message": error.message, "fix": error.fix})
    return found
