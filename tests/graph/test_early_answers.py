"""Corrected answers that come while the roles beside are still at work: kept, judged in their turn, and never twice."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from click.testing import CliRunner

from interlock.agents import REMOTE, Ask
from interlock.cli.main import interlock
from interlock.graph import AnswerError
from interlock.graph.task import runs as driving
from interlock.graph.task.background import Drives
from interlock.graph.task.explain import explain_run, run_summary
from interlock.graph.task.runs import drive, view_run
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import task_from_mapping
from interlock.graph.task.view import keep_early
from tests.graph.conftest import CONFIG, GATES, Project, Scripted, asks_of, build, judge_log, qa_role, reviewing

STYLIST = qa_role("stylist", "GATE-STYLE", 'command = ["sh", "check.sh"]')
ALL = (*GATES[:2], "GATE-STYLE", *GATES[2:])
NEXT = "HELLO-001.1/HELLO-001/tester/1.1/1"


def in_full(ask: Ask, answer: Callable[[Ask], str] = judge_log) -> str:
    """Return an answer that names all gates of these tasks, in the name of whoever is asked."""
    text = answer(ask).replace("- GATE-TESTS\n- GATE-LINT", "- GATE-TESTS\n- GATE-STYLE\n- GATE-LINT")
    return text.replace(
        "GATES_PASSED:\n- GATE-MSG-STRICT\n- GATE-TESTS", f"GATES_PASSED:\n- GATE-MSG-STRICT\n- {mine(ask)}"
    )


def mine(ask: Ask) -> str:
    return "GATE-STYLE" if ask.role == "stylist" else "GATE-TESTS"


@pytest.fixture
def project(project: Project) -> Project:
    """Return a project with two QA roles, both of which answer from outside."""
    (project.root / "interlock.toml").write_text(CONFIG + STYLIST, encoding="utf-8")
    row = {"task_id": "HELLO-001", "task": "Write the greeting", "gates_required": list(ALL), "scope": ["src/**"]}
    project.task = task_from_mapping(row, base=str(project.root))
    project.runners |= {
        "builder": Scripted([lambda ask: in_full(ask, build())]),
        "tester": REMOTE,
        "stylist": REMOTE,
        "reviewer": Scripted([lambda ask: in_full(ask, reviewing)]),
    }
    return project


def refused_once(project: Project) -> tuple[str, dict[str, Ask]]:
    """Take a run to where the tester was refused and the stylist has not answered."""
    view = project.run()
    asks = asks_of(view, project.root)
    assert set(asks) == {"tester", "stylist"}
    view = project.drive(view.run_id, tester="no envelope")
    assert ([item.role for item in view.waiting], dict(view.again)) == (["stylist"], {"tester": NEXT})
    return view.run_id, asks


def outcomes(project: Project) -> list[tuple[str, int, str]]:
    return [(e.data["role"], e.data["reask"], e.data["outcome"]) for e in project.entries("answer")
            if e.data["role"] in ("tester", "stylist")]  # fmt: skip


def test_a_corrected_answer_is_kept_and_judged_when_the_role_beside_has_answered(project: Project) -> None:
    run_id, asks = refused_once(project)
    lines = len(project.entries())
    view = project.drive(run_id, tester=in_full(asks["tester"]))
    assert ([item.role for item in view.waiting], view.kept, len(project.entries())) == (
        ["stylist"],
        ("tester",),
        lines,
    )
    view = project.drive(run_id, stylist=in_full(asks["stylist"]))
    assert (view.status, view.kept, dict(view.again)) == ("APPROVED", (), {})
    assert sorted(outcomes(project)) == [("stylist", 0, "pass"), ("tester", 0, "invalid"), ("tester", 1, "pass")]


def test_an_early_answer_that_is_wrong_again_costs_a_re_ask_when_it_is_judged(project: Project) -> None:
    run_id, asks = refused_once(project)
    assert project.drive(run_id, tester="no envelope either").values["answers"]["tester"]["reask"] == 0
    view = project.drive(run_id, stylist=in_full(asks["stylist"]))
    assert (view.phase, asks_of(view, project.root)["tester"].reask) == ("waiting", 2)
    view = project.drive(run_id, tester="nor now")
    assert (view.status, view.values["cause"]) == ("BLOCKED", "protocol")


def test_what_is_not_the_one_early_answer_is_refused_and_changes_nothing(project: Project) -> None:
    run_id, asks = refused_once(project)

    def kept() -> dict[str, bytes]:
        folder = RunStore(project.root, run_id).folder / "answers"
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    def refused(asks: dict[str, str] | None = None, **answers: str) -> str:
        files = kept()
        with pytest.raises(AnswerError) as caught:
            drive(run_id, root=project.root, runners=project.runners, answers=answers, asks=asks)
        assert kept() == files
        return caught.value.message

    good = in_full(asks["tester"])
    assert NEXT in refused({"tester": asks["tester"].ask_id}, tester=good), "the ask that is over"
    for other in (NEXT[:-1] + "2", NEXT.replace("1.1/1", "2.1/1"), NEXT.replace("HELLO-001.1", "HELLO-001.2")):
        refused({"tester": other}, tester=good)
    refused(builder="x")
    refused(reviewer="x")
    refused(tester=good, reviewer="x")
    project.drive(run_id, tester=good)
    assert NEXT in refused(tester=f"{good} "), "a second one"
    assert project.drive(run_id, tester=good).kept == ("tester",), "the same once more"
    project.drive(run_id, stylist=in_full(asks["stylist"]))
    assert "does not wait" in refused(tester=good)


@pytest.mark.parametrize("answer", ["no envelope", None])
def test_a_role_with_a_verdict_hands_nothing_in(project: Project, answer: str | None) -> None:
    (project.root / "interlock.toml").write_text(f"{CONFIG}{STYLIST}[run]\nmax_reasks = 0\n", encoding="utf-8")
    view = project.run()
    after = project.drive(view.run_id, tester=answer or in_full(asks_of(view, project.root)["tester"]))
    assert (dict(after.again), [item.role for item in after.waiting]) == ({}, ["stylist"])
    with pytest.raises(AnswerError):
        project.drive(view.run_id, tester="another")


def test_a_kept_answer_does_not_count_for_files_that_changed(project: Project) -> None:
    run_id, asks = refused_once(project)
    project.drive(run_id, tester=in_full(asks["tester"]))
    stylist = in_full(asks["stylist"])
    (project.root / "src/greeting.txt").write_text("hello\nagain\n")
    view = project.drive(run_id, stylist=stylist)
    assert view.kept == ()
    assert [row for row in outcomes(project) if row[0] == "tester"] == [
        ("tester", 0, "invalid"),
        ("tester", 1, "stale"),
    ]


@pytest.mark.parametrize("at", ["before it is handed in", "while it is judged"])
def test_a_kept_answer_survives_a_process_that_dies(project: Project, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    run_id, asks = refused_once(project)
    project.drive(run_id, tester=in_full(asks["tester"]))

    def die(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if at == "before it is handed in":
            patch.setattr(driving, "resume_map", die)
        else:
            keep = RunStore.keep_answer

            def keep_or_die(store: RunStore, key: str, text: str) -> None:
                if "-tester-1" in key:
                    die()
                keep(store, key, text)

            patch.setattr(RunStore, "keep_answer", keep_or_die)
        with pytest.raises(KeyboardInterrupt):
            project.drive(run_id, stylist=in_full(asks["stylist"]))
    view = view_run(run_id, root=project.root)
    assert (view.phase, view.waiting, view.kept) == ("running", (), ("tester",))
    with pytest.raises(AnswerError):
        project.drive(run_id, tester="another")
    assert project.drive(run_id).status == "APPROVED"
    assert [row for row in outcomes(project) if row[0] == "tester"] == [("tester", 0, "invalid"), ("tester", 1, "pass")]


def test_an_answer_is_on_disk_before_it_is_acknowledged(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id, asks = refused_once(project)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("interlock.graph.task.store.os.fsync", full)
    with pytest.raises(Exception, match="cannot be stored"):
        project.drive(run_id, tester=in_full(asks["tester"]))
    monkeypatch.undo()
    assert view_run(run_id, root=project.root).kept == ()


def test_a_role_with_a_runner_at_work_keeps_nobody_from_correcting_an_answer(project: Project) -> None:
    """The stylist's second answer takes long; the tester was refused beside its first one."""
    at_work, go = threading.Event(), threading.Event()

    def slow(ask: Ask) -> str:
        at_work.set()
        assert go.wait(60)
        return in_full(ask)

    project.runners["stylist"] = Scripted(["no envelope", slow])
    view = project.run()
    tester = asks_of(view, project.root)["tester"]
    worker = threading.Thread(target=project.drive, args=(view.run_id,), kwargs={"tester": "no envelope"})
    worker.start()
    try:
        assert at_work.wait(60)
        drives = Drives(project.root)
        view = drives.advance(view.run_id, answers={"tester": in_full(tester)}, asks={"tester": NEXT}, wait_seconds=0)
        assert (view.phase, view.kept) == ("running", ("tester",))
        assert drive(view.run_id, root=project.root, answers={"tester": in_full(tester)}).kept == ("tester",)
        with pytest.raises(AnswerError):
            drives.advance(view.run_id, answers={"tester": "another"}, wait_seconds=0)
        with pytest.raises(AnswerError):
            drives.advance(view.run_id, answers={"tester": "another"}, asks={"tester": tester.ask_id}, wait_seconds=0)
    finally:
        go.set()
        worker.join(60)
    assert view_run(view.run_id, root=project.root).status == "APPROVED"
    assert [row for row in outcomes(project) if row[0] == "tester"] == [("tester", 0, "invalid"), ("tester", 1, "pass")]


