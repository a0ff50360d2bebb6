"""What a person sees of ticket runs at the command line: their state, why, and whether their records are whole."""

import re
import shutil
from pathlib import Path

import pytest

from interlock.graph import SPECS, Tickets, TicketStore, journal_path
from interlock.journal import Journal
from tests.graph.ticket.walk import filled, make_project, ticket_of
from tests.interlock.test_cli import data, interlock


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a ticket run that was refused twice, and one that failed closed."""
    root = make_project(tmp_path / "project")
    tickets = Tickets(root)
    ticket = ticket_of(tickets.begin("SHOP-7", "run-1"))
    ticket = ticket_of(tickets.submit(filled(ticket)))
    tickets.submit({**ticket, "payload": {"constraints": []}})
    tickets.submit(filled(tickets.ticket("run-1"), state="complete"))
    ticket = ticket_of(tickets.begin("SHOP-8", "run-2"))
    for _ in range(3):
        ticket = ticket_of(tickets.submit({**ticket, "payload": {}}))
    return root


def test_status_lists_ticket_runs_and_what_they_wait_for(project: Path) -> None:
    second, first = interlock(project, "status").stdout.splitlines()
    assert first.split()[:6] == ["run-1", "ticket", "SHOP-7", "extract_requirements", "revision", "3"]
    assert re.search(r"waits for a payload with acceptance_criteria, constraints, unknowns \(\d+ s ago\)$", first)
    assert second.split()[3] == "fail_closed"
    assert re.search(r"failed closed: repeated_failure \(\d+ s ago\)$", second)
    listed = data(interlock(project, "status", "--json"))
    assert listed["runs"] == listed["damaged"] == []
    rows = [(row["run_id"], row["ticket_id"], row["state"], row["revision"]) for row in listed["tickets"]]
    assert rows == [("run-2", "SHOP-8", "fail_closed", 4), ("run-1", "SHOP-7", "extract_requirements", 3)]


@pytest.mark.parametrize("name", ["run-1", "SHOP-7", "ticket:run-1"])
def test_status_shows_one_ticket_run_by_its_id_or_its_ticket(project: Path, name: str) -> None:
    shown = data(interlock(project, "status", name, "--json"))
    assert (shown["schema"], shown["run_id"], shown["path"][-1]) == (
        "interlock.ticket-run/1",
        "run-1",
        "extract_requirements",
    )


def test_the_head_that_status_prints_is_one_that_verify_takes(project: Path) -> None:
    lines = dict(line.split(maxsplit=1) for line in interlock(project, "status", "run-1").stdout.splitlines())
    assert interlock(project, "verify", "--head", lines["head"]).returncode == 0
    run, _, digest = lines["head"].rpartition(":")
    changed = f"{run}:{'0' * len(digest)}"
    refused = interlock(project, "verify", "--head", changed, "--json")
    assert refused.returncode == 1
    assert [problem["run"] for problem in data(refused)["problems"]] == ["ticket:run-1"]
    shutil.rmtree(project / ".interlock")
    assert interlock(project, "verify", "--head", lines["head"]).returncode == 0


def test_a_head_that_could_be_a_tasks_is_the_tasks(project: Path) -> None:
    journal = Journal(journal_path(project))
    head = journal.head("ticket:run-1")
    assert head is not None
    journal.append("run-1", "run_started", "run_started", {})
    done = interlock(project, "verify", "--head", f"run-1:{head.seq}:{head.hash}", "--json")
    assert [problem["run"] for problem in data(done)["problems"]] == ["run-1"]


@pytest.mark.parametrize("command", ["ask", "resume"])
@pytest.mark.parametrize("name", ["run-1", "SHOP-7"])
def test_what_is_for_tasks_says_that_a_ticket_is_none_and_who_goes_on(project: Path, command: str, name: str) -> None:
    done = interlock(project, command, name, "--json")
    error = data(done)["error"]
    assert (done.returncode, error["code"]) == (2, "RUN602")
    assert "ticket run run-1" in error["message"]
    assert "interlock explain run-1" in error["fix"]


def test_explain_shows_the_findings_and_what_was_refused_since(project: Path) -> None:
    explained = data(interlock(project, "explain", "SHOP-7", "--json"))
    assert [item["code"] for item in explained["findings"]] == ["STG103", "STG103"]
    assert [item["code"] for item in explained["refused"]] == ["TKT122"]
    text = interlock(project, "explain", "run-1").stdout
    assert all(item["fix"] in text for item in (*explained["findings"], *explained["refused"]))
    closed = data(interlock(project, "explain", "run-2", "--json"))
    assert "repeated_failure" in closed["why"]
    assert closed["next"] == [closed["invalidation_report"]["required_next_action"]]


def test_a_ticket_run_that_was_cut_off_while_it_began_is_listed_and_stays_as_it_is(project: Path) -> None:
    store = TicketStore(project, "run-3")
    store.create({"run_id": "run-3", "ticket_id": "SHOP-9", "pipeline": "ticket", "owner": ""})
    assert data(interlock(project, "status", "--json"))["tickets"][0]["state"] is None
    assert "interlock_begin_run" in interlock(project, "explain", "SHOP-9").stdout
    assert interlock(project, "verify").returncode == 0
    assert sorted(path.name for path in store.folder.iterdir()) == ["run.json"]


def test_a_damaged_ticket_run_does_not_hide_the_others(project: Path) -> None:
    (project / ".interlock/tickets/run-1/run.json").write_text("no JSON")
    done = interlock(project, "status", "--json")
    assert done.returncode == 1
    assert [row["run_id"] for row in data(done)["tickets"]] == ["run-2"]
    assert [row["run_id"] for row in data(done)["damaged"]] == ["ticket:run-1"]


@pytest.mark.long
@pytest.mark.parametrize("name", SPECS)
def test_graph_prints_a_pipeline(tmp_path: Path, name: str) -> None:
    drawn = interlock(tmp_path, "graph", "--pipeline", name)
    assert drawn.returncode == 0
    assert all(f"{stage.name} --> fail_closed: stop" in drawn.stdout for stage in SPECS[name].stages)
