"""Whole runs through LangGraph and SQLite checkpoints: what moves a task, what stops it, and what survives."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.agents import Ask
from interlock.graph import GraphError, RunBusyError, RunDamagedError, TaskError, UnknownRunError, start_run
from interlock.graph.engine.folder import journal_path
from interlock.graph.task.explain import explain_run, waits_of
from interlock.graph.task.runs import answer_question, comment, drive, view_run
from interlock.graph.task.store import RunStore
from interlock.graph.verify import verify_journal
from tests import warm
from tests.graph.conftest import GATES, Project, Scripted, asks_of, build, envelope, judge_log, reviewing, spelling

GOOD_PATH = ["IN_PROGRESS", "READY_FOR_QA", "QA_IN_PROGRESS", "READY_FOR_REVIEW", "APPROVED"]
FENCED = "Here is my answer:\n```\nSTATUS: READY_FOR_QA\n```\n"


def test_a_good_run_ends_approved_and_its_journal_is_whole(project: Project) -> None:
    view = project.run()
    assert (view.phase, view.status) == ("done", "APPROVED")
    assert project.path() == GOOD_PATH
    assert view_run(view.run_id, root=project.root).head == view.head
    assert verify_journal(project.root).problems == ()
    ours = [entry for entry in project.entries("status") if entry.data["by"] == "orchestrator"]
    assert [entry.data["to"] for entry in ours] == GOOD_PATH[2:]
    approved = ours[-1].data["envelope"]
    assert approved["gates_passed"] == list(GATES)
    assert approved["evidence"]["reports"]
    assert view.values["fail_reasons"] == []


def test_a_failed_gate_sends_the_work_back_with_its_reason(project: Project) -> None:
    project.runners["builder"] = Scripted([build("wrong\n"), build()])
    assert project.run().status == "APPROVED"
    assert project.path() == [*GOOD_PATH[:3], "BLOCKED", *GOOD_PATH]
    second = project.asks("builder")[1]
    assert second.attempt == 2
    assert "GATE-TESTS: the tests fail" in second.prompt


def test_a_spent_rework_budget_ends_blocked_with_the_reasons(project: Project) -> None:
    project.runners["builder"] = Scripted([build(f"wrong {n}\n") for n in range(9)])
    view = project.run()
    assert (view.phase, view.status, view.values["attempt"]) == ("done", "BLOCKED", 4)
    assert view.values["fail_reasons"] == ["GATE-TESTS: the tests fail"]
    assert len(project.asks("builder")) == 4


def test_an_invalid_answer_is_sent_back_with_its_findings_in_one_bounded_message(project: Project) -> None:
    project.runners["builder"] = Scripted([FENCED, build()])
    assert project.run().status == "APPROVED"
    first, second = project.asks("builder")
    assert (first.reask, second.reask) == (0, 1)
    assert "refused" in second.prompt
    assert len(second.prompt) < len(first.prompt) + 20_000
    refused = [entry for entry in project.entries("answer") if entry.data["outcome"] == "invalid"]
    assert [entry.data["role"] for entry in refused] == ["builder"]
    assert refused[0].data["findings"]
    assert refused[0].data["effective_status"] == "BLOCKED"


def test_spent_reasks_end_blocked_under_the_message_gate(project: Project) -> None:
    project.runners["builder"] = Scripted([FENCED])
    view = project.run()
    assert (view.phase, view.status) == ("done", "BLOCKED")
    assert len(project.asks("builder")) == 3
    assert view.values["fail_reasons"][0].startswith("GATE-MSG-STRICT")
    assert project.path() == ["IN_PROGRESS", "BLOCKED"]


def test_work_is_not_handed_over_without_a_change(project: Project) -> None:
    project.runners["builder"] = Scripted([lambda ask: envelope(ask, "READY_FOR_QA")])
    view = project.run()
    assert view.status == "BLOCKED"
    codes = {item["code"] for entry in project.entries("answer") for item in entry.data["findings"]}
    assert "RUN610" in codes


def test_a_builder_cannot_report_progress_for_ever(project: Project) -> None:
    project.runners["builder"] = Scripted([lambda ask: envelope(ask, "IN_PROGRESS")])
    view = project.run()
    assert (view.phase, view.status) == ("done", "BLOCKED")
    assert len(project.asks("builder")) == 6


def test_a_builder_that_writes_the_testers_evidence_beforehand_gains_nothing(project: Project) -> None:
    def forger(ask: Ask) -> str:
        folder = Path(ask.root) / "artifacts/reports/HELLO-001/1"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "GATE-TESTS.log").write_text('{"schema":"interlock.command/1","exit_status":0}\nall good\n')
        (folder / "GATE-TESTS.manifest.json").write_text("{}")
        return build("wrong\n")(ask)

    project.runners["builder"] = Scripted([forger, build()])
    assert project.run().status == "APPROVED"
    assert project.path() == [*GOOD_PATH[:3], "BLOCKED", *GOOD_PATH]


def test_a_stale_verdict_names_the_files_that_changed_and_the_same_tree_may_be_handed_over_again(
    project: Project,
) -> None:
    def meddler(ask: Ask) -> str:
        (Path(ask.root) / "src/extra.txt").write_text("left behind by a tool\n")
        return judge_log(ask)

    project.runners["tester"] = Scripted([meddler, judge_log])
    assert project.run().status == "APPROVED"
    blocked = next(entry for entry in project.entries("status") if entry.data["to"] == "BLOCKED")
    assert any("src/extra.txt" in reason for reason in blocked.data["envelope"]["fail_reasons"])
    assert len(project.asks("builder")) == 2


def test_files_changed_during_review_make_every_verdict_stale(project: Project) -> None:
    def meddler(ask: Ask) -> str:
        text = reviewing(ask)
        (Path(ask.root) / "src/greeting.txt").write_text("hello\nand more\n")
        return text

    project.runners["reviewer"] = Scripted([meddler, reviewing])
    view = project.run()
    assert view.status == "APPROVED"
    blocked = next(entry for entry in project.entries("status") if entry.data["to"] == "BLOCKED")
    assert blocked.data["envelope"]["fail_reasons"]


def test_an_evidence_file_swapped_before_approval_blocks(project: Project) -> None:
    def swapper(ask: Ask) -> str:
        log = next((Path(ask.root) / "artifacts/reports/HELLO-001/1").glob("GATE-TESTS*.log"))
        log.write_bytes(log.read_bytes() + b"swapped\n")
        return reviewing(ask)

    project.runners["reviewer"] = Scripted([swapper, reviewing])
    project.runners["builder"] = Scripted([build(), build("hello\n\n")])
    view = project.run()
    blocked = next(entry for entry in project.entries("status") if entry.data["to"] == "BLOCKED")
    assert blocked.data["cause"] == "evidence"
    assert view.status == "APPROVED"


def test_a_command_gate_without_a_certifier_is_run_by_the_orchestrator(project: Project) -> None:
    project.runners["builder"] = Scripted([build("\thello\n"), build()])
    (project.root / "check.sh").write_text("exit 0\n")
    assert project.run().status == "APPROVED"
    reasons = next(e for e in project.entries("status") if e.data["to"] == "BLOCKED").data["envelope"]["fail_reasons"]
    assert any(reason.startswith("GATE-LINT") for reason in reasons)


def test_a_remote_role_lets_the_run_sleep_until_its_answer_comes(project: Project) -> None:
    view = project.waiting("reviewer")
    assert (view.phase, view.status) == ("waiting", "READY_FOR_REVIEW")
    assert [item.role for item in view.waiting] == ["reviewer"]
    again = project.drive(view.run_id)
    assert (again.phase, again.waiting) == ("waiting", view.waiting)
    lines = len(project.entries())
    request = view.waiting[0].request
    assert request["tree"] == view.values["tree"]
    ask = asks_of(view, project.root)["reviewer"]
    refused = project.drive(view.run_id, reviewer="nonsense")
    assert (refused.phase, refused.waiting[0].request["reask"]) == ("waiting", 1)
    done = project.drive(view.run_id, reviewer=reviewing(ask))
    assert (done.phase, done.status) == ("done", "APPROVED")
    assert len(project.entries()) > lines


def test_an_answer_that_nobody_waits_for_is_refused_and_changes_nothing(project: Project) -> None:
    view = project.waiting("reviewer")
    before = journal_path(project.root).read_bytes()
    with pytest.raises(GraphError):
        project.drive(view.run_id, tester="STATUS: BLOCKED")
    assert journal_path(project.root).read_bytes() == before
    assert view_run(view.run_id, root=project.root).phase == "waiting"


def test_a_run_is_driven_by_one_process_at_a_time(project: Project) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(ask: Ask) -> str:
        entered.set()
        assert leave.wait(30)
        return build()(ask)

    project.runners["builder"] = Scripted([slow])
    run_id = project.start()
    worker = threading.Thread(target=project.drive, args=(run_id,))
    worker.start()
    assert entered.wait(30)
    with pytest.raises(RunBusyError):
        project.drive(run_id)
    leave.set()
    worker.join(60)
    assert project.path() == GOOD_PATH


def test_a_changed_policy_is_reported_and_not_applied(project: Project) -> None:
    view = project.waiting("reviewer")
    project.configure("[run]\nmax_rework = 0")
    project.drive(view.run_id, reviewer="nonsense")
    reports = project.entries("policy_changed")
    assert len(reports) == 1
    assert reports[0].data["applied"] == "frozen"
    assert view_run(view.run_id, root=project.root).policy.max_rework == 3


def test_unknown_runs_are_refused_by_name(project: Project) -> None:
    for name in ("HELLO-001.7", "../x", ""):
        with pytest.raises(UnknownRunError):
            drive(name, root=project.root)


def test_a_role_that_is_asked_again_does_not_hold_up_or_repeat_the_others(spelled: Project) -> None:
    spelled.runners["spelling"] = Scripted([FENCED, FENCED, spelling()])
    assert spelled.run().status == "APPROVED"
    assert [len(spelled.asks(name)) for name in ("builder", "tester", "spelling", "reviewer")] == [1, 1, 3, 1]
    qa = [entry.data["role"] for entry in spelled.entries("answer")][1:-1]
    assert qa == ["tester", "spelling", "spelling", "spelling"]


def test_a_gate_that_looks_misspelt_is_refused_and_one_that_resembles_none_is_warned_of(project: Project) -> None:
    roles = tuple(project.runners)
    with pytest.raises(TaskError) as refused:
        start_run(project.root, replace(project.task, gates_required=(*GATES, "GATE-TESTZ")), roles=roles)
    assert any("TSK703" in problem and "GATE-TESTS" in problem for problem in refused.value.problems)
    warnings: list[str] = []
    task = replace(project.task, gates_required=(*GATES, "GATE-HUMAN-EYES"))
    start_run(project.root, task, roles=roles, warn=warnings.append)
    assert "TSK703" in [text.split()[0] for text in warnings]


def test_a_roster_without_a_judge_is_refused_unless_a_command_decides(project: Project) -> None:
    task = replace(project.task, gates_required=("GATE-MSG-STRICT", "GATE-REVIEW"))
    with pytest.raises(TaskError) as caught:
        start_run(project.root, task, roles=("builder", "reviewer"))
    assert any("TSK708" in problem for problem in caught.value.problems)
    with pytest.raises(TaskError) as caught:
        start_run(project.root, project.task, roles=("builder", "reviewer"))
    assert [problem.split()[0] for problem in caught.value.problems] == ["RUN620"], "GATE-TESTS names the tester"
    commanded = replace(project.task, gates_required=("GATE-MSG-STRICT", "GATE-LINT"))
    assert start_run(project.root, commanded, roles=("builder",))


@pytest.mark.parametrize("phase", ["new", "running"])
def test_a_run_of_another_version_is_shown_and_neither_goes_on_nor_asks_anybody(project: Project, phase: str) -> None:
    run_id = project.start()
    if phase == "running":
        why = "GATE-LINT: OBJECTION: no linter"
        project.runners["builder"] = Scripted([lambda ask: envelope(ask, "BLOCKED", fail_reasons=(why,))])
        assert project.drive(run_id).question is not None
    store = RunStore(project.root, run_id)
    path = store.folder / "run.json"
    path.write_text(path.read_text().replace('"format"', '"was"'))
    for act in (
        lambda: project.drive(run_id),
        lambda: answer_question(project.root, run_id, "accept", number=1, by="ada"),
        lambda: comment(project.root, run_id, 0, "src/a.txt", 1, "why?", "ada"),
    ):
        with pytest.raises(RunDamagedError, match="another version") as refused:
            act()
        assert f"interlock abandon {run_id}" in refused.value.fix
    (store.folder / "stopped.json").write_text('{"code": "RUN101", "message": "no key", "fix": "Resume the run."}')
    view = view_run(run_id, root=project.root)
    assert (view.phase, view.question, [*waits_of(view, store)]) == (phase, None, [])
    assert f"interlock abandon {run_id}" in explain_run(view, project.root)["next"][0]
    assert "it can be read, not continued" in warm.interlock(project.root, "status").stdout
    assert verify_journal(project.root).problems == ()


def test_kept_copies_of_evidence_outlive_a_second_run_of_the_task(project: Project) -> None:
    project.run()
    logs = [row for entry in project.entries("evidence") for row in entry.data["files"]]
    shutil.rmtree(project.root / "artifacts/reports")
    for row in logs:
        assert (project.root / "artifacts/interlock/objects" / row["sha256"][:2] / row["sha256"]).is_file()