def test_of_many_early_answers_at_once_one_is_taken(project: Project) -> None:
    run_id, asks = refused_once(project)
    view = view_run(run_id, root=project.root)

    def hand_in(number: int) -> str:
        try:
            text = f"{in_full(asks['tester'])}{' ' * number}"
            keep_early(view, RunStore(project.root, run_id), {"tester": text}, {"tester": NEXT})
        except AnswerError as error:
            return error.code
        return "kept"

    with ThreadPoolExecutor(8) as pool:
        results = pool.map(hand_in, range(8))
    assert sorted(results) == ["RUN605"] * 7 + ["kept"]


def test_the_command_line_shows_what_is_kept_and_who_can_correct_an_answer(project: Project) -> None:
    run_id, asks = refused_once(project)
    steps = explain_run(view_run(run_id, root=project.root), project.root)["next"]
    assert all(f"--answer {role}=FILE" in step for role, step in zip(("stylist", "tester"), steps, strict=True))
    view = project.drive(run_id, tester=in_full(asks["tester"]))
    assert len(explain_run(view, project.root)["next"]) == 1
    summary = run_summary(view, project.root)
    assert summary["kept"] == [{"role": "tester", "ask_id": NEXT}]
    shown = CliRunner().invoke(interlock, ["status", run_id, "--root", str(project.root)])
    assert "kept        the answer of tester" in shown.stdout
