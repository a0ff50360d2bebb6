"""SIGKILL at every point of a run: resumed, it ends with the journal of a run that was never killed, times apart."""

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import journal_path
from interlock.journal import Journal
from interlock.reservations import JOURNAL_RUN as RESERVATIONS
from interlock.reservations import open_reservations
from tests import warm
from tests.graph.conftest import CONFIG

HERE = Path(__file__).parent
REPO = HERE.parent.parent
EXAMPLE = REPO / "examples" / "landing-page"

TASK = """
task_id = "HELLO-001"
task = "Write the greeting"
gates_required = ["GATE-MSG-STRICT", "GATE-TESTS", "GATE-LINT", "GATE-REVIEW"]
scope = ["src/**"]
[agents]
builder = { runner = "python:team:builder" }
tester = { runner = "python:team:tester" }
reviewer = { runner = "python:team:reviewer" }
"""


def greeting_project(root: Path) -> Path:
    """Make the small project and return its task file."""
    (root / "src").mkdir(parents=True)
    (root / "interlock.toml").write_text(CONFIG, encoding="utf-8")
    (root / "check.sh").write_text("grep -qx hello src/greeting.txt\n", encoding="utf-8")
    (root / "lint.sh").write_text("! grep -q '\t' src/greeting.txt\n", encoding="utf-8")
    shutil.copy(HERE / "team.py", root / "team.py")
    (root / "task.toml").write_text(TASK, encoding="utf-8")
    return root / "task.toml"


def page_project(root: Path) -> Path:
    """Copy the landing page example and return its task file."""
    shutil.copytree(EXAMPLE, root)
    return root / "task.toml"


def go(root: Path, task: Path, fatal: int) -> subprocess.CompletedProcess[str]:
    """Run the victim: from the start or from where a killed one left off."""
    return warm.script(REPO / "tests/graph/victim.py", str(root), str(task), str(fatal), timeout=180)


def story(root: Path) -> list[dict[str, Any]]:
    """Return the lines of the task's runs without their times and the hashes over them.

    Those of the reservations tell of each process that drove the run, so a resumed run has more of them.
    """
    return [
        {"run": entry.run, "seq": entry.seq, "key": entry.key, "type": entry.type, "data": entry.data}
        for entry in Journal(journal_path(root)).entries()
        if entry.run != RESERVATIONS
    ]


def count_points(root: Path, task: Path) -> list[str]:
    """Run once without a kill and return the points that it passed."""
    done = go(root, task, 0)
    assert done.returncode == 0, done.stderr
    first, *names = done.stdout.splitlines()
    assert first.endswith("done APPROVED"), first
    return names


def kill_at(base: Path, make: Any, points: list[int], expected: list[dict[str, Any]]) -> list[int]:
    """Kill a fresh run at each point, resume it, and return the points whose journal differs."""
    different: list[int] = []
    for point in points:
        root = base / f"point-{point}"
        task = make(root)
        assert go(root, task, point).returncode == -signal.SIGKILL, point
        resumed = go(root, task, 0)
        assert resumed.returncode == 0, (point, resumed.stderr)
        assert "done APPROVED" in resumed.stdout
        assert open_reservations(str(root), name="observer").standing()["leases"] == [], point
        if story(root) != expected:
            different.append(point)
            (base / f"differs-{point}.json").write_text(json.dumps([story(root), expected], indent=1))
        else:
            shutil.rmtree(root)
    return different


def spread(total: int, count: int) -> list[int]:
    """Return `count` points from the first to the last, evenly."""
    return sorted({1 + round(index * (total - 1) / (count - 1)) for index in range(count)})


@pytest.mark.timeout(300)
@pytest.mark.long
@pytest.mark.parametrize("count", [3, 7])
def test_a_run_killed_at_a_handful_of_points_resumes_to_the_same_journal(tmp_path: Path, count: int) -> None:
    root = tmp_path / "whole"
    names = count_points(root, greeting_project(root))
    assert len(names) >= 40
    assert kill_at(tmp_path, greeting_project, spread(len(names), count), story(root)) == []


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_a_run_killed_at_every_point_resumes_to_the_same_journal(tmp_path: Path) -> None:
    root = tmp_path / "whole"
    names = count_points(root, greeting_project(root))
    print(f"{len(names)} points: {', '.join(sorted(set(names)))}")
    assert kill_at(tmp_path, greeting_project, list(range(1, len(names) + 1)), story(root)) == []


@pytest.mark.campaign
@pytest.mark.browser
@pytest.mark.timeout(3000)
def test_a_run_on_a_real_page_killed_at_forty_points_resumes_to_the_same_journal(tmp_path: Path) -> None:
    root = tmp_path / "whole"
    names = count_points(root, page_project(root))
    assert kill_at(tmp_path, page_project, spread(len(names), 40), story(root)) == []
