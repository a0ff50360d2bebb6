"""SIGKILL at every point of a run: resumed, it ends with the journal of a run that was never killed, times apart."""

import json
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import journal_path, verify_journal
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


def objecting_project(root: Path) -> Path:
    """Make the small project with a builder that objects, and return its task file."""
    task = greeting_project(root)
    task.write_text(task.read_text().replace("python:team:builder", "python:team:objector"))
    return task


def go(root: Path, task: Path, fatal: int, *answers: str) -> subprocess.CompletedProcess[str]:
    """Run the victim, with a person's answers: from the start or from where a killed one left off."""
    return warm.script(REPO / "tests/graph/victim.py", str(root), str(task), str(fatal), *answers, timeout=180)


def story(root: Path) -> list[dict[str, Any]]:
    """Return the lines of the task's runs without their times and the hashes over them.

    Those of the reservations tell of each process that drove the run, so a resumed run has more of them.
    """
    return [
        {"run": entry.run, "seq": entry.seq, "key": entry.key, "type": entry.type, "data": _timeless(entry.data)}
        for entry in Journal(journal_path(root)).entries()
        if entry.run != RESERVATIONS
    ]


def _timeless(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a line says without the digest of a person's answer, which has its time in it, and its key."""
    return {key: value for key, value in data.items() if key not in ("answer_sha256", "key")}


def count_points(root: Path, task: Path, *answers: str) -> list[str]:
    """Run once without a kill and return the points that it passed."""
    done = go(root, task, 0, *answers)
    assert done.returncode == 0, done.stderr
    first, *names = done.stdout.splitlines()
    assert first.endswith("done APPROVED"), first
    return names


def kill_at(base: Path, make: Any, points: list[int], expected: list[dict[str, Any]], *answers: str) -> list[int]:
    """Kill a fresh run at each point, resume it, and return the points whose journal differs."""
    different: list[int] = []
    for point in points:
        root = base / f"point-{point}"
        task = make(root)
        assert go(root, task, point, *answers).returncode == -signal.SIGKILL, point
        resumed = go(root, task, 0, *answers)
        assert resumed.returncode == 0, (point, resumed.stderr)
        assert "done APPROVED" in resumed.stdout
        assert open_reservations(str(root), name="observer").current_state()["leases"] == [], point
        assert verify_journal(root).verdict == "whole", (point, verify_journal(root).problems)
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


ANSWERS = pytest.mark.parametrize("answers", [("accept", "waive"), ("refuse",), ("correct",)], ids="-".join)


@pytest.mark.timeout(600)
@pytest.mark.long
@pytest.mark.alternate
@ANSWERS
def test_a_run_killed_around_the_answer_of_a_person_resumes_to_the_same_journal(
    tmp_path: Path, answers: tuple[str, ...]
) -> None:
    root = tmp_path / "whole"
    names = count_points(root, objecting_project(root), *answers)
    first = names.index("before answer_question") - 2
    last = len(names) - names[::-1].index("after answer_question") + 12
    points = [first + at for at in spread(last - first, 6)]
    assert kill_at(tmp_path, objecting_project, points, story(root), *answers) == []


@pytest.mark.campaign
@pytest.mark.timeout(3000)
@ANSWERS
def test_a_run_with_an_objection_killed_at_every_point_resumes_to_the_same_journal(
    tmp_path: Path, answers: tuple[str, ...]
) -> None:
    root = tmp_path / "whole"
    names = count_points(root, objecting_project(root), *answers)
    assert kill_at(tmp_path, objecting_project, list(range(1, len(names) + 1)), story(root), *answers) == []


@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_a_run_killed_at_every_point_resumes_to_the_same_journal(tmp_path: Path) -> None:
    root = tmp_path / "whole"
    names = count_points(root, greeting_project(root))
    print(f"{len(names)} points: {', '.join(sorted(set(names)))}")
    assert kill_at(tmp_path, greeting_project, list(range(1, len(names) + 1)), story(root)) == []
