"""Works a ticket in this process and kills the process with SIGKILL at the n-th point; prints the points if none.

A point lies before and after each effect: a checkpoint and the writes beside it, their commit, a journal line, a
snapshot, a file of the run, and the copies for people.
"""

import json
import sys
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from interlock.graph.ticket.open_runs import Connection
from interlock.graph.ticket.store import TicketStore
from interlock.graph.ticket.tickets import Tickets
from interlock.journal import Journal
from tests.graph.ticket.walk import do_the_work, filled, ticket_of
from tests.graph.victim import Points

RUN = "run-1"


def main() -> None:
    """Take the run as far as it goes: a refused ticket, a failed attempt, and then what passes each stage."""
    root, points = Path(sys.argv[1]), Points(int(sys.argv[2]))
    for owner, name in (
        (SqliteSaver, "put"),
        (SqliteSaver, "put_writes"),
        (Connection, "commit"),
        (Journal, "append"),
        (Journal, "extend"),
        (TicketStore, "keep_begin"),
        (TicketStore, "keep_tree"),
        (TicketStore, "write_copies"),
    ):
        points.around(owner, name)
    tickets = Tickets(root)
    ticket = ticket_of(tickets.begin("SHOP-7", RUN))
    if not tickets.state(RUN)["refusals"]:
        tickets.submit(filled(ticket, state="complete"))
    if not ticket["history"]:
        ticket = ticket_of(tickets.submit({**ticket, "payload": {}}))
    while ticket["required_fields"]:
        if ticket["state"] == "act_via_tools":
            do_the_work(root)
        ticket = ticket_of(tickets.submit(filled(ticket)))
    print(json.dumps(points.names))


if __name__ == "__main__":
    main()
