"""The flows of the Ticket Protocol and the Governance Design, played step by step against a real server process."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from interlock.graph import journal_path, snapshots_path
from tests.graph.ticket.walk import MINIMAL, PAYLOADS, STATES, do_the_work, make_project
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
"""The ticket of Governance Design §Example Flow, as it stands there."""


def records(path: Path, run: str) -> list[dict[str, Any]]:
    """Return the lines of a record that are about one ticket run."""
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["run"] == f"ticket:{run}"]


# -- Governance Design ------------------------------------------------------------------------------------------------


@pytest.mark.long
async def test_the_example_flow_is_played_as_it_stands_in_the_governance_design(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    async with client(root) as connected:
        # 1 and 2: the agent creates the ticket and calls the one tool.
        answer = await call(connected, "interlock_next_step", ticket_json=DEMO)
        # 3: the server has judged, moved, and kept the ticket and the events.
        assert [line["type"] for line in records(journal_path(root), "run-123")] == [
            "run_started", "tool_call", "gate_passed", "transition",
        ]  # fmt: skip
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
        # 5: the agent sets the state that it was told, does the work, and calls again. 6: until `finalize`.
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
        "intake", "extract_requirements", "scope_context", "gather_evidence", "propose_plan", "act", "finalize",
    ]  # fmt: skip
    assert answer["next_state"] == "finalize"
    assert records(snapshots_path(root), "run-123")[-1]["data"]["required_fields"] == []


@pytest.mark.long
async def test_a_state_set_without_the_work_of_its_stage_is_a_retry_with_what_is_missing(tmp_path: Path) -> None:
    """Governance Design §Example Flow, step 5, done by an agent that sets the state and nothing else."""
    root = make_project(tmp_path / "project")
    async with client(root) as connected:
        await call(connected, "interlock_next_step", ticket_json=DEMO)
        bare = {**json.loads(DEMO), "state": "extract_requirements"}
        answer = await call(connected, "interlock_next_step", ticket_json=json.dumps(bare))
        assert (answer["status"], answer["next_state"]) == ("retry", "extract_requirements")
        assert answer["gate_result"]["missing_or_invalid_fields"] == list(MINIMAL["extract_requirements"])
        assert len(answer["fixes"]) == len(answer["gate_result"]["reasons"]) == 3
        bare["payload"] = MINIMAL["extract_requirements"]
        assert (await call(connected, "interlock_next_step", ticket_json=bare))["next_state"] == "scope_context"


# -- Ticket Protocol --------------------------------------------------------------------------------------------------


class Agent:
    """An agent that keeps its ticket in `tickets/ticket.json` and follows Ticket Protocol §Workflow to the letter."""

    def __init__(self, connected: Client, root: Path) -> None:
        self.connected = connected
        self.root = root
        self.file = root / "tickets" / "ticket.json"
        self.role = ""

    @property
    def ticket(self) -> dict[str, Any]:
        """The ticket as the file holds it."""
        return json.loads(self.file.read_text())

    async def begin(self) -> None:
        """Steps 1 and 2: begin a run if there is no local ticket, and save what comes back."""
        assert not self.file.exists()
        self.save(await call(self.connected, "interlock_begin_run", ticket_id="SHOP-7"))

    def save(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Steps 2 and 6: replace the file with the returned `ticket_json`."""
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(json.dumps(answer["ticket_json"]))
        self.role = answer["next_role"]
        return answer

    def fill(self, payload: dict[str, Any]) -> None:
        """Step 4: fill only `payload`."""
        self.file.write_text(json.dumps({**self.ticket, "payload": payload}, indent=2))

    async def submit(self) -> dict[str, Any]:
        """Steps 5 and 6: submit the full content of the file, and keep what comes back."""
        text = self.file.read_text()
        return self.save(await call(self.connected, "interlock_submit_ticket", ticket_json=text))


