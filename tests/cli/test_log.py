"""`interlock log` and the list of `interlock status`: what happened when, how it ended, and where it landed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import RunnerError
from interlock.graph import journal_path
from interlock.journal import Journal
from tests.graph.conftest import Project, Scripted, build, make_project
from tests.interlock.test_cli import data, interlock


def ended(root: Path, task: str, days_ago: int, *, status: str = "APPROVED", usd: float | None = 0.25) -> None:
    """Write the lines of a run that ended at noon some days ago, and took a minute."""
    run, end = f"{task}.1", datetime.now().astimezone().replace(hour=12) - timedelta(days=days_ago)
    usage = {"seconds": 40.0, "input_tokens": 900, "output_tokens": 100, "usd": usd}
    envelope = {"fail_reasons": ["GATE-TESTS: it fails"]}
    lines: list[tuple[str, dict[str, Any]]] = [
        ("run_started", {"task": {"task_id": task, "task": f"Do {task}", "gates_required": []}}),
        ("answer", {"role": "builder", "attempt": 1, "outcome": "handover", "usage": usage}),
        ("status", {"to": status, "attempt": 1, "by": "orchestrator", "envelope": envelope}),
    ]
    for number, (kind, values) in enumerate(lines):
        at = end.astimezone(UTC) - timedelta(seconds=60 - 30 * number)
        Journal(journal_path(root), clock=lambda at=at: at).append(run, f"{kind}/1", kind, values)


def test_the_log_has_each_day_with_its_totals_and_what_became_of_each_run(tmp_path: Path) -> None:
    ended(tmp_path, "OLD-1", 5)
    ended(tmp_path, "SHOP-1", 1)
    ended(tmp_path, "SHOP-2", 1, status="BLOCKED", usd=None)
    ended(tmp_path, "SHOP-3", 1)
    landed = {"commit": "c0ffee" * 7, "target": "main"}
    Journal(journal_path(tmp_path)).append("SHOP-3.1/beside", "landed", "landed", landed)
    days = data(interlock(tmp_path, "log", "--json"))["days"]
    assert [[run["run"] for run in day["runs"]] for day in days] == [["SHOP-3.1", "SHOP-2.1", "SHOP-1.1"], ["OLD-1.1"]]
    day = days[0]
    assert day["ends"] == {"APPROVED": 2, "BLOCKED": 1}
    assert (day["landed"], day["seconds"], day["tokens"], day["usd"], day["unpriced"]) == (1, 180, 3000, 0.5, 1)
    assert (day["runs"][0]["landed"], day["runs"][0]["task"]) == (landed, "Do SHOP-3")
    for since, runs in {"today": 0, "yesterday": 3, "2d": 3, day["day"]: 3, days[1]["day"]: 4}.items():
        found = data(interlock(tmp_path, "log", "--since", since, "--json"))["days"]
        assert sum(len(each["runs"]) for each in found) == runs, since
    said = interlock(tmp_path, "log").stdout
    first = next(line for line in said.splitlines() if "SHOP-3.1" in line)
    assert first.split()[1:3] == ["SHOP-3.1", "APPROVED"]
    assert all(word in first for word in ("$0.25", "main c0ffeec0ffee", "Do SHOP-3"))
    assert interlock(tmp_path, "log", "--since", "soon").returncode == 2


def test_the_log_says_that_a_run_stopped_and_status_lists_the_newest_first_with_its_task(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.run()
    project.runners["builder"] = Scripted([build("hi\n")])
    project.run()
    stopped(project)
    (day,) = data(interlock(tmp_path, "log", "--json"))["days"]
    assert {run["run"]: run["end"] for run in day["runs"]} == {
        "HELLO-001.1": "APPROVED",
        "HELLO-001.2": "BLOCKED",
        "HELLO-001.3": "stopped: AGT902",
    }
    lines = interlock(tmp_path, "status").stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["HELLO-001.3", "HELLO-001.2", "HELLO-001.1"]
    assert all(line.endswith("Write the greeting") for line in lines[:3])


def stopped(project: Project) -> None:
    def broken(_ask: object) -> str:
        raise RunnerError("nobody is at home", "Call again.")

    project.use("builder", broken)
    with pytest.raises(RunnerError):
        project.run()
