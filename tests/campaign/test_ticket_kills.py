"""SIGKILL of the server during submissions: what it acknowledged is there, once and whole, and the run goes on."""

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import Tickets, journal_run, rebuild, verify_journal
from interlock.journal import Journal
from tests.graph.ticket.walk import SOURCE, do_the_work, filled, make_project
from tests.server.stdio_process import Wire, call, server

MAX_SECONDS = 0.3
"""A kill comes at a random moment of so long after the first submission; one submission takes some milliseconds."""


class KilledError(Exception):
    """The server is gone; the call that was under way has no answer."""


def _answer(wire: Wire, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool and return its structured answer."""
    try:
        wire.send(call(name, arguments))
        while True:
            message = wire.read()
            if "result" in message:
                return message["result"]["structuredContent"]
    except (OSError, ValueError) as error:
        raise KilledError from error


def _submissions(wire: Wire, root: Path, run_id: str, acknowledged: dict[str, dict[str, Any]]) -> None:
    """Work runs from where they stand, one after the other, until the server is killed."""
    while True:
        ticket = _answer(wire, "interlock_begin_run", {"ticket_id": "SHOP-7", "run_id": run_id})["ticket_json"]
        while ticket["required_fields"]:
            acknowledged[run_id] = ticket
            given = filled(ticket)
            if ticket["state"] == "act_via_tools":
                do_the_work(root)
            if ticket["revision"] % 3 == 1 and not ticket["payload"]:
                given["payload"] = {"wrong": "on purpose"}
            ticket = _answer(wire, "interlock_submit_ticket", {"ticket_json": given})["ticket_json"]
        acknowledged[run_id] = ticket
        (root / "app.py").write_text(SOURCE)
        run_id = f"{run_id.partition('.')[0]}.{int(run_id.partition('.')[2] or 0) + 1}"


def _holds(root: Path, acknowledged: dict[str, dict[str, Any]]) -> None:
    """Check every record against what was acknowledged, as a program that starts after the kill."""
    tickets = Tickets(root)
    for run_id, ticket in acknowledged.items():
        now = ticket_now(tickets, run_id)
        assert now["revision"] in {ticket["revision"], ticket["revision"] + 1}
        assert now["history"][: len(ticket["history"])] == ticket["history"]
        keys = [entry.key for entry in tickets.journal.entries(journal_run(run_id))]
        assert len(set(keys)) == len(keys)
        gates = [key for key in keys if key.endswith("/gate")]
        assert gates == [f"{number}/gate" for number in range(1, now["revision"])]
        kept = [entry.key for entry in tickets.snapshots.entries(journal_run(run_id))]
        assert kept == [str(number) for number in range(1, now["revision"] + 1)]
    made = rebuild(Journal(tickets.journal.path).entries())
    for run_id in acknowledged:
        assert {**tickets.state(run_id), "snapshots": None} == {**made[run_id], "snapshots": None}
    assert not acknowledged or verify_journal(root).problems == ()


def ticket_now(tickets: Tickets, run_id: str) -> dict[str, Any]:
    """Return the ticket once what was cut off is finished: beginning a known run does that and nothing else."""
    answer = tickets.begin("SHOP-7", run_id)
    assert answer["ticket_json"] is not None
    return dict(answer["ticket_json"])


def _campaign(root: Path, kills: int, seed: int) -> None:
    make_project(root)
    chance = random.Random(seed)
    acknowledged: dict[str, dict[str, Any]] = {}
    for number in range(kills):
        with server(root) as wire:
            _answer(wire, "interlock_begin_run", {"ticket_id": "WARM-UP"})
            killer = threading.Timer(chance.uniform(0, MAX_SECONDS), wire.process.kill)
            killer.start()
            unfinished = [run for run, ticket in acknowledged.items() if ticket["required_fields"]]
            with pytest.raises(KilledError):
                _submissions(wire, root, unfinished[0] if unfinished else f"run{number}", acknowledged)
            killer.join()
        _holds(root, acknowledged)
        for run_id in acknowledged:
            acknowledged[run_id] = ticket_now(Tickets(root), run_id)
    assert any(ticket["revision"] > 1 for ticket in acknowledged.values())


@pytest.mark.long
def test_a_server_killed_a_few_times_loses_and_doubles_nothing(tmp_path: Path) -> None:
    _campaign(tmp_path, kills=4, seed=1)


@pytest.mark.campaign
@pytest.mark.timeout(1200)
def test_a_server_killed_fifty_times_loses_and_doubles_nothing(tmp_path: Path) -> None:
    _campaign(tmp_path, kills=50, seed=2)
