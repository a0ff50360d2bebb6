"""`interlock check`, `abandon`, `prune` and the end of `resume`, as a user of a plain project meets them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from interlock.graph import PLACEHOLDER, Tickets, load_task, preflight, prepare
from tests import warm
from tests.child import git

TASK = """
task_id = "CALC-1"
task = "Fix it"
gates_required = ["GATE-MSG-STRICT", "GATE-TESTS"]
scope = ["src/**"]
"""
GOOD = """
[roles.builder]
kind = "build"
[agents.builder]
runner = "remote"
[gates.GATE-TESTS]
command = ["sh", "-c", "true"]
"""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "calc.py").write_text("x = 1\n")
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "interlock.toml").write_text(GOOD)
    return tmp_path


def interlock(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.interlock(root, *arguments)


def faults(root: Path) -> list[tuple[str, str]]:
    found = preflight(prepare(root, load_task(root / "task.toml")))
    assert all(item.fix.endswith((".", "!")) for item in found)
    return [(item.level, item.code) for item in found]


FAULTS: dict[str, tuple[tuple[str, str], list[tuple[str, str]]]] = {
    "nobody": (("runner = ", "budget = { calls = 2 } # "), [("error", "RUN620")]),
    "no program": (('"sh", "-c"', '"no-such-program", "-c"'), [("error", "RUN621")]),
    "no program for agents": (("[gates", '[commands]\nx = ["no-such-program"]\n[gates'), [("warning", "RUN621")]),
    "table of nobody": (("[gates", '[agents.bilder]\nrunner = "remote"\n[gates'), [("error", "RUN625")]),
    "judge left out": (("[gates", '[agents.visual-qa]\nrunner = "remote"\n[gates'), [("warning", "RUN625")]),
}


@pytest.mark.parametrize(("change", "expected"), FAULTS.values(), ids=FAULTS.keys())
def test_each_fault_of_the_configuration_is_known_before_a_run(
    plain: Path, change: tuple[str, str], expected: list[tuple[str, str]]
) -> None:
    assert change[0] in GOOD
    (plain / "interlock.toml").write_text(GOOD.replace(*change))
    assert faults(plain) == expected


@pytest.mark.long
def test_a_task_whose_text_is_that_of_the_template_does_not_start(plain: Path) -> None:
    (plain / "task.toml").write_text(TASK.replace("Fix it", f"{PLACEHOLDER}."))
    assert faults(plain) == [("error", "RUN601")]
    done = interlock(plain, "run", "task.toml")
    assert (done.returncode, (plain / "artifacts").exists()) == (2, False)
    assert f'task: the line `task = "{PLACEHOLDER}."`' in done.stderr


SCOPES: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "files": (["src/**"], []),
    "nothing and no folder": (["lib/**"], [("error", "RUN623")]),
    "an empty folder": (["empty/**"], [("warning", "RUN623")]),
    "a new file": (["new.py"], [("warning", "RUN623")]),
    "beside files": (["src/**", "lib/**"], [("warning", "RUN623")]),
    "the name of a folder alone": (["src"], [("error", "RUN623")]),
}


@pytest.mark.parametrize(("scope", "expected"), SCOPES.values(), ids=SCOPES.keys())
def test_a_scope_that_matches_nothing_is_an_error_where_its_folders_are_missing_too(
    plain: Path, scope: list[str], expected: list[tuple[str, str]]
) -> None:
    (plain / "empty").mkdir()
    (plain / "task.toml").write_text(TASK.replace('["src/**"]', json.dumps(scope)))
    assert faults(plain) == expected
    fixes = [item.fix for item in preflight(prepare(plain, load_task(plain / "task.toml")))]
    assert ["create their folder" in fix for fix in fixes] == [level == "error" for level, _ in expected]


def test_findings_are_printed_for_services_and_one_form_alone_is_asked_for(plain: Path) -> None:
    (plain / "interlock.toml").write_text(GOOD.replace("runner", "#"))
    note = interlock(plain, "check", "task.toml", "--format", "github").stdout
    assert note.startswith("::error file=task.toml,line=1,title=RUN620 agents.builder::")
    (run,) = json.loads(interlock(plain, "check", "task.toml", "--format", "sarif").stdout)["runs"]
    assert (
        [row["ruleId"] for row in run["results"]] == ["RUN620"] == [row["id"] for row in run["tool"]["driver"]["rules"]]
    )
    assert interlock(plain, "check", "task.toml", "--json", "--format", "sarif").returncode == 2
    assert "::warning title=" in interlock(plain, "doctor", "--format", "github").stdout


@pytest.mark.long
def test_check_exits_2_with_every_fault_and_starts_nothing(plain: Path) -> None:
    assert interlock(plain, "check", "task.toml").returncode == 0
    (plain / "interlock.toml").write_text(GOOD.replace('"sh", "-c"', '"no-such-program", "-c"').replace("runner", "#"))
    done = interlock(plain, "check", "task.toml", "--json")
    assert done.returncode == 2
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["ok"]) == ("interlock.check/1", False)
    assert [row["code"] for row in answer["findings"]] == ["RUN620", "RUN621"], "the missing runner comes first"
    assert [row["key"] for row in answer["findings"]] == ["agents.builder", "gates.GATE-TESTS.command"]
    assert interlock(plain, "run", "task.toml").returncode == 2
    assert not (plain / ".interlock").exists()
    assert not (plain / "artifacts").exists()


def test_a_run_is_abandoned_shown_so_refused_and_pruned(plain: Path) -> None:
    assert interlock(plain, "run", "task.toml").returncode == 3
    assert interlock(plain, "prune", "--yes").returncode == 0
    assert (plain / ".interlock/runs/CALC-1.1").exists(), "an open run stays"
    assert interlock(plain, "abandon", "CALC-1").returncode == 0
    assert interlock(plain, "abandon", "CALC-1").returncode == 0
    assert "abandoned" in interlock(plain, "status").stdout
    assert "RUN630" in interlock(plain, "resume", "CALC-1").stderr
    assert interlock(plain, "prune").returncode == 2
    listed = interlock(plain, "prune", "--dry-run")
    assert (listed.returncode, listed.stdout.split()[:2]) == (0, ["CALC-1.1", "abandoned"])
    assert (plain / ".interlock/runs/CALC-1.1").exists()
    assert interlock(plain, "prune", "--yes").returncode == 0
    assert not (plain / ".interlock/runs/CALC-1.1").exists()
    assert interlock(plain, "verify").returncode == 0
    assert "restore .interlock" not in interlock(plain, "status").stderr


@pytest.mark.long
def test_of_a_task_the_newest_open_run_is_abandoned(plain: Path) -> None:
    config = plain / "interlock.toml"
    config.write_text(config.read_text() + "\n[run]\nreserve = false\n")
    for _ in range(2):
        assert interlock(plain, "run", "task.toml").returncode == 3
    assert interlock(plain, "abandon", "CALC-1.2").stdout == "CALC-1.2 is abandoned\n"
    assert interlock(plain, "abandon", "CALC-1").stdout == "CALC-1.1 is abandoned\n"
    assert interlock(plain, "abandon", "CALC-1").stdout == "CALC-1.2 had ended before\n"


def test_of_a_ticket_the_newest_open_run_is_abandoned(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").touch()
    for run_id in ("a", "b", "T-1"):
        Tickets(tmp_path).begin("T-1", run_id)
    assert interlock(tmp_path, "abandon", "T-1").stdout == "T-1 is abandoned\n", "the run of that id"
    assert interlock(tmp_path, "abandon", "T-1").stdout == "T-1 had ended before\n"
    assert "ended       abandoned\n" in interlock(tmp_path, "status", "T-1").stdout
    assert "why: The run was abandoned in fetch_ticket.\n" in interlock(tmp_path, "explain", "T-1").stdout
    Tickets(tmp_path).begin("T-2", "c")
    Tickets(tmp_path).begin("T-2", "d")
    for name in ("d", "c"):
        assert interlock(tmp_path, "abandon", "T-2").stdout == f"{name} is abandoned\n"
    assert interlock(tmp_path, "abandon", "T-2").stdout == "d had ended before\n"


def test_a_command_of_the_root_is_found_from_a_folder_below_it(plain: Path) -> None:
    (plain / "check.sh").write_text("#!/bin/sh\n")
    (plain / "check.sh").chmod(0o755)
    (plain / "interlock.toml").write_text(GOOD.replace('"sh", "-c", "true"', '"./check.sh"'))
    assert interlock(plain, "run", "task.toml").returncode == 3
    assert "is not found" not in interlock(plain / "src", "explain", "CALC-1").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_checkout_that_git_refuses_for_its_owner_is_no_checkout_without_commits(plain: Path) -> None:
    git(plain, "init", "-q")
    git(plain, "add", "-A")
    git(plain, "commit", "-qm", "Start")
    os.chown(plain / ".git", 1234, 1234)
    os.chown(plain, 1234, 1234)
    for words in (("check", "task.toml"), ("gate", "GATE-TESTS"), ("ci", "--base", "HEAD")):
        done = interlock(plain, *words)
        said = done.stdout + done.stderr
        assert done.returncode != 0
        assert "dubious ownership" in said, said
        assert "chown" in said
