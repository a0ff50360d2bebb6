"""`interlock restore` and `trust`: what an agent left is shown and brought back, and what a refusal says works."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.graph import start_run
from tests import warm
from tests.child import git
from tests.gates.sealed.sealing import project as calc
from tests.graph.conftest import Project
from tests.graph.sealed_project import FILES, RIGHT, WEAK, sealed_project, text_of, working, write

RUN = "HELLO-001.1"
TASK = (
    'task_id = "HELLO-001"\ntask = "Greet"\ngates_required = ["GATE-MSG-STRICT", "GATE-TESTS"]\n'
    'scope = ["src/**", "tests/**", "Makefile"]\n[agents.builder]\nrunner = "remote"\n'
)


def interlock(root: Path, *words: str) -> str:
    """Run a command to a good end, and return what it printed."""
    done = warm.interlock(root, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Return a project whose run is APPROVED and had a weakened test and a planted file put back."""
    made = sealed_project(tmp_path)
    planted = {"tests/check.sh": WEAK, "tests/more.sh": None, "tests/sitecustomize.py": "x = 1\n"}
    made.runners = {"builder": working({**RIGHT, **planted})}
    assert made.run().status == "APPROVED"
    return made


def test_what_the_agent_did_is_shown_and_nothing_is_written(shop: Project) -> None:
    shown = interlock(shop.root, "restore", "HELLO-001", "--show")
    assert "--- tests/check.sh (as in the base)\n+++ tests/check.sh (as the agent left it)\n" in shown
    assert "-grep -qx hello src/greeting.txt\n+true\n" in shown
    assert "+x = 1\n" in shown
    said = json.loads(interlock(shop.root, "restore", RUN, "--show", "--json"))
    assert said["files"] == ["tests/check.sh", "tests/more.sh", "tests/sitecustomize.py"]
    assert [text_of(shop.root, name) for name in said["files"]] == [
        FILES["tests/check.sh"],
        FILES["tests/more.sh"],
        None,
    ]


def test_the_status_of_a_run_names_what_was_put_back(shop: Project) -> None:
    names = ["tests/check.sh", "tests/more.sh", "tests/sitecustomize.py"]
    assert json.loads(interlock(shop.root, "status", RUN, "--json"))["put_back"] == names
    (line,) = (line for line in interlock(shop.root, "status", RUN).splitlines() if line.startswith("put back "))
    assert ", ".join(names) in line
    (shows,) = re.findall(r"interlock (restore [^)]*)", line)
    assert "tests/check.sh (as the agent left it)" in interlock(shop.root, *shows.split())


def test_either_version_comes_back_and_each_restore_can_be_undone(shop: Project) -> None:
    write(shop.root, {"tests/more.sh": "of a person\n"})
    printed = interlock(shop.root, "restore", RUN, "--as-left")
    assert [line for line in printed.splitlines() if line.startswith(("restored", "removed"))] == [
        "restored tests/check.sh",
        "removed tests/more.sh",
        "restored tests/sitecustomize.py",
    ]
    names = ("tests/check.sh", "tests/more.sh", "tests/sitecustomize.py")
    assert [text_of(shop.root, name) for name in names] == [WEAK, None, "x = 1\n"]
    (undo,) = re.findall(r"interlock (restore .*--tree \w+)", printed)
    interlock(shop.root, *undo.split())
    assert [text_of(shop.root, name) for name in names] == [FILES["tests/check.sh"], "of a person\n", None]
    said = json.loads(interlock(shop.root, "restore", RUN, "tests/more.sh", "--json"))
    assert said["restored"] == ["tests/more.sh"]
    assert text_of(shop.root, "tests/more.sh") == FILES["tests/more.sh"]
    assert "nothing differs" in interlock(shop.root, "restore", RUN)


def test_a_file_that_git_ignores_is_in_no_tree_and_so_never_removed(shop: Project) -> None:
    write(shop.root, {".gitignore": "*.local\n", "my notes.txt": "a\n", "keys.local": "secret\n"})
    refused = warm.interlock(shop.root, "restore", RUN, "my notes.txt", "keys.local", ".git/config")
    assert (refused.returncode, "keys.local, .git/config is in no tree" in refused.stderr) == (2, True)
    printed = interlock(shop.root, "restore", RUN, "my notes.txt")
    (undo,) = re.findall(r"interlock (restore .*--tree \w+)", printed)
    interlock(shop.root, *shlex.split(undo))
    assert [text_of(shop.root, name) for name in ("my notes.txt", "keys.local")] == ["a\n", "secret\n"]


def test_a_run_that_is_not_there_or_had_nothing_put_back_is_named(shop: Project) -> None:
    assert warm.interlock(shop.root, "restore", "NONE-1").returncode == 2
    shop.runners = {"builder": working({"src/greeting.txt": "hello\n\n"})}
    shop.run()
    done = warm.interlock(shop.root, "restore", "HELLO-001.2", "--as-left")
    assert (done.returncode, "nothing was put back" in done.stderr) == (2, True)


