"""What each screen shows of real runs, and what a person does there."""

import html
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from interlock.agents import REMOTE
from interlock.graph import Drives, RunStore, Tickets, abandon, comment, journal_path, verify_journal, view_run
from interlock.graph.feed import Feed
from interlock.journal import Journal
from interlock.reservations import open_reservations
from interlock.reservations.identity import person
from interlock.web import report
from interlock.web.views.run import log_of
from tests.graph.conftest import Project, Scripted, build
from tests.graph.test_objections import WHY, answered, decide, objecting
from tests.web.browsing import sample
from tests.web.conftest import World


@pytest.fixture
def reviewed(project: Project) -> str:
    """Return the run that waits for a person's review."""
    project.runners["builder"] = Scripted([build("hi\n"), build()])
    project.runners["reviewer"] = REMOTE
    # In a process of the pages, where these runners are not, everybody answers from outside.
    project.task = replace(project.task, agents={name: {"runner": "remote"} for name in project.runners})
    return project.run().run_id


def test_the_inbox_and_the_title_count_what_waits_and_each_item_leads_to_its_answer(
    reviewed: str, over: Callable[..., World], project: Project
) -> None:
    browser = over(project.root).browser()
    page = browser.get("/").text
    assert "<title>(1) Inbox" in page
    assert f"/hello/runs/{reviewed}/answer/reviewer" in page


def test_a_run_shows_why_it_is_there_its_attempts_its_answers_and_its_log(
    reviewed: str, over: Callable[..., World], project: Project
) -> None:
    browser = over(project.root).browser()
    text = browser.text(f"/hello/runs/{reviewed}")
    for part in (
        "READY_FOR_REVIEW",
        "GATE-TESTS",
        "reviewer is asked",
        "tester FAIL",
        "BLOCKED by orchestrator, attempt 1",
    ):
        assert part in text
    seq = next(entry.seq for entry in project.entries("answer") if entry.data["role"] == "tester")
    assert "ASSIGNED_AGENT: tester" in browser.text(f"/hello/runs/{reviewed}/answers/{seq}")


def test_a_run_that_waits_for_its_files_says_so_on_its_page_and_the_board_and_can_be_ended_before_it_starts(
    over: Callable[..., World], project: Project
) -> None:
    run_id = project.start()
    browser, store = over(project.root).browser(), RunStore(project.root, run_id)
    progress = store.folder / "progress.jsonl"
    blocker = {"holder": "ann", "held_pattern": "src/**", "state": "alive", "expires_in_seconds": 600, "waiting": False}
    with store.locked():
        queued = {"kind": "queued", "at": "2026-01-02T03:04:05Z", "blockers": [blocker], "waited_seconds": 0}
        progress.write_text(json.dumps(queued) + "\n", encoding="utf-8")
        for path in (f"/hello/runs/{run_id}", "/board"):
            assert "ann (alive) holds `src/**`" in browser.text(path)
        progress.write_text(json.dumps(queued | {"kind": "unqueued"}) + "\n", encoding="utf-8")
        assert "ann (alive)" not in browser.text("/board")
        asked = {"kind": "asking", "at": "2026-01-02T03:04:05Z", "role": "builder"}
        works = {"kind": "working", "at": "2026-01-02T03:04:06Z", "role": "builder", "tool": "Edit <a>", "tokens": 1200}
        progress.write_text(f"{json.dumps(asked)}\n{json.dumps(works)}\n", encoding="utf-8")
        for path in (f"/hello/runs/{run_id}", "/board"):
            assert "Edit <a> · 1,200 tokens" in browser.text(path)
            assert "data-moving" in browser.get(path).text
    assert "data-moving" not in browser.get(f"/hello/runs/{run_id}").text
    assert "not started" in browser.text("/board")
    assert f"interlock abandon {run_id}" in browser.text("/")
    for path in ("", "/evidence", "/changes"):
        assert browser.get(f"/hello/runs/{run_id}{path}").status_code == 200
    early = browser.get(f"/hello/runs/{run_id}/answer/builder")
    assert (early.status_code, "it has not started" in early.text) == (409, True)
    assert ">Continue<" in browser.get(f"/hello/runs/{run_id}").text
    frozen = store.folder / "run.json"
    frozen.write_text(frozen.read_text().replace('"format"', '"was"'))
    assert ">Continue<" not in over(project.root).browser().get(f"/hello/runs/{run_id}").text
    browser.post(f"/hello/runs/{run_id}/abandon", sure="yes")
    assert store.abandoned()