@pytest.mark.long
async def test_the_workflow_is_followed_with_a_file_on_disk_from_fetch_ticket_to_complete(tmp_path: Path) -> None:
    """Ticket Protocol §Workflow and §Minimal Loop Example."""
    root = make_project(tmp_path / "project")
    async with client(root) as connected:
        agent = Agent(connected, root)
        await agent.begin()
        states = [agent.ticket["state"]]
        going = True
        while going:
            sentence = agent.ticket["agent_role"]
            assert sentence
            assert agent.role.startswith(sentence)
            payload = PAYLOADS[agent.ticket["state"]]
            assert (agent.ticket["required_fields"], agent.ticket["payload"]) == (list(payload), {})
            if agent.ticket["state"] == "act_via_tools":
                do_the_work(root)
            agent.fill(payload)
            answer = await agent.submit()
            assert answer["gate_result"]["status"] == "pass", answer["gate_result"]
            assert answer["next_state"] == agent.ticket["state"]
            states.append(agent.ticket["state"])
            going = answer["continue"]
    assert (tuple(states), agent.ticket["state"]) == (STATES, "complete")


@pytest.mark.long
async def test_a_retry_is_mended_from_its_gate_result_and_cannot_be_advanced_by_hand(tmp_path: Path) -> None:
    """Ticket Protocol §Gate retry."""
    root = make_project(tmp_path / "project")
    async with client(root) as connected:
        agent = Agent(connected, root)
        await agent.begin()
        agent.fill({"external_source": "jira", "title": " ", "summary": "x"})
        answer = await agent.submit()
        assert (answer["gate_result"]["status"], answer["continue"]) == ("retry", True)
        named = set(answer["gate_result"]["missing_or_invalid_fields"])
        assert named == {"external_ticket_id", "title", "description", "summary"}
        assert agent.ticket["payload"]["external_source"] == "jira"
        agent.file.write_text(json.dumps({**agent.ticket, "state": "extract_requirements"}))
        answer = await agent.submit()
        assert answer["gate_result"]["missing_or_invalid_fields"] == ["state"]
        assert agent.ticket["state"] == "fetch_ticket"
        good = PAYLOADS["fetch_ticket"]
        kept = {name: value for name, value in agent.ticket["payload"].items() if name not in named}
        agent.fill({**kept, **{name: good[name] for name in named if name in good}})
        assert (await agent.submit())["next_state"] == "extract_requirements"


@pytest.mark.long
async def test_a_stop_comes_with_reason_state_and_invalidation_report_and_is_the_end(tmp_path: Path) -> None:
    """Ticket Protocol §Gate stop / fail-closed and §Terminal States."""
    root = make_project(tmp_path / "project")
    async with client(root) as connected:
        agent = Agent(connected, root)
        await agent.begin()
        answer: dict[str, Any] = {"continue": True}
        while answer["continue"]:
            agent.fill({})
            answer = await agent.submit()
        assert (answer["gate_result"]["status"], answer["next_state"]) == ("stop", "fail_closed")
        assert answer["reason"]
        report = agent.ticket["invalidation_report"]
        assert (report["state"], report["fixable"], report["reason_code"]) == (
            "fetch_ticket", False, "repeated_failure",
        )  # fmt: skip
        assert report["missing_or_invalid_fields"] == list(PAYLOADS["fetch_ticket"])
        assert report["required_next_action"]
        before = agent.ticket
        agent.fill(PAYLOADS["fetch_ticket"])
        answer = await agent.submit()
        assert (answer["gate_result"]["status"], answer["continue"], agent.ticket) == ("stop", False, before)


@pytest.mark.long
async def test_next_step_answers_a_whole_ticket_exactly_as_submit_does(tmp_path: Path) -> None:
    """Ticket Protocol §Tools: Backward-compatible alias for `interlock_submit_ticket`."""
    root = make_project(tmp_path / "project")
    async with client(root) as connected:
        begun = await call(connected, "interlock_begin_run", ticket_id="SHOP-7", run_id="run-1")
        for payload in ({}, PAYLOADS["fetch_ticket"]):
            now = await call(connected, "interlock_begin_run", ticket_id="SHOP-7", run_id="run-1")
            text = json.dumps({**now["ticket_json"], "payload": payload})
            one = await call(connected, "interlock_next_step", ticket_json=text)
            assert await call(connected, "interlock_submit_ticket", ticket_json=text) == one
            assert set(one) == set(begun)
        assert one["next_state"] == "extract_requirements"
