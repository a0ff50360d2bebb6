"""The notifications of a run: each thing once, by whoever drives it, and never at the run's expense."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import REMOTE, Ask, RunnerError
from interlock.graph import Tickets, abandon, negotiate, remove
from interlock.notify import history
from interlock.notify.queue import send
from interlock.reservations import open_reservations
from tests.graph.conftest import Project, Scripted, build, envelope, make_project, reviewing
from tests.graph.test_objections import answered, objecting
from tests.graph.ticket import walk
from tests.notify.conftest import program, unsent
from tests.table import each_row

TABLE = '[notify]\ncommand = ["./notify.sh"]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project that notifies people, and in which no sender is started by itself."""
    return notifying(make_project(tmp_path / "hello"), monkeypatch)


def notifying(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Configure notifications."""
    unsent(monkeypatch)
    project.configure(TABLE)
    program(project.root / "notify.sh")
    return project


def queued(root: Path) -> list[tuple[str, str, str]]:
    """Return the notifications that are queued: event, why, and about which run, in the order in which it happened."""
    with closing(sqlite3.connect(root / ".interlock/notify.sqlite")) as db:
        rows = [json.loads(row) for (row,) in db.execute("SELECT row FROM event ORDER BY rowid")]
    assert all(row["text"] and row["title"] and row["next"].startswith("interlock ") for row in rows)
    return [(row["event"], row["why"], row["run"]) for row in rows]


def failing(_ask: Ask) -> str:
    raise RunnerError("the key of the model is not set", "Set it.")


def blocking(ask: Ask) -> str:
    return envelope(ask, "BLOCKED", fail_reasons=("GATE-TESTS: there is no way",))


RUN = "HELLO-001.1"
APPROVED = ("ended", "approved", RUN)


def test_each_event_of_a_run_is_notified_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waiver(project: Project) -> None:
        answered(project, project.run(), "accept")

    def refused(project: Project) -> None:
        answered(project, project.run(), "refuse")

    def abandoned(project: Project) -> None:
        abandon(project.root, project.waiting("builder").run_id)

    cases: dict[str, tuple[dict[str, Any], Callable[[Project], object], list[tuple[str, str]]]] = {
        "approved": ({}, Project.run, [("ended", "approved")]),
        "review": ({"reviewer": REMOTE}, Project.run, [("waits", "review")]),
        "an agent's answer": ({"builder": REMOTE}, Project.run, []),
        "objection": ({"builder": Scripted([objecting()])}, Project.run, [("waits", "objection")]),
        "waiver": (
            {"builder": Scripted([objecting(), build("hi\n")])}, waiver, [("waits", "objection"), ("waits", "waiver")],
        ),
        "an objection is no refusal of its gate": (
            {"builder": Scripted([objecting(), *(build(f"{word}\n") for word in ("a", "b", "hello"))])}, refused,
            [("waits", "objection"), ("ended", "approved")],
        ),
        "stopped": ({"builder": Scripted([failing])}, Project.run, [("waits", "stopped")]),
        "blocked": ({"builder": Scripted([blocking])}, Project.run, [("waits", "blocked")]),
        "abandoned": ({}, abandoned, [("ended", "abandoned")]),
        "a gate": (
            {"builder": Scripted([build(f"{word}\n") for word in "abcd"])}, Project.run,
            [("refused", "gate"), ("waits", "blocked")],
        ),
        "twice": ({"builder": Scripted(["no envelope", "no envelope", build()])}, Project.run, [("ended", "approved")]),
        "an agent": ({"builder": Scripted(["no envelope"])}, Project.run, [("refused", "agent"), ("waits", "blocked")]),
    }  # fmt: skip
    for name, (runners, act, expected) in cases.items():
        project = notifying(make_project(tmp_path / name), monkeypatch)
        project.runners |= runners
        with suppress(RunnerError):
            act(project)
        found = queued(project.root) if (project.root / ".interlock/notify.sqlite").exists() else []
        assert found == [(event, why, RUN) for event, why in expected], name


def test_a_run_that_is_taken_on_notifies_nothing_twice_and_what_comes_next_once(project: Project) -> None:
    view = project.waiting("reviewer")
    project.drive(view.run_id)
    assert queued(project.root) == [("waits", "review", RUN)]
    (waiting,) = project.drive(view.run_id).waiting
    names = ("run_id", "task_id", "role", "attempt", "turn", "reask", "step", "prompt", "system", "tree", "evidence",
             "reports_dir")  # fmt: skip
    ask = Ask(root=str(project.root), **{name: waiting.request[name] for name in names})
    project.drive(view.run_id, reviewer=reviewing(ask))
    project.drive(view.run_id)
    assert queued(project.root) == [("waits", "review", RUN), APPROVED]


def test_notifications_of_a_run_are_configured_when_it_begins(project: Project) -> None:
    owned = project.root / "owned"

    def rewriting(ask: Ask) -> str:
        path = project.root / "interlock.toml"
        path.write_text(path.read_text().replace(TABLE, f'[notify]\ncommand = ["touch", "{owned}"]\n'))
        return build()(ask)

    project.runners["builder"] = Scripted([rewriting])
    project.run()
    send(str(project.root))
    assert [row["deliveries"][0]["state"] for row in history(str(project.root))] == ["sent"]
    assert not owned.exists()


@each_row("broken", ["a folder", "no database", "a command that fails"])
def test_trouble_with_notifications_changes_nothing_in_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    project = notifying(make_project(tmp_path / broken), monkeypatch)
    path = project.root / ".interlock/notify.sqlite"
    if broken == "a folder":
        path.mkdir(parents=True)
    elif broken == "no database":
        path.parent.mkdir()
        path.write_bytes(b"x" * 4096)
    else:
        program(project.root / "notify.sh", "#!/bin/sh\nexit 1\n")
    assert project.run().status == "APPROVED"


def test_a_removed_run_leaves_nothing_behind(project: Project) -> None:
    project.run()
    remove(project.root, RUN)
    assert queued(project.root) == []


def test_the_end_of_a_ticket_is_notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsent(monkeypatch)
    root = walk.make_project(tmp_path / "shop")
    with (root / "interlock.toml").open("a") as file:
        file.write(TABLE)
    tickets = Tickets(root)
    tickets.begin("SHOP-7", "run-1")
    walk.walk_to(tickets, "complete")
    tickets.begin("SHOP-8", "run-2")
    for _ in range(3):
        tickets.submit_payload("run-2", tickets.ticket("run-2")["revision"], {})
    assert queued(root) == [("ended", "complete", "ticket:run-1"), ("ended", "blocked", "ticket:run-2")]


def test_a_person_who_holds_a_file_is_notified_of_a_request_and_an_agent_is_not(project: Project) -> None:
    ada = open_reservations(str(project.root), "cli")
    assert ada.caller.kind == "person"
    ada.reserve_files(["src/a"])
    bob, ben = (open_reservations(str(project.root), "mcp", name=name) for name in ("bob", "ben"))
    ben.reserve_files(["src/b"])
    asked = negotiate(bob, "src/a", "for a fix", "normal")
    assert negotiate(bob, "src/a", "for a fix", "urgent", wait_seconds=0.01)["thread_id"] == asked["thread_id"]
    assert negotiate(bob, "src/b", "for a fix", "normal")["status"] == "pending"
    assert negotiate(bob, "src/free", "for a fix", "normal")["status"] == "free"
    assert queued(project.root) == [("waits", "negotiation", asked["thread_id"])]