def test_a_review_in_the_page_is_the_envelope_that_the_run_takes(
    reviewed: str, over: Callable[..., World], project: Project
) -> None:
    browser = over(project.root).browser("review")
    form = browser.get(f"/hello/runs/{reviewed}/answer/reviewer").text
    ask = re.findall(r'name="ask_id" value="([^"]+)"', form)[0]
    where = f"/hello/runs/{reviewed}/answer/reviewer"
    assert " checked" not in form
    assert "WEB403" in browser.post(where, output="Read every line.", ask_id=ask).text
    bad = browser.post(f"{where}/preview", outcome="pass", text="STATUS: APPROVED")
    assert "ENV223" in bad.text
    done = browser.post(where, outcome="pass", output="Read every line.", ask_id=ask)
    assert done.status_code == 303, done.text
    assert view_run(reviewed, root=project.root).status == "APPROVED"
    again = browser.post(where, outcome="fail", reasons="no", ask_id=ask)
    assert again.status_code == 409
    assert "does not wait for reviewer" in again.text


def test_a_session_that_may_only_read_answers_nothing(
    reviewed: str, over: Callable[..., World], project: Project
) -> None:
    browser = over(project.root).browser("read")
    for path in ("answer/reviewer", "resume", "abandon", "comment", "decide"):
        answer = browser.post(f"/hello/runs/{reviewed}/{path}", sure="yes", answer="waive", number="1", reason="x")
        assert "WEB403" in answer.text, path
    assert view_run(reviewed, root=project.root).phase == "waiting"


