"""Runs over several machines: moved between queues, answered elsewhere, begun by a schedule, limited by a rate."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.many_machines import project
from benchmarks.many_machines.campaign import world
from benchmarks.many_machines.world import Machine, World
from interlock import graph
from interlock.core.database import ADDRESS
from tests.child import git
from tests.postgres import Server, name_of, pgbouncer, replica, wait_for_replay

pytestmark = pytest.mark.long


@pytest.fixture
def machines(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Give machines without a worker; this process sits where people do."""
    with world(postgres, tmp_path, call_seconds=0.1) as made:
        # The process that others are forked from starts before: a world ends what has its folder in the environment.
        made.home.interlock("--version")
        monkeypatch.setenv(ADDRESS, made.address)
        monkeypatch.setenv("INTERLOCK_STATE", made.home.environment["INTERLOCK_STATE"])
        yield made


def task_file(made: World, name: str, more: str = "") -> Path:
    """Write a task file where people sit."""
    path = made.home.root / "tasks" / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(project.task("plain", name) + more)
    return path


def said(machine: Machine, *words: str, code: int = 0) -> str:
    """Run a command on a machine, which ends with a code; return what it said."""
    found, text = machine.interlock(*words)
    assert found == code, text
    return text


def queues(made: World, run: str) -> list[str]:
    """Return the queues of the legs of a run, in order."""
    statement = "SELECT queue_name FROM dbos.workflow_status WHERE workflow_uuid LIKE %s ORDER BY created_at"
    return [row["queue_name"] for row in made.ask(statement, f"{run}#%")]


def test_a_run_moves_to_the_worker_that_does_its_next_step(machines: World) -> None:
    """One worker drives, the other runs programs; the files go along, and the page says who is missing."""
    first = machines.machine()
    first.start("--queues", "drive,llm")
    machines.wait_for_workers(1)
    run = graph.submit(machines.home.root, task_file(machines, "MOVES-1"), land=True)
    assert machines.until(lambda: queues(machines, run)[-1] == "command", 60)
    found = graph.overview(machines.home.root)
    assert [(row["why"], row["next"]) for row in found["stalled"]] == [
        ("no worker does command", "interlock worker --queues command")
    ]
    second = machines.machine()
    second.start("--queues", "command")
    assert machines.settle(), said(machines.home, "workers")
    assert queues(machines, run)[:2] == ["drive", "command"]
    view = graph.view_run(run, root=machines.home.root)
    assert (view.status, view.phase) == ("APPROVED", "done")
    assert [row["data"]["runs"] for row in machines.lines() if row["type"] == "landed"] == [[run]]
    said(machines.home, "verify")


def test_an_answer_from_another_machine_takes_the_run_on(machines: World) -> None:
    """It waits for a role outside, without a leg; an answer for nobody is refused, the third bad one ends it."""
    machines.start(2)
    path = task_file(machines, "ASKS-1", '[agents.builder]\nrunner = "remote"\n')
    run = graph.submit(machines.home.root, path)
    assert machines.settle()
    assert machines.active() == []
    shown = json.loads(said(machines.home, "status", run, "--json"))
    assert [row["role"] for row in shown["waiting"]] == ["builder"]
    answer = machines.home.root / "answer.txt"
    answer.write_text("I did it.\n")
    assert "does not wait for nobody" in said(machines.home, "resume", run, "--answer", f"nobody={answer}", code=2)
    # An answer that is no envelope is asked for again, twice.
    for code in (3, 3, 1):
        said(machines.home, "resume", run, "--answer", f"builder={answer}", code=code)
    assert graph.view_run(run, root=machines.home.root).status == "BLOCKED"


def test_a_person_decides_on_another_machine(machines: World) -> None:
    """`interlock run` there waits until it is over, with what happens on the screen."""
    machines.start(1)
    text = said(machines.home, "run", "--land", str(task_file(machines, "RUNS-1")))
    assert "APPROVED" in text
    assert "landed" in text


