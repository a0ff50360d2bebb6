"""A project to work a ticket in, and payloads that pass every stage of the shipped pipelines."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, cast

from interlock.graph.ticket.contract import Ticket, TicketResponse
from interlock.graph.ticket.tickets import Tickets

SOURCE: Final = "def greet(name):\n    return 'Hello ' + name\n\n\nprint(greet('you'))\n"

PAYLOADS: Final[Mapping[str, dict[str, Any]]] = {
    "fetch_ticket": {
        "external_source": "jira",
        "external_ticket_id": "SHOP-7",
        "title": "Greet politely",
        "description": "The greeting must end with an exclamation mark.",
    },
    "extract_requirements": {
        "acceptance_criteria": ["The greeting ends with `!`.", "The name is kept."],
        "constraints": ["No new file."],
        "unknowns": [],
    },
    "scope_context": {"retrieval_targets": ["repo:app.py"], "retrieval_justification": "It holds the greeting."},
    "gather_evidence": {
        "evidence_items": [
            {"source_id": "ev_1", "source_type": "repo", "locator": "app.py:2", "snippet": "return 'Hello ' + name"},
            {"source_id": "ev_2", "source_type": "web", "locator": "the style guide", "snippet": "Be polite."},
        ]
    },
    "propose_plan": {
        "plan_steps": [
            {
                "step_id": "step_1",
                "intent": "Add the mark",
                "requirement_refs": ["ac_001", "ac_002", "con_001"],
                "evidence_refs": ["ev_1"],
            }
        ]
    },
    "act_via_tools": {
        "actions_taken": ["edited app.py"],
        "outputs": ["app.py"],
        "checkpoints": ["python app.py prints Hello you!"],
    },
    "record_and_finalize": {"artifacts": ["app.py"], "final_summary": "The mark is there.", "outcome": "success"},
}

STATES: Final = (*PAYLOADS, "complete")

MINIMAL_TICKET: Final[Mapping[str, Any]] = {
    "ticket_id": "DEMO-001",
    "title": "Add authentication",
    "state": "intake",
    "run_id": "run-123",
}

MINIMAL: Final[Mapping[str, dict[str, Any]]] = {
    "extract_requirements": PAYLOADS["extract_requirements"],
    "scope_context": PAYLOADS["scope_context"],
    "gather_evidence": PAYLOADS["gather_evidence"],
    "propose_plan": PAYLOADS["propose_plan"],
    "act": PAYLOADS["act_via_tools"],
    "finalize": PAYLOADS["record_and_finalize"],
}


def make_project(folder: Path) -> Path:
    """Write the project's files and return its root."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.py").write_text(SOURCE)
    (folder / "README.md").write_text("# Shop\n")
    return folder


def do_the_work(root: Path) -> None:
    """Make the edit that the plan asks for."""
    (root / "app.py").write_text(SOURCE.replace("+ name", "+ name + '!'"))


def ticket_of(answer: object) -> Ticket:
    """Return a copy of the ticket in an answer."""
    ticket = cast("TicketResponse", answer)["ticket_json"]
    assert ticket is not None, answer
    return deepcopy(ticket)


def filled(ticket: Ticket, **changes: Any) -> dict[str, Any]:
    """Return a ticket with the payload that passes its stage, and other fields changed."""
    return {**ticket, "payload": deepcopy(PAYLOADS[ticket["state"]]), **changes}


def codes(answer: Any) -> list[str]:
    """Return the codes of the findings in an answer."""
    return [item["code"] for item in answer["gate_result"]["issues"]]


def walk_to(tickets: Tickets, state: str, run_id: str = "run-1", **payloads: dict[str, Any]) -> Ticket:
    """Take a new run to a state, with some payloads replaced, and return its ticket."""
    ticket = ticket_of(tickets.begin("SHOP-7", run_id))
    while ticket["state"] != state:
        if ticket["state"] == "act_via_tools":
            do_the_work(tickets.root)
        given = filled(ticket)
        answer = tickets.submit(given | {"payload": deepcopy(payloads.get(ticket["state"], given["payload"]))})
        assert answer["gate_result"]["status"] == "pass", answer["gate_result"]
        ticket = ticket_of(answer)
    return ticket


def events(tickets: Tickets, run_id: str = "run-1") -> list[str]:
    """Return the types of a run's journal lines, in order."""
    return [entry.type for entry in tickets.events(run_id)]
