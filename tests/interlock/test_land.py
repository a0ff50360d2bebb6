"""`interlock land`, `queue` and `commit RUN`: approved runs onto their branch."""

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests import warm
from tests.child import environment, git
from tests.graph.conftest import Project
from tests.graph.landing_project import FILES, approved_run, landing_project, lines_of, run_apart
from tests.graph.sealed_project import write
from tests.interlock.checkout import install


def command(root: Path, *words: str) -> CompletedProcess[str]:
    return warm.interlock(root, *words)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return landing_project(tmp_path / "project")


def test_a_run_in_the_checkout_lands_where_its_work_lies(project: Project) -> None:
    root = project.root
    run_id = approved_run(project, "A-1", {"src/a.txt": "1\n", "src/new/c.txt": "c\n", "src/b.txt": None})
    write(root, {"notes.txt": "a person goes on\n"})
    done = command(root, "land", "A-1")
    assert done.returncode == 0, done.stderr
    assert git(root, "status", "--porcelain") == " M notes.txt\n"
    assert lines_of(root) == ["A-1: Do A-1", "Start"]
    message = git(root, "log", "-1", "--format=%an%n%B")
    assert message.startswith("t@example.org\nA-1: Do A-1\n\nInterlock-Run: A-1.1:"), message
    assert git(root, "show", "--name-status", "--format=", "HEAD").split() == [
        *("M", "src/a.txt", "D", "src/b.txt", "A", "src/new/c.txt")
    ]
    again = json.loads(command(root, "land", run_id, "--json").stdout)
    assert [row["how"] for row in again["landings"]] == ["before"]
    assert lines_of(root) == ["A-1: Do A-1", "Start"]


def test_what_others_left_in_a_file_that_lands_is_named_and_nothing_is_lost(project: Project) -> None:
    root = project.root
    run_apart(project, "A-1", {"src/a.txt": "1\n", "src/new.txt": "new\n"})
    # Git's hooks, where they are installed, keep what other agents hold.
    install(root, git_hooks=True)
    ada = environment(INTERLOCK_AGENT_ID="ada")
    assert warm.interlock(root, "reserve", "src/a.txt", env=ada).returncode == 0
    done = command(root, "land", "A-1")
    assert (done.returncode, "ada" in done.stderr, lines_of(root)) == (1, True, ["Start"]), done.stderr
    assert (root / "src/a.txt").read_text() == FILES["src/a.txt"]
    assert warm.interlock(root, "release", "--all", env=ada).returncode == 0
    write(root, {"src/a.txt": "mine\n", "src/new.txt": "mine\n"})
    done = command(root, "land", "A-1")
    assert (done.returncode, "LND706" in done.stderr, "src/a.txt, src/new.txt" in done.stderr) == (1, True, True)
    assert lines_of(root) == ["Start"]
    assert [(root / name).read_text() for name in ("src/a.txt", "src/new.txt")] == ["mine\n"] * 2
    aside, _, after = [part.strip(" ,`") for part in done.stderr.partition("put them aside: ")[2].split("`")][1:4]
    git(root, *aside.split()[3:])
    assert command(root, "land", "A-1").returncode == 0
    assert lines_of(root) == ["A-1: Do A-1", "Start"]
    assert after.endswith("stash pop")
    assert "mine" in git(root, "stash", "show", "-p")


