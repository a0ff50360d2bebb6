"""Runs in trees of their own: begun, driven, kept from the rest of the machine, landed, and gone afterwards."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from interlock import graph
from interlock.agents.ask import RUN, run_mark
from interlock.gates.sealed import PRIVATE, Store, is_below
from interlock.graph.task.agent_box import hiding
from tests.child import git

ROOT = Path(__file__).resolve().parents[2]

AGENT = """
import os, pathlib, re, subprocess, sys, time
prompt = open(sys.argv[1]).read()
task = re.search(r"TASK_ID: (\\S+)", prompt)[1]
exec(pathlib.Path("acts", task.lower() + ".py").read_text())
print(f'''STATUS: READY_FOR_QA
TASK_ID: {task}
TASK: Write {task}
ASSIGNED_AGENT: builder
REPORTS_TO: orchestrator
INPUTS_USED: []
GATES_REQUIRED:
- GATE-TESTS
GATES_PASSED: []
EVIDENCE:
  screenshots: []
  a11y: []
  console: []
  reports: []
FAIL_REASONS: NONE
OUTPUT:
Done.
NEXT_ACTIONS:
1. orchestrator to go on
''')
"""
CONFIG = """
[roles.builder]
kind = "build"
[gates.GATE-TESTS]
command = ["sh", "tests/check.sh"]
product = ["src/**"]
tests = ["tests/**"]
[run]
max_rework = 0
max_reasks = 0
[agents.builder]
runner = "command"
argv = ["python3", "agent.py", "{prompt_file}"]
environment = ["INTERLOCK_STATE"]
"""
WRITE = "pathlib.Path('src', task.lower() + '.txt').write_text('good\\n')\n"


class Checkout:
    """A project whose agents do what `acts/TASK.py` says; the gate wants every file of `src` to say `good`.

    Args:
        root: An empty folder.
        acts: By task id, what its agent does.
        more: Other files of the project.
    """

    def __init__(self, root: Path, acts: Mapping[str, str], more: Mapping[str, str] | None = None) -> None:
        self.root = root
        files = {
            "interlock.toml": CONFIG,
            "agent.py": AGENT,
            ".gitignore": "artifacts/\n",
            "src/first.txt": "good\n",
            "tests/check.sh": "! grep -Lx good src/*.txt | grep .\n",
            **{f"acts/{task.lower()}.py": act for task, act in acts.items()},
            **{f"tasks/{task}.toml": self.task(task) for task in acts},
            **(more or {}),
        }
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "Start")):
            git(root, *words)

    @staticmethod
    def task(name: str) -> str:
        return f'task_id = "{name}"\ntask = "Write {name}"\ngates_required = ["GATE-TESTS"]\nscope = ["src/**"]\n'

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "interlock", *words]

    def run(self, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of Interlock in the checkout."""
        env = {**os.environ, **environment}
        return subprocess.run(
            self.command(*words), cwd=self.root, env=env, capture_output=True, text=True, check=False, timeout=300
        )

    def ends(self, *words: str) -> dict[str, str]:
        """Run tasks, and return where each run ended."""
        done = self.run("run", *words)
        rows = [line.split()[:2] for line in done.stdout.splitlines() if "-" in line.split()[0]]
        return dict(rows)  # type: ignore[arg-type]

    @property
    def trees(self) -> list[str]:
        """The trees that are there."""
        folder = Store(self.root).folder / "trees"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def status(self) -> str:
        return git(self.root, "status", "--porcelain")


def test_tasks_run_side_by_side_and_the_checkout_is_as_it_was_until_they_land(tmp_path: Path) -> None:
    project = Checkout(tmp_path / "project", {"ONE-1": WRITE, "TWO-1": WRITE})
    before = git(project.root, "rev-parse", "HEAD")
    assert project.ends("tasks", "--jobs", "2") == {"ONE-1.1": "APPROVED", "TWO-1.1": "APPROVED"}
    assert (project.status(), git(project.root, "rev-parse", "HEAD"), len(project.trees)) == ("", before, 2)
    landed = project.run("land", "ONE-1", "TWO-1")
    assert landed.returncode == 0, landed.stderr
    assert {path.name for path in (project.root / "src").iterdir()} == {"first.txt", "one-1.txt", "two-1.txt"}
    assert (project.status(), project.trees) == ("", [])
    assert "Interlock-Run: ONE-1.1:" in git(project.root, "log", "--format=%B")
    assert project.run("verify").returncode == 0


