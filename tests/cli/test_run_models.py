"""`interlock run --model`: who is given the model, what is reported of it while it works, and what it cost."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from interlock.agents import Ask
from interlock.cli.events import EVENTS, SCHEMA
from tests import warm
from tests.campaign.test_kills import greeting_project
from tests.graph.conftest import envelope

USAGE = {"input_tokens": 4000, "output_tokens": 211}


def hand_over() -> str:
    """Return what a builder of the small project answers."""
    return envelope(cast("Ask", SimpleNamespace(role="builder", task_id="HELLO-001")), "READY_FOR_QA")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the small project, in which nobody builds, and a program that calls itself claude and does it at once."""
    root = tmp_path / "project"
    task = greeting_project(root)
    task.write_text(task.read_text().replace('builder = { runner = "python:team:builder" }\n', ""))
    answer = {"type": "result", "result": hand_over(), "usage": USAGE, "total_cost_usd": 0.02, "num_turns": 3}
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >/dev/null\necho hello > src/greeting.txt\ncat {tmp_path}/answer.json\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return root


def interlock(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a project, with its program before all others."""
    path = f"{root.parent / 'bin'}:{os.environ['PATH']}"
    return warm.interlock(root, *arguments, env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120", "PATH": path})


def events(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_role_without_a_runner_is_named_with_the_way_to_give_it_a_model(project: Path) -> None:
    done = interlock(project, "run", "task.toml")
    assert done.returncode == 2
    assert "builder" in done.stderr
    assert "interlock run task.toml --model SPEC" in done.stderr
    (project / "task.toml").write_text((project / "task.toml").read_text() + "builder = { budget = { calls = 9 } }\n")
    assert "--model SPEC" in interlock(project, "run", "task.toml").stderr


def test_the_model_does_what_nobody_did_and_its_cost_is_shown_in_every_place(project: Path) -> None:
    done = interlock(project, "run", "task.toml", "--model", "command:claude")
    assert done.returncode == 0, done.stderr
    (line,) = [row for row in done.stderr.splitlines() if "builder: hands over" in row]
    assert line.endswith(" s, 4,211 tokens, $0.02")
    assert "\x1b" not in done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("usage") and "builder" in line]
    assert "3 calls, 4,000 tokens in, 211 out, " in line
    assert line.endswith(" s, $0.02")
    frozen = json.loads((project / ".interlock/runs/HELLO-001.1/run.json").read_text())
    assert frozen["task"]["agents"]["builder"] == {"runner": "command", "preset": "claude"}
    assert line in interlock(project, "status", "HELLO-001").stdout
    usage = json.loads(interlock(project, "status", "HELLO-001", "--json").stdout)["usage"]
    assert {name: usage["roles"]["builder"][name] for name in ("calls", "usd", "left")} == {
        "calls": 3,
        "usd": 0.02,
        "left": {},
    }
    assert usage["all"]["usd"] is None, "the functions that answered for the other roles reported no price"


def test_each_step_is_a_line_of_json_of_a_shape_that_is_written_down(project: Path) -> None:
    team = project / "team.py"
    spoken = 'def tester(ask: Ask) -> str:\n    print("a stray word")\n    return judge_log(ask)\n'
    team.write_text(team.read_text().replace("tester = judge_log\n", spoken))
    (project / "check.sh").write_text("exit 1\n")
    (project / "interlock.toml").write_text((project / "interlock.toml").read_text() + "[run]\nmax_rework = 0\n")
    done = interlock(project, "run", "task.toml", "--json", "--model", "builder=command:claude")
    assert done.returncode == 1, done.stderr
    rows = events(done)
    assert (rows[0]["kind"], rows[0]["schema"], rows[-1]["kind"]) == ("run", SCHEMA, "summary")
    assert {row["run_id"] for row in rows} == {"HELLO-001.1"}
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    for row in rows[:-1]:
        assert tuple(row) == ("kind", "at", "run_id", *EVENTS[row["kind"]])
    assert {row["kind"] for row in rows} == {
        "run",
        "status",
        "asking",
        "answered",
        "working",
        "collecting",
        "collected",
        "summary",
    }
    (builder,) = [row for row in rows if row["kind"] == "answered" and row["role"] == "builder"]
    assert (builder["outcome"], builder["usage"]["calls"], builder["usage"]["usd"]) == ("handover", 3, 0.02)
    assert builder["seconds"] == builder["usage"]["seconds"] > 0
    assert all(row["usage"] is None for row in rows if row["kind"] == "answered" and row["role"] == "tester")
    assert "a stray word" in done.stderr
    shown = json.loads(interlock(project, "status", "HELLO-001", "--json").stdout)
    assert {**shown, "kind": "summary", "at": rows[-1]["at"]} == rows[-1]


def test_an_error_ends_the_lines_of_a_run_and_resume_writes_lines_too(project: Path) -> None:
    program = project.parent / "bin" / "claude"
    good = program.read_text()
    program.write_text("#!/bin/sh\nexit 3\n")
    rows = events(interlock(project, "run", "task.toml", "--json", "--model", "command:claude"))
    assert rows[0]["kind"] == "run"

    assert rows[-1]["error"]["code"] == "AGT902"
    program.write_text(good)
    done = interlock(project, "resume", "HELLO-001", "--json")
    rows = events(done)
    assert (done.returncode, rows[0]["kind"], rows[-1]["status"]) == (0, "run", "APPROVED")


def test_what_is_left_of_a_budget_is_shown_beside_what_was_spent(project: Path) -> None:
    task = project / "task.toml"
    task.write_text(task.read_text() + "[agents.builder.budget]\ncalls = 20\nusd = 1.0\n[budget]\n")
    task.write_text(task.read_text() + "tokens = 10000\ncalls = 0\nseconds = 0\n")
    done = interlock(project, "run", "task.toml", "--model", "command:claude")
    assert done.returncode == 0, done.stderr
    assert "; left: 17 calls, $0.98" in done.stdout
    assert "; left: 5,789 tokens" in done.stdout
    usage = json.loads(interlock(project, "status", "HELLO-001", "--json").stdout)["usage"]
    assert (usage["roles"]["builder"]["left"], usage["all"]["left"]) == ({"calls": 17, "usd": 0.98}, {"tokens": 5789})


def test_whoever_looks_on_sees_at_what_an_agent_works_and_check_what_it_may_spend(project: Path) -> None:
    """The program reports a tool, looks at its own run as another process would, and goes on."""
    message = {"id": "m", "usage": USAGE, "content": [{"type": "tool_use", "name": "Edit", "input": {"path": "a.py"}}]}
    (project.parent / "first.json").write_text(json.dumps({"type": "assistant", "message": message}) + "\n")
    program = project.parent / "bin" / "claude"
    look = "import sys; from interlock.cli.main import main; main()"
    program.write_text(
        program.read_text().replace(
            "cat >/dev/null\n",
            f"cat >/dev/null\ncat {project.parent}/first.json\n"
            "until grep -q a.py .interlock/runs/*/progress.jsonl; do sleep 0.05; done\n"
            f"{sys.executable} -c '{look}' status > {project.parent}/seen\n"
            f"{sys.executable} -c '{look}' status HELLO-001 --json > {project.parent}/seen.json\n",
        )
    )
    done = interlock(project, "run", "task.toml", "--model", "command:claude")
    assert done.returncode == 0, done.stderr
    assert re.search(r"HELLO-001.1 .* builder 0:\d\d · Edit a.py · 4,211 tokens", (project.parent / "seen").read_text())
    (row,) = json.loads((project.parent / "seen.json").read_text())["at_work"]
    assert (row["role"], row["tool"], row["calls"], row["tokens"], row["usd"]) == (
        "builder",
        "Edit a.py",
        1,
        4211,
        None,
    )
    assert json.loads(interlock(project, "status", "HELLO-001", "--json").stdout)["at_work"] == []
    checked = interlock(project, "check", "task.toml", "--model", "command:claude").stdout
    assert "budget: at most 2 h of agents' time and 200 calls, of [budget] defaults\n" in checked