def test_work_is_judged_again_beside_what_has_landed(project: Project) -> None:
    root = project.root
    run_apart(project, "A-1", {"src/a.txt": "red\ntwo\nthree\nfour\nfive\n"})
    run_apart(project, "B-1", {"src/b.txt": "red\n"})
    run_apart(project, "C-1", {"src/c.txt": "c\n"})
    run_apart(project, "D-1", {"src/a.txt": "other\ntwo\nthree\nfour\nfive\n"})
    queued = json.loads(command(root, "queue", "--json").stdout)
    assert [row["task_id"] for row in queued["runs"]] == ["A-1", "B-1", "C-1", "D-1"]
    assert command(root, "queue", "hold", "C-1").returncode == 0
    assert "number 1 of 4" in command(root, "queue", "move", "C-1", "1").stdout
    assert "number 3 of 4" in command(root, "queue", "move", "C-1", "3").stdout
    done = command(root, "land", "--queue", "--no-rebuild", "--json")
    found = {row["run_ids"][0]: row for row in json.loads(done.stdout)["landings"]}
    assert {run: row["state"] for run, row in found.items()} == {"A-1.1": "landed", "B-1.1": "red", "D-1.1": "conflict"}
    assert (found["A-1.1"]["how"], found["B-1.1"]["tests"]) == ("run", ["GATE-TESTS"])
    assert (found["D-1.1"]["files"], found["D-1.1"]["code"]) == (["src/a.txt"], "LND703")
    assert (done.returncode, lines_of(root)) == (1, ["A-1: Do A-1", "Start"])
    assert command(root, "queue", "release", "C-1").returncode == 0
    shown = command(root, "land", "C-1")
    assert "GATE-TESTS" in shown.stderr
    assert lines_of(root) == ["C-1: Do C-1", "A-1: Do A-1", "Start"]
    assert len(git(root, "log", "-1", "--format=%P").split()) == 2
    assert git(root, "status", "--porcelain") == ""
    assert command(root, "queue", "hold", "C-1").returncode == 2


def test_a_batch_is_one_commit_and_a_red_one_is_parted(project: Project) -> None:
    root = project.root
    for number in range(3):
        run_apart(project, f"T-{number}", {f"src/t{number}.txt": "t\n"})
    run_apart(project, "A-1", {"src/a.txt": "red\n"})
    run_apart(project, "B-1", {"src/b.txt": "red\n"})
    done = json.loads(command(root, "land", "--queue", "--batch", "3", "--json").stdout)
    states = [(len(row["run_ids"]), row["state"]) for row in done["landings"]]
    assert states == [(3, "landed"), (1, "landed"), (1, "red")]
    assert lines_of(root) == ["A-1: Do A-1", "Land 3 runs", "Start"]
    trailers = git(root, "log", "-1", "--format=%(trailers:key=Interlock-Run,valueonly)", "HEAD^").split()
    assert [row.split(":")[0] for row in trailers] == ["T-0.1", "T-1.1", "T-2.1"]