def test_a_run_lands_although_nobody_waits_for_it_any_more(machines: World) -> None:
    """The command that asked for it is killed as soon as the run has its name."""
    machines.start(1)
    words = [sys.executable, "-P", "-m", "interlock", "run", "--land", str(task_file(machines, "ALONE-1"))]
    with subprocess.Popen(words, cwd=machines.home.root, env=machines.home.environment) as client:
        assert machines.until(lambda: queues(machines, "ALONE-1.1"), 60)
        client.kill()
    assert machines.settle()
    assert [row["data"]["runs"] for row in machines.lines() if row["type"] == "landed"] == [["ALONE-1.1"]]


def test_a_conflict_is_taken_up_by_another_run_that_lands(machines: World) -> None:
    """By the one worker, which drives one run at a time; who asks about the first run learns of the second."""
    machines.start(1, concurrency=1)
    run = graph.submit(machines.home.root, task_file(machines, "MEETS-1"), land=True)
    assert machines.provider.wait_for(lambda call: call.run == run, 60)
    other = machines.machine()
    for name, text in {"txt": "good\nand more\n", "plan": "good\n"}.items():
        (other.root / f"src/MEETS-1.{name}").write_text(text)
    git(other.root, "add", "-A")
    git(other.root, "-c", "user.name=A", "-c", "user.email=a@x", "commit", "-qm", "The same file")
    git(other.root, "push", "-q", "origin", "main")
    assert machines.settle(), said(machines.home, "workers")
    assert [row["data"]["runs"] for row in machines.lines() if row["type"] == "landed"] == [["MEETS-1.2"]]
    assert "run MEETS-1.2 has taken the task up since, and it has landed on main" in said(other, "explain", "MEETS-1.1")
    assert "it has landed on main" in said(other, "explain", "MEETS-1")


def test_an_approved_run_that_could_not_land_is_named_until_it_has(machines: World) -> None:
    """With why, and the command that lands it, which works once the cause is gone."""
    machines.start(1)
    hook = machines.hub / "hooks/update"
    hook.write_text('#!/bin/sh\ncase "$1" in refs/heads/main) echo "main is frozen" >&2; exit 1 ;; esac\n')
    hook.chmod(0o755)
    shown = said(machines.home, "submit", "--land", "--wait", str(task_file(machines, "FROZEN-1")), code=1)
    assert "FROZEN-1.1 has not landed" in shown
    assert "main is frozen" in shown
    (row,) = graph.overview(machines.home.root)["stalled"]
    assert (row["run"], row["next"]) == ("FROZEN-1.1", "interlock land FROZEN-1.1")
    assert "main is frozen" in row["why"]
    hook.unlink()
    said(machines.home, *row["next"].split()[1:])
    assert graph.overview(machines.home.root)["stalled"] == []
    # A worker whose files go elsewhere does not start.
    wrong = machines.machine()
    git(machines.folder, "init", "-q", "--bare", "wrong.git")
    config = wrong.root / "interlock.toml"
    config.write_text(config.read_text().replace('remote = "origin"\ntimeout', 'remote = "../wrong.git"\ntimeout'))
    assert "does not have the files of run FROZEN-1.1" in said(wrong, "worker", code=2)


def test_many_runs_land_one_after_another(machines: World) -> None:
    """However many are approved at once, each is judged once."""
    machines.start(2)
    runs = machines.submit(*(f"CROWD-{number}" for number in range(6)))
    assert machines.settle(240), said(machines.home, "workers")
    landed = [row["data"]["runs"] for row in machines.lines() if row["type"] == "landed"]
    assert sorted(landed) == [[run] for run in runs]
    assert not machines.ask("SELECT 1 FROM interlock.notice WHERE step->>'line' LIKE '%%moved meanwhile%%'")
    assert queues(machines, runs[0]) == ["drive", "drive-land"]