@pytest.mark.parametrize("namespaces", [pytest.param(True, marks=pytest.mark.linux("bubblewrap")), False])
def test_a_tree_has_what_the_gates_keep_and_what_is_copied(tmp_path: Path, namespaces: bool) -> None:
    trees = '[trees]\ncopy = [".env"]\nsetup = [["sh", "-c", "cp .env made"]]\n'
    reads = "assert pathlib.Path('made').read_text() == pathlib.Path('.env').read_text() == 'KEY=1'\n"
    project = Checkout(
        tmp_path / "project",
        {"ONE-1": reads + WRITE},
        {"interlock.toml": trees + CONFIG, ".gitignore": "artifacts/\n.env\nmade\n"},
    )
    (project.root / ".env").write_text("KEY=1")
    path = os.environ["PATH"] if namespaces else f"{ROOT / 'tests/plain'}:{os.environ['PATH']}"
    done = project.run("run", "--apart", "--land", "tasks/ONE-1.toml", PATH=path)
    assert done.returncode == 0, done.stderr
    assert (project.root / "src/one-1.txt").exists()
    assert not (project.root / "made").exists()
    assert project.run("verify").returncode == 0


def test_files_outside_the_scope_go_back_to_the_agent_unless_they_are_reported(tmp_path: Path) -> None:
    acts = {"ONE-1": WRITE + "pathlib.Path('notes.md').write_text('x')\n"}
    project = Checkout(tmp_path / "project", acts)
    refused = project.run("run", "--apart", "tasks/ONE-1.toml")
    assert "RUN617" in refused.stderr
    assert "notes.md" in refused.stderr
    (project.root / "interlock.toml").write_text(CONFIG.replace("[run]\n", '[run]\noutside = "report"\n'))
    git(project.root, "commit", "-qam", "Report")
    assert project.ends("--apart", "--land", "tasks/ONE-1.toml") == {"ONE-1.2": "landed"}
    assert not (project.root / "notes.md").exists()


def test_what_lands_without_a_change_that_was_put_back_says_so_and_shows_it(tmp_path: Path) -> None:
    more = "pathlib.Path('tests/check.sh').open('a').write('# one test more\\n')\n"
    config = CONFIG.replace("[run]\n", '[run]\noutside = "report"\n')
    project = Checkout(tmp_path / "project", {"ONE-1": WRITE + more}, {"interlock.toml": config})
    done = project.run("run", "--land", "tasks/ONE-1.toml")
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("put back in ONE-1.1: tests/check.sh "))
    shows = line.rpartition("interlock ")[2].rstrip(")").split()
    assert "+# one test more" in project.run(*shows).stdout


def test_uncommitted_changes_stop_it_or_are_taken_along(tmp_path: Path) -> None:
    project = Checkout(tmp_path / "project", {"ONE-1": WRITE})
    (project.root / "src/first.txt").write_text("good\ngood\n")
    refused = project.run("run", "--apart", "tasks/ONE-1.toml")
    assert (refused.returncode, project.trees) == (2, [])
    assert "RUN609" in refused.stderr
    assert "--with-changes" in refused.stderr
    assert project.ends("--apart", "--with-changes", "tasks/ONE-1.toml") == {"ONE-1.1": "APPROVED"}
    assert project.status() == " M src/first.txt\n"


def test_a_setup_that_fails_says_what_it_printed_and_leaves_nothing(tmp_path: Path) -> None:
    setup = '[trees]\nsetup = [["sh", "-c", "echo no network; exit 3"]]\n'
    project = Checkout(tmp_path / "project", {"ONE-1": WRITE}, {"interlock.toml": setup + CONFIG})
    done = project.run("run", "--apart", "tasks/ONE-1.toml")
    assert done.returncode == 2
    assert "status 3. It said: no network" in done.stderr
    assert (project.trees, graph.list_runs(project.root, "runs")) == ([], [])


def test_what_conflicts_goes_back_to_its_builder_who_sees_both_sides(tmp_path: Path) -> None:
    # The second one meets the line of the first, and keeps it.
    both = "p = pathlib.Path('src/first.txt')\np.write_text(p.read_text() + 'good\\n# ' + task + '\\n')\n"
    check = "! grep -Lx good src/*.txt | grep .\n"
    project = Checkout(tmp_path / "project", {"ONE-1": both, "TWO-1": both}, {"tests/check.sh": check})
    ends = project.ends("--land", "--jobs", "2", "tasks")
    assert sorted(ends.values()) == ["landed", "landed"]
    text = (project.root / "src/first.txt").read_text()
    assert ("# ONE-1" in text, "# TWO-1" in text, "<<<<" in text) == (True, True, False)
    assert sorted(ends) in (["ONE-1.1", "TWO-1.2"], ["ONE-1.2", "TWO-1.1"])


def test_of_three_candidates_the_right_one_lands(tmp_path: Path) -> None:
    act = """
kind = task[-1]
if kind == "1":  # weakens the test
    pathlib.Path("tests/check.sh").write_text("true\\n")
pathlib.Path("src/first.txt").write_text({"1": "bad\\n", "2": "worse\\n", "3": "good\\nbetter\\n"}[kind])
"""
    config = CONFIG.replace('kind = "build"', 'kind = "build"\ncandidates = 3').replace(
        "[run]", '[run]\noutside = "report"'
    )
    acts = {"ONE-1": "", **{f"ONE-1-C{number}": act for number in (1, 2, 3)}}
    project = Checkout(tmp_path / "project", acts, {"interlock.toml": config})
    assert project.ends("--land", "tasks/ONE-1.toml") == {"ONE-1-C3.1": "landed"}
    assert (project.root / "src/first.txt").read_text() == "good\nbetter\n"
    assert project.status() == ""


