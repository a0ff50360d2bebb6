"""What a ticket run hands over: in the journal with its digest, and honest where nothing changed."""

import hashlib
from pathlib import Path

from interlock.graph.ticket.tickets import Tickets
from tests.graph.ticket.walk import PAYLOADS, codes, filled, ticket_of, walk_to


def test_a_success_without_a_change_has_to_say_so(tickets: Tickets, root: Path) -> None:
    ticket = walk_to(tickets, "act_via_tools")
    answer = tickets.submit(filled(ticket))
    assert codes(answer) == ["STG603"]
    refused = tickets.submit(filled(ticket_of(answer)))
    assert codes(refused) == ["STG704"]
    said = {**PAYLOADS["record_and_finalize"], "final_summary": "No file changed: it was there."}
    assert tickets.submit({**ticket_of(refused), "payload": said})["gate_result"]["status"] == "pass"


def test_the_journal_holds_digest_and_size_of_what_was_handed_over(tickets: Tickets, root: Path) -> None:
    walk_to(tickets, "complete")
    passed = [entry for entry in tickets.events("run-1") if entry.type == "gate_passed"][-1]
    data = (root / "app.py").read_bytes()
    record = {"path": "app.py", "sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)}
    assert passed.data["artifacts"] == [record]
