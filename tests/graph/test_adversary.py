"""Agents that cheat, forge, flood and break off: what a run must withstand, each promise by a real run."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from interlock import agents
from interlock.agents import Ask
from interlock.graph import RunDamagedError
from interlock.graph.engine.folder import journal_path
from interlock.graph.task.runs import drive, view_run
from interlock.graph.task.store import RunStore
from interlock.graph.verify import verify_journal
from interlock.journal import Journal, JournalError, canonical
from tests.graph.conftest import (
    GATES,
    NO_EVIDENCE,
    Answer,
    Project,
    Scripted,
    build,
    envelope,
    judge_log,
    reviewing,
    spelling,
    widened,
)

SRC = "src/greeting.txt"


def first(trick: Callable[[Ask], object], answer: Answer) -> Answer:
    """Return an agent that cheats and then answers."""

    def both(ask: Ask) -> str:
        trick(ask)
        return answer(ask)

    return both


def run_folder(ask: Ask) -> Path:
    return Path(ask.root) / ".interlock" / "runs" / ask.run_id


def outcomes(project: Project, role: str) -> list[str]:
    return [entry.data["outcome"] for entry in project.entries("answer") if entry.data["role"] == role]


# -- forged records ----------------------------------------------------------------------------------------------


def test_an_answer_laid_out_for_a_later_ask_is_never_read(project: Project) -> None:
    def plant(ask: Ask) -> None:
        reviewer = replace(ask, role="reviewer")
        (Path(ask.root) / SRC).write_text("hello\n")
        store = RunStore(Path(ask.root), ask.run_id)
        mine = [path.stem for path in (run_folder(ask) / "answers").glob("*")]
        for name in ("1.1-reviewer-0", "1.1-reviewer-0.", *(stem.replace("builder", "reviewer") for stem in mine)):
            store.keep_answer(name, agents.Answer(reviewing(reviewer)), costs=False)

    project.runners["builder"] = Scripted(["no envelope", first(plant, build())])
    project.runners["reviewer"] = Scripted([lambda ask: envelope(ask, "BLOCKED", fail_reasons=("GATE-REVIEW: no",))])
    assert project.run().status == "BLOCKED"
    assert outcomes(project, "reviewer") == ["fail"]


@pytest.mark.parametrize(
    ("key", "kind"), [("1/status/READY_FOR_QA", "status"), ("1/status/APPROVED", "status"), ("note", "answer")]
)
def test_a_journal_line_that_an_agent_wrote_stops_the_run(project: Project, key: str, kind: str) -> None:
    def forge(ask: Ask) -> None:
        data = {"from": "IN_PROGRESS", "to": "APPROVED", "by": "orchestrator", "attempt": 1, "tree": ask.tree}
        Journal(journal_path(Path(ask.root))).append(ask.run_id, key, kind, data)

    project.runners["builder"] = Scripted([first(forge, build("wrong\n"))])
    run_id = project.start()
    for _ in range(2):
        with pytest.raises(RunDamagedError):
            project.drive(run_id)
    assert view_run(run_id, root=project.root).status == "IN_PROGRESS"


@pytest.mark.parametrize("place", [0, -1])
def test_a_journal_line_that_an_agent_rewrote_with_its_hash_blocks_the_approval(project: Project, place: int) -> None:
    def rewrite(ask: Ask) -> None:
        path = journal_path(Path(ask.root))
        lines = path.read_bytes().splitlines(keepends=True)
        row = json.loads(lines[place])
        del row["hash"]
        row["at"] = f"2020{row['at'][4:]}"
        row["hash"] = hashlib.sha256(canonical(row)).hexdigest()
        lines[place] = canonical(row) + b"\n"
        with path.open("r+b") as file:
            file.write(b"".join(lines))

    project.runners["reviewer"] = Scripted([first(rewrite, reviewing)])
    run_id = project.start()
    for _ in range(2):
        with pytest.raises((RunDamagedError, JournalError)):
            project.drive(run_id)
    assert view_run(run_id, root=project.root).status == "READY_FOR_REVIEW"
    assert verify_journal(project.root).problems != ()


def written_into(project: Project, run_id: str) -> None:
    Journal(journal_path(project.root)).append(run_id, "1/status/APPROVED", "status", {"to": "APPROVED"})


def frozen_file_edited(project: Project, run_id: str) -> None:
    path = RunStore(project.root, run_id).folder / "run.json"
    path.write_text(path.read_text().replace('"GATE-LINT",', ""))


def checkpoints_removed(project: Project, run_id: str) -> None:
    """The run does not begin anew over its own journal."""
    (RunStore(project.root, run_id).folder / "checkpoints.sqlite").unlink()


def task_swapped(project: Project, run_id: str) -> None:
    checkpoints_removed(project, run_id)
    path = RunStore(project.root, run_id).folder / "run.json"
    path.write_text(path.read_text().replace("Write the greeting", "Write nothing"))


@pytest.mark.parametrize(
    ("role", "harm"),
    [
        ("reviewer", written_into),
        ("reviewer", frozen_file_edited),
        ("reviewer", Project.drop_last_line),
        ("reviewer", checkpoints_removed),
        ("builder", task_swapped),
    ],
)
def test_records_that_were_changed_while_the_run_sleeps_stop_it(
    project: Project, role: str, harm: Callable[[Project, str], None]
) -> None:
    view = project.waiting(role)
    harm(project, view.run_id)
    with pytest.raises(RunDamagedError):
        drive(view.run_id, root=project.root, runners=project.runners, answers={role: "nonsense"})


def test_a_run_never_takes_the_id_of_a_run_that_the_journal_knows(project: Project) -> None:
    assert project.run().run_id == "HELLO-001.1"
    shutil.rmtree(project.root / ".interlock")
    project.runners["builder"] = Scripted([build("hello\n"), build("hello\n")])
    (project.root / SRC).unlink()
    view = project.run()
    assert (view.run_id, view.status) == ("HELLO-001.2", "APPROVED")


# -- evidence ----------------------------------------------------------------------------------------------------


def test_evidence_that_an_earlier_run_of_the_task_left_does_not_count(spelled: Project) -> None:
    assert spelled.run().status == "APPROVED"
    (spelled.root / SRC).unlink()
    spelled.runners["spelling"] = Scripted([spelling("artifacts/reports/HELLO-001/1/spelling.md")])
    assert spelled.run().status == "BLOCKED"
    assert set(outcomes(spelled, "spelling")[1:]) == {"invalid"}


def test_the_evidence_of_another_roles_gate_certifies_nothing(spelled: Project) -> None:
    spelled.runners["tester"] = Scripted(
        [
            lambda ask: envelope(
                ask,
                "QA_IN_PROGRESS",
                gates_required=(*GATES, "GATE-SPELLING"),
                gates_passed=("GATE-MSG-STRICT", "GATE-TESTS"),
                evidence={**NO_EVIDENCE, "reports": (forged(ask),)},
            )
        ]
    )
    spelled.runners["builder"] = Scripted([wrong_build])
    view = spelled.run()
    assert view.status == "BLOCKED"
    assert "pass" not in outcomes(spelled, "tester")


def forged(ask: Ask) -> str:
    """Write a log as if the command had passed, under a name of its own."""
    path = Path(ask.root) / ask.reports_dir / "mine.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"schema": "interlock.command/1", "gate": "GATE-TESTS", "argv": ["sh"], "exit_status": 0}
    path.write_text(json.dumps({**header, "timed_out": False, "output_bytes": 0, "left_out_bytes": 0}) + "\n")
    return f"{ask.reports_dir}/mine.log"


def wrong_build(ask: Ask) -> str:
    return widened(build(f"wrong {ask.attempt}\n"))(ask)


def test_one_file_cited_under_two_keys_blocks_with_its_name(spelled: Project) -> None:
    path = "artifacts/reports/HELLO-001/1/GATE-TESTS.log"
    spelled.runners["spelling"] = Scripted([spelling(console=(path,))])
    spelled.task = replace(spelled.task, run={"max_rework": 0})
    view = spelled.run()
    assert (view.status, view.values["cause"]) == ("BLOCKED", "evidence")
    assert path in view.values["fail_reasons"][0]


def test_a_command_that_changes_the_files_passes_nothing(project: Project) -> None:
    (project.root / "lint.sh").write_text("echo more >> src/greeting.txt\n")
    view = project.run()
    assert view.status == "BLOCKED"
    assert "READY_FOR_REVIEW" not in project.path()


# -- files in scope ----------------------------------------------------------------------------------------------


def unreadable(ask: Ask) -> Path:
    """Return a file in scope whose name is not UTF-8."""
    return Path(ask.root) / "src" / os.fsdecode(b"\xff")


def plant(ask: Ask) -> None:
    unreadable(ask).write_bytes(b"x")


def test_a_scope_that_cannot_be_read_goes_back_before_anybody_judges_it(project: Project) -> None:
    project.runners["builder"] = Scripted([first(plant, build()), first(lambda ask: unreadable(ask).unlink(), build())])
    assert project.run().status == "APPROVED"
    assert project.path()[:4] == ["IN_PROGRESS", "READY_FOR_QA", "BLOCKED", "IN_PROGRESS"]


def test_a_scope_that_becomes_unreadable_after_the_hand_over_goes_stale(project: Project) -> None:
    project.runners["tester"] = Scripted([first(plant, judge_log), judge_log])
    remove = first(lambda ask: unreadable(ask).unlink(missing_ok=True), build("hello\n\n"))
    project.runners["builder"] = Scripted([build(), remove])
    assert project.run().status == "APPROVED"
    blocked = next(entry for entry in project.entries("status") if entry.data["to"] == "BLOCKED")
    assert blocked.data["cause"] == "stale"


def test_a_drive_in_the_middle_of_another_is_refused_even_without_its_lock_file(project: Project) -> None:
    caught: list[Exception] = []

    def steal(ask: Ask) -> None:
        (run_folder(ask) / "lock").unlink()
        quiet = {**project.runners, "builder": Scripted([build("hello\n")])}
        view = drive(ask.run_id, root=project.root, runners=quiet)
        caught.append(AssertionError(view.status))

    project.runners["builder"] = Scripted([first(steal, build())])
    run_id = project.start()
    with pytest.raises(RunDamagedError):
        project.drive(run_id)
    assert len(caught) == 1