def test_a_task_that_cannot_begin_says_why(machines: World) -> None:
    """Whoever asks about it learns what its worker found, until the task is submitted again."""
    machines.start(1)
    path = task_file(machines, "WRONG-2")
    path.write_text(path.read_text().replace("GATE-TESTS", "GATE-TESTZ"))
    said(machines.home, "submit", str(path))
    assert machines.settle()
    assert "run WRONG-2.1 could not begin" in said(machines.home, "explain", "WRONG-2.1", code=2)
    (row,) = graph.overview(machines.home.root)["stalled"]
    assert "GATE-TESTZ" in row["why"]
    assert row["next"].endswith("Then submit the task again.")


def test_a_worker_that_ends_while_the_database_is_away_loses_no_run(machines: World) -> None:
    """It lands one, and cannot write that down for longer than a command would wait."""
    machine = machines.start(1)[0]
    hook = machines.hub / "hooks/update"
    hook.write_text('#!/bin/sh\ncase "$1" in refs/heads/main) touch pushed; sleep 3 ;; esac\n')
    hook.chmod(0o755)
    (run,) = machines.submit("AWAY-1")
    assert machines.until((machines.hub / "pushed").exists, 60)
    machine.signal(signal.SIGTERM, alone=True)
    machines.server.stop(immediate=True)
    time.sleep(15)
    machines.server.start()
    machine.end()
    machine.start()
    assert machines.settle(), said(machines.home, "workers")
    assert [row["data"]["runs"] for row in machines.lines() if row["type"] == "landed"] == [[run]]
    statement = "SELECT status FROM dbos.workflow_status WHERE workflow_uuid LIKE %s"
    assert {row["status"] for row in machines.ask(statement, f"{run}#%")} == {"SUCCESS"}


def test_what_waits_in_the_queue_is_said_and_can_be_taken_out(machines: World) -> None:
    """Also of a run that nobody has begun; all task files are read before one is put there."""
    path = task_file(machines, "QUEUED-1")
    wrong = path.with_name("WRONG-1.toml")
    wrong.write_text("task = 1\n")
    said(machines.home, "submit", str(path), str(wrong), code=2)
    assert machines.active() == []
    assert "QUEUED-1.1" in said(machines.home, "submit", str(path))
    assert "waits in the queue drive" in said(machines.home, "status")
    assert "waits in the queue drive" in said(machines.home, "status", "QUEUED-1.1", code=2)
    assert "QUEUED-1.1 is abandoned" in said(machines.home, "abandon", "QUEUED-1.1")
    assert machines.active() == []
    assert graph.overview(machines.home.root)["stalled"] == []
    assert "there is no run" in said(machines.home, "abandon", "QUEUED-1.1", code=2)


def test_a_schedule_begins_runs_and_a_rate_holds_them_back(machines: World) -> None:
    """Every second one is begun, and the row of the schedule goes when its table goes."""
    machine = machines.machine()
    task_file(machines, "NIGHTLY-1")
    (machine.root / "tasks").mkdir()
    (machine.root / "tasks/NIGHTLY-1.toml").write_text(project.task("plain", "NIGHTLY-1"))
    config = machine.root / "interlock.toml"
    before = config.read_text()
    config.write_text(f'{before}\n[schedule.often]\ncron = "* * * * * *"\ntask = "tasks/NIGHTLY-1.toml"\n')
    machine.start()
    assert machines.until(lambda: "NIGHTLY-1.1" in graph.list_runs(machines.home.root, "runs"), 90)
    machine.end()
    config.write_text(before)
    machine.start()
    machines.wait_for_workers(1)
    assert machines.until(lambda: not machines.ask("SELECT 1 FROM dbos.workflow_schedules"), 30)


