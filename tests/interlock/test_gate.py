"""`interlock gate`: work that is done already, judged as a run would judge it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.child import git
from tests.gates.sealed.sealing import write

FILES = {
    "interlock.toml": '[roles.builder]\nkind = "build"\n[agents.builder]\nrunner = "remote"\n'
    '[gates.GATE-TESTS]\ncommand = ["sh", "tests/check.sh"]\n',
    "task.toml": 'task_id = "CALC-1"\ntask = "Fix it"\ngates_required = ["GATE-TESTS"]\nscope = ["src/**"]\n',
    "tests/check.sh": 'test "$(cat src/answer)" = 42\n',
    "src/answer": "41\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a git project whose one test is a shell script, and which fails."""
    root = write(tmp_path / "project", FILES)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "Start")
    return root


def gate(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = warm.interlock(root, "gate", "GATE-TESTS", "--task", "task.toml", "--json", *arguments)
    return done.returncode, json.loads(done.stdout)


def test_work_is_judged_by_the_test_of_the_commit(project: Path) -> None:
    (project / "tests/check.sh").write_text("true\n")
    status, said = gate(project)
    assert (status, said["ok"], said["outside"]) == (1, False, ["tests/check.sh"])
    log = warm.interlock(project, "gate", "GATE-TESTS", "--format", "sarif")
    assert [row["level"] for row in json.loads(log.stdout)["runs"][0]["results"]] == ["error"]
    (project / "src/answer").write_text("42\n")
    status, said = gate(project)
    assert (status, said["ok"], said["schema"]) == (0, True, "interlock.gate/1")


def test_the_start_of_a_run_is_a_base_too_and_what_changed_outside_the_scope_is_named(project: Path) -> None:
    refused = warm.interlock(project, "gate", "GATE-TESTS", "--task", "task.toml", "--base", "start")
    assert (refused.returncode, "name a commit with --base" in refused.stderr) == (2, True)
    assert warm.interlock(project, "run", "task.toml").returncode == 3
    git(project, "rm", "--quiet", "tests/check.sh")
    git(project, "commit", "--quiet", "-m", "No test")
    (project / "src/answer").write_text("42\n")
    status, said = gate(project, "--base", "start")
    assert (status, said["ok"], said["outside"]) == (0, True, ["tests/check.sh"])


def test_a_gate_that_is_not_there_is_answered_with_those_that_are(project: Path) -> None:
    done = warm.interlock(project, "gate", "GATE-TSETS", "--task", "task.toml")
    assert (done.returncode, "GATE-TESTS" in done.stderr) == (2, True)


def test_a_name_under_keep_that_keeps_nothing_is_named(project: Path) -> None:
    (project / ".gitignore").write_text("third_party/\n")
    (project / "third_party").mkdir()
    (project / "third_party/data").write_text("x")
    outside = project.with_name("outside")
    outside.mkdir()
    kept = ["third_party", "third_prty", "tests", "node_modules", f"{outside}", f"{outside}/none"]
    with (project / "interlock.toml").open("a") as file:
        file.write(f"keep = {json.dumps(kept)}\n")
    done = warm.interlock(project, "check", "task.toml", "--json")
    (found,) = (row for row in json.loads(done.stdout)["findings"] if row["code"] == "SEAL411")
    assert (found["level"], found["key"]) == ("warning", "gates.GATE-TESTS.keep")
    assert found["message"].endswith(f": third_prty, tests, {outside}/none.")


def test_settings_that_the_base_has_otherwise_do_not_judge(project: Path) -> None:
    (project / "src/answer").write_text("41\n")
    for name, old, new in (("interlock.toml", '"sh", "tests/check.sh"', '"true"'), ("task.toml", "Fix it", "Fix")):
        text = (project / name).read_text()
        (project / name).write_text(text.replace(old, new))
        done = warm.interlock(project, "gate", "GATE-TESTS", "--task", "task.toml")
        assert (done.returncode, f"{name} not as in the base" in done.stderr) == (2, True), done.stderr
        (project / name).write_text(text)
    (project / "task.toml").write_text((project / "task.toml").read_text().replace("Fix it", "Correct it"))
    assert gate(project, "--as-configured")[0] == 1


def test_without_a_task_the_only_task_file_is_taken_and_several_are_named(project: Path) -> None:
    done = warm.interlock(project / "src", "gate", "GATE-TESTS", "--json")
    assert (done.returncode, json.loads(done.stdout)["task_id"]) == (1, "CALC-1")
    (project / "tasks").mkdir()
    (project / "tasks/next.toml").write_text(FILES["task.toml"])
    several = warm.interlock(project, "gate", "GATE-TESTS")
    assert (several.returncode, "2 here: task.toml, tasks/next.toml" in several.stderr) == (2, True)
    (project / "tasks/next.toml").unlink()
    (project / "task.toml").unlink()
    none = warm.interlock(project, "gate", "GATE-TESTS")
    assert (none.returncode, "there is none here" in none.stderr) == (2, True)
