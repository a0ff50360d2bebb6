"""SIGKILL at every point of `interlock resolve`: the same command goes on, and no answer is paid for twice."""

import json
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from interlock.graph.pipeline.played import PlayedRunner
from interlock.graph.pipeline.store import list_ticket_runs
from interlock.graph.pipeline.tickets import Tickets
from interlock.graph.verify import verify_journal
from interlock.reservations.opening import open_reservations
from tests import warm
from tests.campaign.test_kills import spread
from tests.graph.pipeline.test_by_model import drive
from tests.graph.pipeline.walk import PAYLOADS, make_project

RESOLVER = Path(__file__).parent / "resolver.py"
PAID = Counter({stage: 1 + (stage == "act_via_tools") for stage in PAYLOADS if stage != "fetch_ticket"})


def go(folder: Path, fatal: int = 0) -> subprocess.CompletedProcess[str]:
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


def points(folder: Path) -> list[str]:
    """Return the points of a drive that came to its end."""
    done = go(folder)
    assert done.returncode == 0, done.stderr
    assert paid(folder) == PAID
    return json.loads((folder / "points").read_text())


def check(folder: Path, names: list[str], point: int) -> None:
    """Kill a drive at a point, and hold what the next one does against what it may."""
    assert go(made(folder), point).returncode == -signal.SIGKILL, point
    before = paid(folder)
    done = go(folder)
    assert done.returncode == 0, (point, names[point - 1], done.stderr)
    # What the model had said and nobody had kept yet is the one answer that is paid for again.
    asked = names[:point].count("before __call__") - names[:point].count("after write_atomically") * 2
    turn = Counter({stage: PAID[stage] for stage in list(before)[-1:] if asked > 0})
    assert paid(folder) - PAID <= turn, (point, names[point - 1])
    root = folder / "shop"
    assert len(list_ticket_runs(root)) == 1
    assert not verify_journal(root, []).problems
    assert open_reservations(str(root), name="observer").standing()["leases"] == [], point
    again = Tickets(make_project(folder / "again"))
    end = drive(again, PlayedRunner(folder / "recorded.jsonl"))
    assert again.state(end.run_id)["state"] == "complete", (point, names[point - 1])
    assert (folder / "again" / "app.py").read_bytes() == (root / "app.py").read_bytes()
    shutil.rmtree(folder)


@pytest.mark.timeout(300)
def test_a_ticket_killed_at_a_handful_of_points_goes_on_and_no_answer_is_paid_for_twice(tmp_path: Path) -> None:
    names = points(made(tmp_path / "whole"))
    assert len(names) >= 60
    kept = [number for number, name in enumerate(names, 1) if name == "after write_atomically"]
    for point in sorted({*spread(len(names), 4), kept[0], kept[4]}):
        check(tmp_path / f"point-{point}", names, point)


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_a_ticket_killed_at_every_point_goes_on_and_no_answer_is_paid_for_twice(tmp_path: Path) -> None:
    names = points(made(tmp_path / "whole"))
    for point in range(1, len(names) + 1):
        check(tmp_path / f"point-{point}", names, point)
