"""SIGKILL at every point of a ticket's submissions: the same call again goes on, and the end is the same."""

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import Tickets, journal_run, verify_journal
from tests import warm
from tests.graph.ticket.walk import PAYLOADS, make_project

SUBMITTER = Path(__file__).parents[1] / "graph" / "ticket" / "submitter.py"
RUN = "run-1"


def work(root: Path, fatal: int = 0) -> subprocess.CompletedProcess[str]:
    """Work the ticket until a point, or to its end."""
    return warm.script(SUBMITTER, str(root), str(fatal))


def records(root: Path) -> dict[str, Any]:
    """Return what a run left, without times and hashes."""
    tickets = Tickets(root)
    state: dict[str, Any] = dict(tickets.state(RUN))
    for name in ("before", "at", "created_at", "updated_at", "lines", "history", "gate"):
        del state[name]
    copies = root / "artifacts" / "interlock" / "tickets" / RUN
    return {
        "state": state,
        "lines": [(entry.key, entry.type) for entry in tickets.journal.entries(journal_run(RUN))],
        "snapshots": [entry.key for entry in tickets.snapshots.entries(journal_run(RUN))],
        "copies": sorted(path.name for path in copies.iterdir()),
        "problems": verify_journal(root).problems,
        "carried": verify_journal(root).carried,
    }


def kill_at(folder: Path, fatal: int, name: str, expected: dict[str, Any]) -> None:
    """Kill the work at a point, look at what is left, and finish it."""
    root = make_project(folder)
    assert work(root, fatal).returncode == -signal.SIGKILL, (fatal, name)
    left = verify_journal(root)
    assert left.problems == (), (fatal, name)
    assert len(left.carried) <= 1, (fatal, name)
    done = work(root)
    assert done.returncode == 0, (fatal, name, done.stderr)
    assert records(root) == expected, (fatal, name)
    shutil.rmtree(root)


def whole(folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the points of a ticket that nothing killed, and what it left."""
    root = make_project(folder)
    done = work(root)
    assert done.returncode == 0, done.stderr
    left = records(root)
    assert left["copies"] == sorted([f"{name}.json" for name in (*PAYLOADS, "ticket")])
    assert (left["problems"], left["carried"]) == ((), ())
    return json.loads(done.stdout), left


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_ticket_killed_at_each_point_of_a_submission_comes_to_the_same_end(tmp_path: Path) -> None:
    """The points of the first submission that passes, where each kind of effect is among them."""
    points, left = whole(tmp_path / "whole")
    first = next(number for number, name in enumerate(points, 1) if name == "after write_copies")
    start = max(number for number, name in enumerate(points[: first - 1], 1) if name == "after append")
    for number in range(start + 1, first + 3):
        kill_at(tmp_path / str(number), number, points[number - 1], left)


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_a_ticket_killed_at_every_point_comes_to_the_same_end(tmp_path: Path) -> None:
    points, left = whole(tmp_path / "whole")
    assert len(points) >= 80
    for number, name in enumerate(points, 1):
        kill_at(tmp_path / str(number), number, name, left)
