"""The notifications of a run: each thing once, by whoever drives it, and never at the run's expense."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import REMOTE, Ask, RunnerError
from interlock.graph import Tickets, abandon, drive
from tests.graph.conftest import Project, Scripted, asks_of, build, envelope, make_project, reviewing
from tests.graph.test_objections import answered, objecting
from tests.graph.ticket import walk
from tests.notify.conftest import history, program

TABLE = '[notify]\ncommand = ["./notify.sh"]\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project that notifies people."""
    return notifying(make_project(tmp_path / "hello"))


def notifying(project: Project) -> Project:
    """Configure notifications."""
    project.configure(TABLE)
    program(project.root / "notify.sh")
    return project


def sent(root: Path) -> list[tuple[str, str, str]]:
    """Return the notifications: event, why, and about which run, in the order in which it happened."""
    rows = history(root)[::-1]
    assert all(row["text"] and row["title"] and row["next"].startswith("interlock ") for row in rows)
    return [(row["event"], row["why"], row["run"]) for row in rows]


def failing(_ask: Ask) -> str:
    raise RunnerError("the key of the model is not set", "Set it.")


def blocking(ask: Ask) -> str:
    return envelope(ask, "BLOCKED", fail_reasons=("GATE-TESTS: there is no way",))


RUN = "HELLO-001.1"
APPROVED = ("ended", "approved", RUN)


def test_each_event_of_a_run_is_notified_with_its_reason(tmp_path: Path) -> None:
    def waiver(project: Project) -> None:
        answered(project, project.run(), "accept")

    def abandoned(project: Project) -> None:
        abandon(project.root, project.waiting("builder").run_id)

    cases: dict[str, tuple[dict[str, Any], Callable[[Project], object], list[tuple[str, str]]]] = {
        "approved": ({}, Project.run, [("ended", "approved")]),
        "review": ({"reviewer": REMOTE}, Project.run, [("waits", "review")]),
        "an agent's answer": ({"builder": REMOTE}, Project.run, []),
        "objection": ({"builder": Scripted([objecting()])}, Project.run, [("waits", "objection")]),
        "waiver": (
            {"builder": Scripted([objecting(), build("hi\n")])},
            waiver,
            [("waits", "objection"), ("waits", "waiver")],
        ),
        "stopped": ({"builder": Scripted([failing])}, Project.run, [("waits", "stopped")]),
        "blocked": ({"builder": Scripted([blocking])}, Project.run, [("waits", "blocked")]),
        "abandoned": ({}, abandoned, [("ended", "abandoned")]),
    }
    for name, (runners, act, expected) in cases.items():
        project = notifying(make_project(tmp_path / name))
        project.runners |= runners
        with suppress(RunnerError):
            act(project)
        assert sent(project.root) == [(event, why, RUN) for event, why in expected], name


def test_a_run_that_is_taken_on_notifies_nothing_twice_and_what_comes_next_once(project: Project) -> None:
    view = project.waiting("reviewer")
    project.drive(view.run_id)
    assert sent(project.root) == [("waits", "review", RUN)]
    ask = asks_of(project.drive(view.run_id), project.root)["reviewer"]
    project.drive(view.run_id, reviewer=reviewing(ask))
    project.drive(view.run_id)
    assert sent(project.root) == [("waits", "review", RUN), APPROVED]


def test_notifications_of_a_run_are_configured_when_it_begins(project: Project) -> None:
    owned = project.root / "owned"

    def rewriting(ask: Ask) -> str:
        path = project.root / "interlock.toml"
        path.write_text(path.read_text().replace(TABLE, f'[notify]\ncommand = ["touch", "{owned}"]\n'))
        return build()(ask)

    project.runners["builder"] = Scripted([rewriting])
    project.run()
    assert [row["deliveries"] for row in history(project.root)] == [[{"channel": "command", "error": ""}]]
    assert not owned.exists()


def test_a_notification_that_fails_is_said_and_changes_nothing_in_a_run(project: Project) -> None:
    program(project.root / "notify.sh", "#!/bin/sh\nexit 1\n")
    steps: list[Mapping[str, Any]] = []
    run = project.start()
    assert drive(run, root=project.root, runners=project.runners, notice=steps.append).status == "APPROVED"
    assert [step["code"] for step in steps if step["kind"] == "not_notified"] == ["NTF101"]


def test_the_end_of_a_ticket_is_notified(tmp_path: Path) -> None:
    root = walk.make_project(tmp_path / "shop")
    with (root / "interlock.toml").open("a") as file:
        file.write(TABLE)
    tickets = Tickets(root)
    tickets.begin("SHOP-7", "run-1")
    walk.walk_to(tickets, "complete")
    tickets.begin("SHOP-8", "run-2")
    for _ in range(3):
        tickets.submit_payload("run-2", tickets.ticket("run-2")["revision"], {})
    assert sent(root) == [("ended", "complete", "ticket:run-1"), ("ended", "blocked", "ticket:run-2")]
