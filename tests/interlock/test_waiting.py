"""What a person needs who answers for a role, and what damage and a full disk look like."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main
from interlock.gates.config import load_config
from interlock.graph import RunStore, make_policy, task_from_mapping
from tests.campaign.test_kills import greeting_project
from tests.interlock.test_cli import data, interlock
from tests.refusals import raises_with


def test_ask_prints_what_the_run_waits_for_and_of_whom_and_why_the_last_answer_was_refused(waiting: Path) -> None:
    request = data(interlock(waiting, "status", "HELLO-001", "--json"))["waiting"][0]["request"]
    assert interlock(waiting, "ask", "HELLO-001").stdout == request["prompt"] + "\n"
    assert interlock(waiting, "ask", "HELLO-001.1", "reviewer", "--system").stdout == request["system"] + "\n"
    assert data(interlock(waiting, "ask", "HELLO-001", "--json")) == request
    refused = interlock(waiting, "resume", "HELLO-001", "--answer", "reviewer=-", stdin="no envelope")
    assert refused.returncode == 3
    assert "Move line 1 under OUTPUT" in refused.stderr, "its fix too"
    assert "ENV223" in interlock(waiting, "ask", "HELLO-001").stdout

    done = interlock(waiting, "ask", "HELLO-001", "tester", "--json")
    assert done.returncode == 2
    assert data(done)["error"]["code"] == "RUN605"
    assert "waits not for tester, but for reviewer" in data(done)["error"]["message"]


def test_ask_of_a_run_that_waits_for_nobody_points_to_explain(tmp_path: Path) -> None:
    root = tmp_path / "project"
    greeting_project(root)
    assert interlock(root, "run", "task.toml").returncode == 0
    done = interlock(root, "ask", "HELLO-001")
    assert (done.returncode, done.stdout) == (2, "")
    assert "interlock explain HELLO-001.1" in done.stderr


@pytest.mark.long
def test_resume_says_that_a_run_keeps_the_configuration_it_began_with(waiting: Path) -> None:
    assert "warning" not in interlock(waiting, "resume", "HELLO-001").stderr
    config = waiting / "interlock.toml"
    for text in (config.read_text() + "\n[run]\nmax_rework = 7\n", "no toml"):
        config.write_text(text)
        done = interlock(waiting, "resume", "HELLO-001")
        assert done.returncode == 3
        assert all(word in done.stderr for word in ("warning: run HELLO-001.1 keeps", "run.json", "interlock run"))


@pytest.mark.long
def test_a_run_that_an_agent_stopped_says_so_until_it_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "project"
    greeting_project(root)
    team = (root / "team.py").read_text()
    (root / "team.py").write_text(
        team.replace('return "I am done, all gates passed."', "raise RuntimeError('no line')")
    )
    assert "AGT902" in interlock(root, "run", "task.toml").stderr
    assert "stopped: AGT902" in interlock(root, "status").stdout
    assert "AGT902" in interlock(root, "status", "HELLO-001").stdout
    explained = data(interlock(root, "explain", "HELLO-001", "--json"))
    assert (explained["stopped"]["code"], explained["stopped"]["fix"]) == ("AGT902", explained["next"][0])
    assert "AGT902" in interlock(root, "explain", "HELLO-001").stdout
    (root / "team.py").write_text(team)
    assert interlock(root, "resume", "HELLO-001").returncode == 0
    assert data(interlock(root, "explain", "HELLO-001", "--json"))["stopped"] is None
    assert "AGT902" not in interlock(root, "status").stdout


@pytest.mark.long
def test_a_command_for_another_folder_names_the_root(waiting: Path, tmp_path: Path) -> None:
    done = interlock(tmp_path, "status", "HELLO-001", "--root", "project")
    assert f"interlock ask HELLO-001.1 reviewer --root {waiting}\n" in done.stdout
    assert " --root " not in interlock(waiting / "src", "status", "HELLO-001").stdout


@pytest.mark.parametrize(
    "arguments",
    [("run",), ("run", "no-such.toml"), ("rum",), ("status", "--bogus"), ("resume", "X", "--answer", "x")],
    ids=" ".join,
)
def test_wrong_usage_with_json_is_one_object(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = interlock(tmp_path, *arguments, "--json")
    assert (done.returncode, done.stderr) == (2, "")
    assert data(done)["schema"] == "interlock.error/1"
    assert data(done)["error"]["code"] == "USAGE"
    assert "--help" in data(done)["error"]["fix"]


@pytest.mark.long
def test_a_full_disk_is_said_with_a_fix_and_an_exit_code_of_its_own(waiting: Path) -> None:
    with Path("/dev/full").open("w") as full:
        for arguments in (["status"], ["status", "--json"], ["graph"]):
            done = subprocess.run(
                [sys.executable, "-m", "interlock", *arguments],
                cwd=waiting,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 74, done.stderr
            assert "Traceback" not in done.stderr


@pytest.mark.parametrize("fails", ["write", "open"])
def test_a_journal_that_the_system_does_not_let_grow_has_the_exit_code_of_the_system(
    tmp_path: Path, fails: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = RunStore(tmp_path, "HELLO-001.1")
    task = task_from_mapping({"task_id": "HELLO-001", "task": "Do.", "gates_required": ["GATE-X"], "scope": ["*"]})
    store.create(task, make_policy(task, load_config(tmp_path), tmp_path))
    real = {"write": os.write, "open": os.open}[fails]

    def full(target: Any, *more: Any, **options: Any) -> int:
        is_journal = str(target).endswith("events.jsonl")
        if fails == "write":
            journals = tmp_path.rglob("events.jsonl")
            is_journal = any(os.path.samestat(os.fstat(target), each.stat()) for each in journals)
        if is_journal:
            raise OSError(errno.ENOSPC if fails == "write" else errno.EACCES, "No")
        return real(target, *more, **options)

    monkeypatch.setattr(os, fails, full)
    with raises_with(SystemExit, code=74):
        main(["abandon", "HELLO-001.1", "--root", str(tmp_path)])
    assert "fix:" in capsys.readouterr().err


def test_unusable_checkpoints_are_said_with_a_fix(waiting: Path) -> None:
    (waiting / ".interlock/runs/HELLO-001.1/checkpoints.sqlite").write_text("no database" * 100)
    done = interlock(waiting, "resume", "HELLO-001", "--json")
    assert done.returncode in (1, 74)
    assert json.loads(done.stdout.splitlines()[-1])["error"]["fix"]
    assert "Traceback" not in done.stderr
