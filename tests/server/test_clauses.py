"""The flows of the Ticket Protocol and the Governance Design, step by step against a real server process."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import journal_path, snapshots_path
from tests.graph.ticket.walk import MINIMAL, do_the_work, make_project
from tests.server.stdio_process import client
from tests.server.test_tickets import called as call

pytestmark = pytest.mark.anyio

DEMO = """
{
  "ticket_id": "DEMO-001",
  "title": "Add authentication",
  "state": "intake",
  "run_id": "run-123"
}
"""
"""The ticket of Governance Design §Example Flow, word for word."""


def records(path: Path, run: str) -> list[dict[str, Any]]:
    """Return the lines of a record that are about one ticket run."""
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["run"] == f"ticket:{run}"]


# -- Governance Design ------------------------------------------------------------------------------------------------


@pytest.mark.long
async def test_the_example_flow_of_the_governance_design_works_step_by_step(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    async with client(root) as connected:
        # 1 and 2: the agent creates the ticket and calls the one tool.
        answer = await call(connected, "interlock_next_step", ticket_json=DEMO)
        # 3: the server has judged, moved, and kept the ticket and the events.
        assert [line["type"] for line in records(journal_path(root), "run-123")] == [
            "run_started",
            "tool_call",
            "gate_passed",
            "transition",
        ]
        moved = records(journal_path(root), "run-123")[-1]["data"]
        assert (moved["from"], moved["to"]) == ("intake", "extract_requirements")
        kept = [line["data"]["state"] for line in records(snapshots_path(root), "run-123")]
        assert kept == ["intake", "extract_requirements"]
        # 4: the server responds.
        assert (answer["status"], answer["next_state"]) == ("pass", "extract_requirements")
        for word in ("acceptance criteria", "constraints", "unknowns"):
            assert word in answer["agent_role"]
        assert answer["gate_result"]["status"] == "pass"
        assert answer["gate_result"]["reasons"]
        # 5: the agent sets the state that it was given, does the work, and calls again. 6: until `finalize`.
        ticket: dict[str, Any] = json.loads(DEMO)
        path = [ticket["state"]]
        while answer["next_state"] != path[-1]:
            path.append(answer["next_state"])
            ticket["state"] = answer["next_state"]
            if ticket["state"] == "act":
                do_the_work(root)
            ticket["payload"] = MINIMAL[ticket["state"]]
            answer = await call(connected, "interlock_next_step", ticket_json=json.dumps(ticket))
            assert answer["status"] == "pass", answer
            assert answer["agent_role"]
    assert path == [
        "intake",
        "extract_requirements",
        "scope_context",
        "gather_evidence",
        "propose_plan",
        "act",
        "finalize",
    ]
    assert answer["next_state"] == "finalize"
    assert records(snapshots_path(root), "run-123")[-1]["data"]["required_fields"] == []
