"""SIGKILL at every point of `interlock resolve`: the same command goes on, and no answer is paid for twice."""

import json
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from interlock.graph import ReplayRunner, Tickets, list_runs, verify_journal
from interlock.reservations import open_reservations
from tests import warm
from tests.graph.ticket.test_by_model import drive
from tests.graph.ticket.walk import PAYLOADS, make_project

RESOLVER = Path(__file__).parents[1] / "graph" / "resolver.py"
PAID = Counter({stage: 1 + (stage == "act_via_tools") for stage in PAYLOADS if stage != "fetch_ticket"})


def go(folder: Path, fatal: int | str = 0) -> subprocess.CompletedProcess[str]:
    """Work the ticket of a folder until a point, or to its end."""
    return warm.script(RESOLVER, str(folder), str(fatal))


def made(folder: Path) -> Path:
    """Make a project and its ticket, and return their folder."""
    make_project(folder / "shop")
    fetched = PAYLOADS["fetch_ticket"]
    text = f"---\nsource: jira\n---\n# SHOP-7: {fetched['title']}\n\n{fetched['description']}\n"
    (folder / "SHOP-7.md").write_text(text)
    return folder


def paid(folder: Path) -> Counter[str]:
    """Return how often the model was called for each stage."""
    path = folder / "paid"
    return Counter(path.read_text().split()) if path.exists() else Counter()


def finish(folder: Path, more: Counter[str], where: str) -> None:
    """Take a ticket to its end, and hold what was paid, what is left and what was recorded against what may be.

    Args:
        folder: The project and its ticket.
        more: The calls that are paid for again.
        where: Where it was killed, for messages.
    """
    done = go(folder)
    assert done.returncode == 0, (where, done.stderr)
    assert paid(folder) == PAID + more, where
    root = folder / "shop"
    assert len(list_runs(root, "tickets")) == 1
    assert not verify_journal(root, []).problems
    assert open_reservations(str(root), name="observer").current_state()["leases"] == [], where
    again = Tickets(make_project(folder / "again"))
    end = drive(again, ReplayRunner(folder / "recorded.jsonl"))
    assert again.state(end.run_id)["state"] == "complete", where
    assert (folder / "again" / "app.py").read_bytes() == (root / "app.py").read_bytes()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_ticket_that_is_killed_again_and_again_goes_on_and_no_answer_is_paid_for_twice(tmp_path: Path) -> None:
    kills = ("after write_atomically", "after write_confined", "before release_all")
    made(tmp_path)
    for point in kills:
        assert go(tmp_path, point).returncode == -signal.SIGKILL, point
    # The call before the edit was part of a turn that was cut off.
    finish(tmp_path, Counter({"act_via_tools": 1}), " and ".join(kills))


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_a_ticket_killed_at_every_point_goes_on_and_no_answer_is_paid_for_twice(tmp_path: Path) -> None:
    whole = made(tmp_path / "whole")
    finish(whole, Counter(), "nowhere")
    names = json.loads((whole / "points").read_text())
    assert len(names) >= 60
    for point, name in enumerate(names, 1):
        folder = made(tmp_path / f"point-{point}")
        assert go(folder, point).returncode == -signal.SIGKILL, point
        # Only what was said in a turn that was cut off, so that nobody kept it, is paid for again.
        before, kept = paid(folder), names[:point].count("after write_atomically")
        finish(folder, Counter({stage: before[stage] for stage in list(PAID)[kept:][:1]}), f"{point}: {name}")
        shutil.rmtree(folder)