def test_a_worker_that_cannot_work_says_why(machines: World) -> None:
    """No remote, no database, an unknown queue: each with the command that helps, and nothing in the queue."""
    machine = machines.machine()
    config = machine.root / "interlock.toml"
    text = config.read_text()
    config.write_text(text.replace('remote = "origin"\ntimeout', "timeout"))
    git(machine.root, "-c", "user.name=A", "-c", "user.email=a@x", "commit", "-qam", "No remote")
    assert "RUN653" in said(machine, "worker", code=2)
    assert "git init --bare" in said(machine, "submit", str(task_file(machines, "NONE-1")), code=2)
    config.write_text(text.replace('remote = "origin"\ntimeout', 'remote = "/nowhere/hub.git"\ntimeout'))
    assert "git ls-remote" in said(machine, "worker", code=2)
    config.write_text(text.replace(f'database = "{machines.address}"', ""))
    assert "RUN654" in said(machine, "worker", code=2)
    assert "there is no queue brwser" in said(machine, "worker", "--queues", "brwser", code=2)
    config.write_text(text)
    git(machine.root, "-c", "user.name=A", "-c", "user.email=a@x", "commit", "-qam", "As before")
    assert "RUN651" in said(machine, "run", str(task_file(machines, "NONE-1")), code=2)
    assert "RUN655" in said(machine, "run", "--here", str(task_file(machines, "NONE-1")), code=2)
    assert machines.active() == []


def test_a_project_moves_into_a_database(machines: World, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs, evidence and journal are there, on every machine; a run that is not over is named."""
    home, other = machines.home, machines.machine()
    address = machines.address
    for machine in (home, other):
        machine.environment[ADDRESS] = ""
    said(home, "run", "--apart", str(task_file(machines, "BEFORE-1")))
    path = task_file(machines, "OPEN-1", '[agents.builder]\nrunner = "remote"\n')
    said(home, "run", "--apart", str(path), code=3)
    refused = said(home, "migrate", "--to", address, code=2)
    assert "RUN656" in refused
    assert "interlock abandon OPEN-1.1" in refused
    said(home, "abandon", "OPEN-1.1")
    lines = (home.root / "artifacts/interlock/events.jsonl").read_bytes()
    text = said(home, "migrate", "--to", address)
    assert "heads are the same" in text
    assert said(home, "migrate", "--to", address), "it may be repeated"
    other.environment[ADDRESS] = address
    said(other, "verify")
    assert (other.root / "artifacts/interlock/events.jsonl").read_bytes() == lines
    shown = said(other, "explain", "BEFORE-1.1")
    assert "APPROVED" in shown
    monkeypatch.setenv("INTERLOCK_STATE", other.environment["INTERLOCK_STATE"])
    graph.bring_shown(other.root, "BEFORE-1.1")
    assert [each.label for each in graph.hand_overs(other.root, "BEFORE-1.1")] == ["base", "1"]
    said(other, "land", "BEFORE-1.1")


def test_a_run_through_pgbouncer(machines: World, postgres: Server) -> None:
    """In transaction mode, where a session belongs to nobody: submitted, driven, landed, reserved, looked at."""
    with pgbouncer(postgres, machines.address) as bouncer:
        machine = machines.machine()
        for each in (machine, machines.home):
            each.environment[ADDRESS] = bouncer
        machine.start()
        machines.wait_for_workers(1)
        text = said(machines.home, "submit", "--wait", "--land", str(task_file(machines, "POOLED-1")))
        assert "APPROVED" in text
        said(machines.home, "reserve", "src/first.txt", "--reason", "through a pool")
        assert "src/first.txt" in said(machine, "status")
        said(machine, "verify")
        machine.end()


def test_a_replica_is_enough_to_look(machines: World, postgres: Server) -> None:
    """Whatever would write is refused there, with what to do."""
    with replica(postgres) as copy:
        wait_for_replay(postgres, copy)
        other = machines.machine()
        other.environment[ADDRESS] = copy.address(name_of(machines.address))
        assert "nothing written yet" in said(other, "verify", code=2)
        said(other, "status")
        assert "DBA906" in said(other, "submit", str(task_file(machines, "REPLICA-1")), code=74)
        assert "DBA906" in said(other, "worker", code=74)
