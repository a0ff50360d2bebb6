"""A build agent that works on and changes nothing is named, once; and what agents do is shown to who looks on."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Ask, RunnerError
from interlock.graph import agent_text, agents_at_work, run_summary, view_run
from interlock.graph.task.runs import drive
from tests.graph.conftest import Project, build

WAIT_SECONDS = 20


def test_an_agent_that_changes_nothing_for_long_is_named_once_and_not_stopped(project: Project) -> None:
    project.configure("[run]\nquiet_minutes = 0.03\n")
    steps: list[Mapping[str, Any]] = []
    shown: list[str] = []

    def quiet() -> list[Mapping[str, Any]]:
        return [step for step in steps if step["kind"] == "quiet"]

    def runner(ask: Ask) -> str:
        ask.notice(
            {"kind": "working", "role": "builder", "tool": "Bash sleep", "calls": 2, "tokens": 12345, "usd": 0.04}
        )
        # As long as it changes files it is not quiet.
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            (Path(ask.root) / "src" / "greeting.txt").write_text(f"{time.monotonic()}\n")
            time.sleep(0.05)
        assert not quiet()
        end = time.monotonic() + WAIT_SECONDS
        while not quiet() and time.monotonic() < end:
            time.sleep(0.05)
        shown.extend(map(agent_text, agents_at_work(project.root, ask.run_id)))
        return build()(ask)

    project.use("builder", runner)
    run_id = project.start()
    view = drive(run_id, root=project.root, runners=project.runners, notice=steps.append)
    assert view.status == "APPROVED"
    assert quiet() == [{"kind": "quiet", "role": "builder", "minutes": 0.03}]
    (line,) = shown
    name, tool, tokens, usd, note = line.split(" · ")
    assert (name[:10], tool, tokens, usd) == ("builder 0:", "Bash sleep", "12,345 tokens", "$0.04")
    assert note.startswith("no file had changed for 0.03 min, 0:0")


def test_nobody_is_at_work_in_a_run_whose_agent_failed(project: Project) -> None:
    def runner(ask: Ask) -> str:
        raise RunnerError("it ended with status 1", "Look at its output.")

    project.use("builder", runner)
    run_id = project.start()
    with pytest.raises(RunnerError):
        drive(run_id, root=project.root, runners=project.runners)
    summary = run_summary(view_run(run_id, root=project.root), project.root)
    assert (summary["driven"], summary["at_work"]) == (False, [])