def test_an_objection_is_answered_and_a_gate_waived_by_a_session_that_may_decide(
    over: Callable[..., World], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The pages' process has none of these runners; the run is taken on by the one that has.
    monkeypatch.setattr(Drives, "advance", lambda _drives, _run, **_named: None)  # pyright: ignore
    project.runners["builder"] = Scripted([objecting(), build("hi\n")])
    run_id = project.run().run_id
    world = over(project.root)
    browser, other = world.browser("decide"), world.browser("review")
    where = f"/hello/runs/{run_id}/decide"
    assert WHY in browser.text(where)
    assert "the last attempt that was judged" in browser.text(where)
    assert "src/greeting.txt in scope added, +1 −0" in browser.text(where)
    changes = browser.text(f"/hello/runs/{run_id}/changes")
    assert "attempt 1, question 1" in changes
    assert "src/greeting.txt in scope added, +1 −0" in changes
    assert "objection" in browser.text("/")
    assert "WEB403" in other.post(where, answer="accept", number="1").text
    browser.post(where, answer="accept", number="1", reason="it is so")
    late = browser.post(where, answer="refuse", number="1", reason="no")
    assert "ada answered `accept`" in late.text
    assert project.drive(run_id).question is not None
    assert "Waive GATE-TESTS" in browser.text(where)
    assert "Lines of 1 changed file src/greeting.txt" in browser.text(where)
    browser.post(where, answer="waive", number="2", gate="GATE-TESTS", reason="seen")
    assert project.drive(run_id).status == "APPROVED"
    for text in (browser.text(f"/hello/runs/{run_id}"), re.sub(r"<[^>]+>", "", report(project.root, run_id))):
        assert "waived GATE-TESTS by ada" in text
        assert "missing" not in text
    assert "(GATE-TESTS waived by ada)" in browser.text("/board")


def test_a_corrected_task_is_shown_everywhere_and_the_log_says_what_was_changed_and_why(
    over: Callable[..., World], project: Project
) -> None:
    project.runners["builder"] = Scripted([objecting(f"GATE-LINT: OBJECTION: {WHY}")])
    view = project.run()
    gates = tuple(gate for gate in project.task.gates_required if gate != "GATE-LINT")
    task = replace(project.task, task="Write hello", scope=("src/*",), gates_required=gates)
    decide(project, view, "correct", task=task, reason="tabs are fine")
    project.drive(view.run_id)
    feed = Feed(project.root)
    feed.catch_up()
    browser = over(project.root).browser()
    pages = [browser.text(path) for path in ("/board", f"/hello/runs/{view.run_id}")]
    for shown in (feed.rows[view.run_id].title, *pages, report(project.root, view.run_id)):
        assert "Write hello" in shown
        assert project.task.task not in shown
    assert "ada corrects the task (task text, scope, gates): tabs are fine" in pages[1]
    assert verify_journal(project.root).verdict == "whole"


def test_the_log_has_the_reason_of_each_answer_of_a_person(project: Project) -> None:
    said: list[str] = []
    for answers in (("accept", "waive"), ("accept", "decline"), ("refuse",)):
        project.runners["builder"] = Scripted([objecting(), build("hi\n")])
        view = project.run()
        for kind in answers:
            view = answered(project, view, kind, reason=f"because of {kind}")
        rows = [row for row in project.entries() if row.type in ("objection_answered", "waiver", "waiver_declined")]
        said += [line.text for line in log_of(rows)]
    for kind in ("accept", "waive", "decline", "refuse"):
        assert any(text.endswith(f"because of {kind}") for text in said), kind


def test_changes_show_hand_overs_against_one_another_and_take_comments(
    reviewed: str, over: Callable[..., World], project: Project
) -> None:
    browser = over(project.root).browser()
    text = browser.text(f"/hello/runs/{reviewed}/changes?from=1&to=2")
    assert "src/greeting.txt in scope changed, +1 −1" in text
    kept = browser.post(f"/hello/runs/{reviewed}/comment", attempt="2", path="src/greeting.txt", line="1", text="why?")
    assert kept.status_code == 303
    assert "ada now why?" in browser.text(f"/hello/runs/{reviewed}/changes")
    assert 'name="line"' in browser.get(f"/hello/runs/{reviewed}/changes").text
    assert "src/greeting.txt:1 why?" in browser.get(f"/hello/runs/{reviewed}/answer/reviewer").text
    abandon(project.root, reviewed)
    assert 'name="line"' not in browser.get(f"/hello/runs/{reviewed}/changes").text


def test_evidence_is_shown_beside_that_of_an_earlier_attempt_and_its_files_run_nowhere(
    reviewed: str, over: Callable[..., World], project: Project
) -> None:
    browser = over(project.root).browser()
    page = browser.get(f"/hello/runs/{reviewed}/evidence?before=1&after=2").text
    path = re.findall(r'href="/[0-9a-f]{16}(/hello/runs/[^"]+/files/[0-9a-f]{64})"', page)[0]
    answer = browser.get(path)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert browser.get(path[:-64] + "0" * 64).status_code == 404
    log = next(project.root.glob("artifacts/reports/HELLO-001/2/GATE-TESTS.log"))
    log.write_text("another")
    assert "not as it was judged; the kept copy is shown" in browser.text(f"/hello/runs/{reviewed}/evidence")
    assert browser.get(path).text == answer.text


def test_an_objection_can_be_answered_whatever_the_lines_of_its_evidence_are(
    over: Callable[..., World], project: Project
) -> None:
    project.runners["builder"] = Scripted([objecting()])
    run_id = project.run().run_id
    line = {"attempt": 1, "gate": "GATE-TESTS", "ok": True, "files": None, "tree": "", "findings": [{"code": "X"}]}
    browser = over(project.root).browser()
    for number, files in enumerate((None, [])):
        Journal(journal_path(project.root)).append(run_id, f"odd {number}", "evidence", {**line, "files": files})
        text = browser.text(f"/hello/runs/{run_id}/decide")
        assert ("The evidence cannot be shown" in text, "Accept the objection" in text) == (True, True)


def test_a_finding_shows_its_element_in_the_screenshot_of_the_same_attempt(
    over: Callable[..., World], tmp_path: Path
) -> None:
    made = sample(tmp_path / "hello")
    browser = over(made.root).browser()
    page = browser.get(f"/hello/runs/{made.approved}/evidence").text
    assert 'viewBox="-38 -38 146 126"' in page
    path = re.findall(r'<image href="/[0-9a-f]{16}([^"]+)"', page)[0]
    assert browser.get(path).headers["content-type"] == "image/png"
    alone = browser.get(f"/hello/runs/{made.approved}/evidence?before=0&after=2").text
    assert ("change fixed" in page, "change fixed" in alone) == (True, False)


def test_what_was_written_is_on_the_page_that_refuses_it(world: World) -> None:
    text = world.browser().post("/hello/runs/NONE.1/answer/qa", output="An hour's work <b>", may_change="docs/*").text
    assert ("An hour&#39;s work &lt;b&gt;" in text, ">docs/*<" in text) == (True, True)


def test_leases_are_listed_with_requests_to_answer(over: Callable[..., World], project: Project) -> None:
    ann, bob, me = (
        open_reservations(str(project.root), "cli", name=name) for name in ("ann", "bob", person(os.environ))
    )
    me.reserve_files(["docs/**"])
    bob.negotiate_release("docs/a", "one line", "normal")
    ann.reserve_files(["src/**"], "the words")
    bob.negotiate_release("src/greeting.txt", "one line", "normal")
    browser = over(project.root).browser("review")
    text = browser.text("/hello/leases")
    for part in ("ann alive", "the words", "bob asks ann for src/greeting.txt", "ann answers it"):
        assert part in text
    inbox = browser.text("/")
    assert (f"bob asks {me.caller.name}" in inbox, "bob asks ann" in inbox) == (True, False), (
        "what others have to answer"
    )
    assert browser.post("/hello/leases/ask", file="src/**", reason="me too").status_code == 303
    assert browser.post("/hello/leases/release", lease="rsv_no").status_code == 409
    thread = re.findall('name="thread" value="([^"]+)"', browser.get("/hello/leases").text)[0]
    asked = {"thread": thread, "action": "defer", "eta_minutes": "10", "reason": "not yet"}
    assert browser.post("/hello/leases/respond", **asked).status_code == 303
    assert "not yet" in browser.text("/hello/leases")
    for calls in (ann, bob, me):
        calls.runtime.store.close()


def test_a_ticket_shows_its_submissions(over: Callable[..., World], project: Project) -> None:
    tickets = Tickets(project.root)
    tickets.begin("T-1", "a")
    payload = {"external_source": "user", "external_ticket_id": "T-1", "title": "<b>Bold</b>", "description": "d"}
    tickets.submit_payload("a", 1, payload)
    tickets.submit_payload("a", 2, {"acceptance_criteria": []})
    browser = over(project.root).browser()
    text = browser.text("/hello/tickets/a")
    assert "<b>Bold</b>" in text
    assert "extract_requirements retry" in text
    assert browser.get("/hello/tickets/none").status_code == 404


def test_a_report_is_one_file_without_a_script_or_an_address(reviewed: str, project: Project, tmp_path: Path) -> None:
    comment(project.root, reviewed, 2, "src/greeting.txt", 1, "why so short?", "ada")
    text = report(project.root, reviewed)
    said = next(row.data["envelope"] for row in project.entries("answer") if row.data["outcome"] == "fail")
    for part in ("GATE-TESTS", "why so short?", html.escape(said["output"]), html.escape(said["fail_reasons"][0])):
        assert part in text
    assert "<script" not in text
    assert set(re.findall(r'(?:src|href)="([a-z]+:|/)', text)) <= {"data:"}