def test_line_ends_and_filters_are_those_of_the_checkout(tmp_path: Path) -> None:
    attributes = "*.txt text eol=crlf\n*.up filter=up\n"
    crlf = {**FILES, ".gitattributes": attributes, "src/n.up": "low\n", "src/a.txt": "one\r\n"}
    project = landing_project(tmp_path / "project", crlf)
    root = project.root
    git(root, "config", "filter.up.clean", "tr a-z A-Z")
    approved_run(project, "A-1", {"src/a.txt": "two\r\n", "src/n.up": "more\n", "src/run.sh": "true\n"})
    done = command(root, "commit", "A-1")
    assert done.returncode == 0, done.stderr
    assert git(root, "cat-file", "blob", "interlock/A-1.1:src/a.txt") == "two\n"
    assert git(root, "cat-file", "blob", "interlock/A-1.1:src/n.up") == "MORE\n"
    assert command(root, "commit", "A-1").stdout == done.stdout == f"{git(root, 'rev-parse', 'interlock/A-1.1')}"
    assert command(root, "land", "A-1").returncode == 0
    assert (git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD")) == ("", done.stdout)
    git(root, "branch", "-f", "interlock/A-1.1", "HEAD^")
    refused = command(root, "commit", "A-1")
    assert (refused.returncode, "LND708" in refused.stderr) == (2, True)


def test_with_a_remote_the_branch_moves_there_first(project: Project, tmp_path: Path) -> None:
    root, there, other = project.root, tmp_path / "there.git", tmp_path / "other"
    git(root, "clone", "-q", "--bare", str(root), str(there))
    git(root, "remote", "add", "origin", str(there))
    run_apart(project, "A-1", {"src/c.txt": "c\n"})
    with (root / "interlock.toml").open("a") as file:
        file.write('[landing]\nremote = "origin"\n')
    git(root, "commit", "-qam", "Not pushed")
    refused = command(root, "land", "A-1")
    assert (refused.returncode, "git push origin main" in refused.stderr) == (2, True)
    git(root, "push", "-q", "origin", "main")
    git(root, "clone", "-q", str(there), str(other))
    write(other, {"src/d.txt": "d\n"})
    git(other, "add", "-A")
    git(other, "commit", "-qm", "Of others")
    git(other, "push", "-q")
    done = command(root, "land", "A-1")
    assert done.returncode == 0, done.stderr
    assert lines_of(root) == lines_of(there) == ["A-1: Do A-1", "Of others", "Not pushed", "Start"]
    assert git(root, "status", "--porcelain") == ""


def test_a_run_without_a_sealed_gate_lands_where_nothing_has_landed_since(project: Project) -> None:
    root = project.root
    plain = FILES["interlock.toml"].partition("product")[0] + "sealed = false\n"
    write(root, {"interlock.toml": plain})
    git(root, "commit", "-qam", "Unsealed")
    run_apart(project, "A-1", {"src/c.txt": "c\n"})
    run_apart(project, "B-1", {"src/d.txt": "d\n"})
    done = json.loads(command(root, "land", "A-1", "B-1", "--json").stdout)
    assert [row["state"] for row in done["landings"]] == ["landed", "refused"]
    assert done["landings"][1]["code"] == "LND705"
    assert command(root, "commit", "B-1").returncode == 0
    git(root, "merge", "-q", "--no-edit", "interlock/B-1.1")
    done = json.loads(command(root, "land", "B-1", "--json").stdout)
    assert [row["state"] for row in done["landings"]] == ["landed"]
    assert command(root, "queue", "--json").stdout == '{\n  "schema": "interlock.queue/1",\n  "runs": []\n}\n'


TEAM = """
from pathlib import Path
from tests.graph.conftest import envelope
from tests.graph.sealed_project import GATES

def builder(ask):
    path = Path(ask.root, "src/a.txt")
    told = "In conflict" in ask.prompt and "+A-1" in ask.prompt
    path.write_text(path.read_text() + "B-1\\n" if told else f"{ask.task_id}\\n")
    Path(ask.root, f"src/{ask.task_id}.txt").write_text("x\\n")
    return envelope(ask, "READY_FOR_QA", gates_required=GATES)
"""


def test_of_two_tasks_in_trees_that_conflict_the_second_is_built_anew_on_the_first(tmp_path: Path) -> None:
    config = FILES["interlock.toml"] + '[agents.builder]\nrunner = "python:team:builder"\n'
    task = 'task_id = "{0}"\ntask = "Do {0}"\nscope = ["src/**"]\ngates_required = ["GATE-MSG-STRICT", "GATE-TESTS"]\n'
    tasks = {f"tasks/{name}.toml": task.format(name) for name in ("A-1", "B-1")}
    root = landing_project(tmp_path / "project", {**FILES, **tasks, "interlock.toml": config, "team.py": TEAM}).root
    done = command(root, "run", "tasks")
    assert done.returncode == 0, done.stderr
    assert git(root, "status", "--porcelain") == ""
    done = command(root, "land", "A-1", "B-1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines_of(root) == ["B-1: Do B-1", "A-1: Do A-1", "Start"]
    assert (root / "src/a.txt").read_text() == "A-1\nB-1\n"
    assert git(root, "status", "--porcelain") == ""
    assert json.loads(command(root, "queue", "--json").stdout)["runs"] == []


def test_a_protected_branch_is_not_landed_on_and_the_way_by_a_pull_request_is_named(project: Project) -> None:
    root, server = project.root, project.root.parent / "server.git"
    git(root.parent, "init", "-q", "--bare", str(server))
    git(root, "remote", "add", "origin", str(server))
    git(root, "push", "-q", "origin", "main")
    # As GitHub refuses it.
    hook = server / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    refusal = "error: GH006: Protected branch update failed for refs/heads/main."
    hook.write_text(f"#!/bin/sh\ngrep -q refs/heads/main && echo '{refusal}' >&2 && exit 1\nexit 0\n")
    hook.chmod(0o755)
    write(root, {"interlock.toml": f'{(root / "interlock.toml").read_text()}\n[landing]\nremote = "origin"\n'})
    run_id = approved_run(project, "A-1", {"src/a.txt": "1\n"})
    done = command(root, "land", run_id)
    assert (done.returncode, "GH006" in done.stderr, "LND707" in done.stderr) == (1, True, True), done.stderr
    assert "open a pull request of what `interlock commit RUN` makes" in done.stderr
    assert command(root, "commit", run_id).returncode == 0
    git(root, "push", "-q", "origin", f"interlock/{run_id}")