def working(root: Path, run_id: str) -> list[str]:
    found: list[str] = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            line = " ".join(each.cmdline())
            if line and (str(root) in line or each.environ().get(RUN) == run_mark(str(root), run_id)):
                found.append(line)
    return found


def awaited(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end


@pytest.mark.linux("processes of a sandbox end with it")
def test_a_run_that_is_killed_while_its_agent_works_goes_on_and_nothing_works_meanwhile(tmp_path: Path) -> None:
    act = "begun = pathlib.Path('src/begun.txt')\nif not begun.exists():\n    begun.write_text('good\\n')\n"
    project = Checkout(tmp_path / "project", {"ONE-1": f"{act}    time.sleep(600)\n{WRITE}"})
    words = project.command("run", "--apart", "--land", "tasks/ONE-1.toml")
    with subprocess.Popen(words, cwd=project.root, stderr=subprocess.DEVNULL, start_new_session=True) as run:
        awaited(lambda: [*(Store(project.root).folder / "trees").glob("*/tree/src/begun.txt")])
        assert working(project.root, "ONE-1.1")
        run.kill()
    awaited(lambda: not working(project.root, "ONE-1.1"))
    assert project.run("resume", "ONE-1").returncode == 0
    assert project.run("land", "--queue").returncode == 0
    assert (project.trees, project.status(), project.run("verify").returncode) == ([], "", 0)


@pytest.mark.linux("bubblewrap")
def test_an_agent_that_its_sandbox_hides_is_refused_before_anything_runs(tmp_path: Path) -> None:
    program = tmp_path / "agent.sh"
    program.write_text('#!/bin/sh\nexec python3 agent.py "$1"\n')
    program.chmod(0o755)
    config = CONFIG.replace('"python3", "agent.py"', f'"{program}"')
    project = Checkout(tmp_path / "project", {"ONE-1": WRITE}, {"interlock.toml": config})
    refused = project.run("run", "--apart", "tasks/ONE-1.toml")
    folder = next(each for each in PRIVATE if is_below(str(program), (each,)))
    assert (refused.returncode, "AGT901" in refused.stderr, "bwrap" in refused.stderr) == (2, True, False)
    assert f"which has an empty {folder} of its own" in refused.stderr
    assert (project.trees, "the tests of the base" in refused.stderr) == ([], False)
    # Where it is seen it runs: in the checkout, in a folder of PATH, in the project.
    assert project.run("run", "--here", "tasks/ONE-1.toml").returncode == 0
    (project.root / "agent.py").chmod(0o755)
    assert (hiding(str(program), project.root), hiding("./agent.py", project.root)) == (folder, "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert (hiding("agent.sh", project.root), hiding("no-such-program", project.root)) == ("", "")


@pytest.mark.linux("bubblewrap")
def test_what_an_agent_does_outside_of_its_tree_has_no_effect(tmp_path: Path) -> None:
    home = tmp_path / "home"
    acts = (
        "echo evil >> ~/.bashrc",
        "git push -q --force ~/remote.git HEAD~1:main",
        "echo 'echo evil > ~/evil' > .git/m.sh; chmod +x .git/m.sh; git config core.fsmonitor .git/m.sh",
        "rm -rf .interlock artifacts; echo evil >> artifacts/interlock/events.jsonl",
        "git branch -D side; git update-ref refs/heads/main HEAD~1; rm -rf .git/objects",
        "setsid sh -c 'sleep 1; echo evil >> src/one-1.txt; sleep 600' </dev/null >/dev/null 2>&1 &",
    )
    project = Checkout(
        tmp_path / "project", {"ONE-1": f"[subprocess.run(['sh', '-c', each]) for each in {acts}]\n{WRITE}"}
    )
    home.mkdir()
    (home / ".bashrc").write_text("theirs\n")
    git(project.root, "commit", "-q", "--allow-empty", "-m", "Second")
    git(project.root, "branch", "side")
    git(home, "init", "-q", "--bare", "remote.git")
    git(project.root, "push", "-q", f"{home}/remote.git", "main")

    def world() -> tuple[object, ...]:
        files = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
        return files, git(project.root, "for-each-ref"), git(project.root, "fsck"), project.status()

    before = world()
    done = project.run("run", "--apart", "tasks/ONE-1.toml", HOME=str(home))
    assert (done.returncode, world(), working(project.root, "ONE-1.1")) == (0, before, []), done.stderr
    assert project.run("land", "ONE-1").returncode == 0
    assert ((project.root / "src/one-1.txt").read_text(), project.trees) == ("good\n", [])
    assert project.run("verify").returncode == 0