LEFT = {"tests/check.sh": WEAK, "tests/more.sh": None, "tests/new.sh": "true\n", "src/greeting.txt": "half\n"}


@pytest.fixture
def left(tmp_path: Path) -> Project:
    """Return a project in which a run was cut off after its agent had weakened, removed and planted tests."""
    made = sealed_project(tmp_path)
    write(made.root, {"task.toml": TASK})
    start_run(made.root, made.task, roles=("builder",))
    write(made.root, LEFT)
    return made


def test_what_a_refused_start_says_to_do_ends_well_and_loses_nothing(left: Project) -> None:
    for words in (("check", "task.toml", "--json"), ("run", "task.toml")):
        refused = warm.interlock(left.root, *words)
        assert (refused.returncode, "SEAL407" in refused.stdout + refused.stderr) == (2, True)
    commands = re.findall(r"`(interlock restore [^`]+)`", refused.stderr)
    assert [command.endswith(" --show") for command in commands] == [True, False]
    printed = ""
    for command in commands:
        printed = interlock(left.root, *shlex.split(command)[1:])
    assert [text_of(left.root, name) for name in LEFT] == [
        FILES["tests/check.sh"],
        FILES["tests/more.sh"],
        None,
        "half\n",
    ]
    assert warm.interlock(left.root, "run", "task.toml").returncode == 3
    (undo,) = re.findall(r"interlock (restore .*--tree \w+)", printed)
    interlock(left.root, *undo.split())
    assert [text_of(left.root, name) for name in LEFT] == [*LEFT.values()]


def test_what_an_approved_run_planted_outside_its_scope_is_no_base_of_the_next(tmp_path: Path) -> None:
    made = sealed_project(tmp_path)
    narrow = TASK.replace('"src/**", "tests/**", "Makefile"', '"src/**"')
    write(made.root, {"task.toml": narrow})
    made.task = replace(made.task, scope=("src/**",))
    made.runners = {"builder": working({**RIGHT, "tests/new.sh": "true\n"})}
    assert made.run().status == "APPROVED"
    for name in ("HELLO-001", "HELLO-002"):  # the base is that of every task
        write(made.root, {"task.toml": narrow.replace("HELLO-001", name)})
        refused = warm.interlock(made.root, "run", "task.toml")
        assert (refused.returncode, f"were changed in {RUN}, where no gate judged them" in refused.stderr) == (2, True)
        assert warm.interlock(made.root, "check", "task.toml").returncode == 2
    _, command = re.findall(r"`(interlock restore [^`]+)`", refused.stderr)
    interlock(made.root, *shlex.split(command)[1:])
    assert text_of(made.root, "tests/new.sh") is None
    assert warm.interlock(made.root, "run", "task.toml").returncode == 3


def test_what_is_committed_is_right(left: Project) -> None:
    git(left.root, "add", "-A")
    git(left.root, "commit", "-qm", "Other tests")
    assert warm.interlock(left.root, "run", "task.toml").returncode == 3


def test_a_person_accepts_a_base_once(left: Project) -> None:
    assert "SEAL407" not in interlock(left.root, "check", "task.toml", "--accept-base")
    assert warm.interlock(left.root, "run", "task.toml", "--accept-base").returncode == 3
    interlock(left.root, "abandon", "HELLO-001")  # it holds the files
    assert warm.interlock(left.root, "run", "task.toml").returncode == 3


def test_dependencies_that_changed_are_a_question_until_a_person_trusts_them(tmp_path: Path) -> None:
    made = calc(tmp_path / "project")
    environment = tmp_path / "environment"
    shutil.copytree((made.root / ".venv").resolve(), environment, symlinks=True)
    write(
        made.root,
        {
            "task.toml": 'task_id = "CALC-1"\ntask = "Fix it"\ngates_required = ["GATE-TESTS"]\nscope = ["src/**"]\n',
            "interlock.toml": '[roles.builder]\nkind = "build"\n[agents.builder]\nrunner = "remote"\n'
            f'[gates.GATE-TESTS]\ncommand = [".venv/bin/pytest", "-q"]\nkeep = ["{environment}"]\n'
            f'[gates.GATE-LINT]\ncommand = ["true"]\nkeep = ["{environment}"]\n',
        },
    )
    assert warm.interlock(made.root, "check", "task.toml").returncode == 0
    (pytest_package,) = environment.glob("lib/python3*/site-packages/_pytest/runner.py")
    pytest_package.write_text(pytest_package.read_text() + "# changed\n")
    refused = warm.interlock(made.root, "check", "task.toml")
    assert (refused.returncode, "SEAL201" in refused.stdout, "`interlock trust`" in refused.stdout) == (2, True, True)
    git(made.root, "add", "interlock.toml")
    git(made.root, "commit", "-qm", "Settings")
    summary = warm.interlock(made.root, "ci", "--base", "HEAD").stdout
    assert (summary.count("**SEAL201**"), summary.count("| unable | SEAL201 |")) == (1, 2), summary
    assert f"accepted {environment}\n" in interlock(made.root, "trust")
    assert warm.interlock(made.root, "check", "task.toml").returncode == 0
