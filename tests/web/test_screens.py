"""What each screen shows of real runs, and what a person does there."""

import html
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from interlock.agents import REMOTE
from interlock.graph import Drives, RunStore, Tickets, Watch, abandon, comment, journal_path, verify_journal, view_run
from interlock.journal import Journal
from interlock.notify import queue
from interlock.reservations import open_reservations
from interlock.reservations.identity import person
from interlock.web import report
from interlock.web.image_diff import difference, strip
from interlock.web.timeline import timeline
from interlock.web.views.run import log_of
from tests.graph.conftest import Project, Scripted, build
from tests.graph.test_objections import WHY, answered, decide, objecting
from tests.web.browsing import picture, sample
from tests.web.conftest import URL, World


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


def test_the_inbox_names_a_channel_whose_last_notification_did_not_arrive(
    over: Callable[..., World], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "start_sender", str)
    monkeypatch.setenv("MY_API_KEY", "abcdefgh-12345678")
    (project.root / "gone").write_text("#!/bin/sh\necho $MY_API_KEY >&2; exit 1\n")
    (project.root / "gone").chmod(0o755)
    config = project.root / "interlock.toml"
    config.write_text(config.read_text() + '\n[notify]\ncommand = ["true"]\n')
    browser = over(project.root).browser()
    for program, arrives in (("./gone", False), ("true", True)):
        queue.post(project.root, {"command": [program]}, [queue.Event(program, "ended", "approved", program, "T", "t")])
        queue.send(str(project.root))
        page = browser.text("/")
        assert ("did not arrive" in page) != arrives
        assert "abcdefgh" not in page


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
    page = browser.get(f"/hello/runs/{reviewed}").text
    assert re.search(r'<td class="failed" title="GATE-TESTS: [^"]+">failed</td>', page)
    seq = next(entry.seq for entry in project.entries("answer") if entry.data["role"] == "tester")
    assert "ASSIGNED_AGENT: tester" in browser.text(f"/hello/runs/{reviewed}/answers/{seq}")


def test_a_run_that_waits_for_its_files_says_so_on_its_page_and_the_board_and_can_be_ended_before_its_first_line(
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
    assert "not started" in browser.text("/board")
    assert f"interlock abandon {run_id}" in browser.text("/")
    for path in ("", "/evidence", "/changes"):
        assert browser.get(f"/hello/runs/{run_id}{path}").status_code == 200
    early = browser.get(f"/hello/runs/{run_id}/answer/builder")
    assert (early.status_code, "it has not started" in early.text) == (409, True)
    browser.post(f"/hello/runs/{run_id}/abandon", sure="yes")
    assert RunStore(project.root, run_id).abandoned()


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
    (row,) = Watch(project.root).look().runs
    browser = over(project.root).browser()
    pages = [browser.text(path) for path in ("/board", f"/hello/runs/{view.run_id}")]
    for shown in (row["title"], *pages, report(project.root, view.run_id)):
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
    late = browser.post(f"/hello/runs/{reviewed}/comment", attempt="2", path="src/greeting.txt", line="9", text="no")
    assert ("RUN650" in late.text, "has 1 lines" in late.text) == (True, True)
    assert 'name="line"' in browser.get(f"/hello/runs/{reviewed}/changes").text
    assert "src/greeting.txt:1 why?" in browser.get(f"/hello/runs/{reviewed}/answer/reviewer").text
    abandon(project.root, reviewed)
    assert 'name="line"' not in browser.get(f"/hello/runs/{reviewed}/changes").text


def test_evidence_is_shown_beside_that_of_an_earlier_attempt_and_its_files_run_nowhere(
    reviewed: str, over: Callable[..., World], project: Project
) -> None:
    browser = over(project.root).browser()
    page = browser.get(f"/hello/runs/{reviewed}/evidence?before=1&after=2").text
    path = re.findall(r'href="/[0-9a-f]{16}(/hello/runs/[^"]+/files/[0-9a-f]{64})/text"', page)[0]
    answer = browser.get(path)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert browser.get(path[:-64] + "0" * 64).status_code == 404
    log = next(project.root.glob("artifacts/reports/HELLO-001/2/GATE-TESTS.log"))
    log.write_text("another")
    assert "not as it was judged; the kept copy is shown" in browser.text(f"/hello/runs/{reviewed}/evidence")
    assert browser.get(path).text == answer.text


def test_pictures_are_cut_to_where_they_differ() -> None:
    pictures = {name: picture("white", (60, 3000)) for name in ("one", "two")}
    changed = Image.open(BytesIO(pictures["two"]))
    changed.paste((200, 0, 0), (20, 2000, 30, 2010))
    kept = BytesIO()
    changed.save(kept, "PNG")
    found = difference("one", "two", {**pictures, "two": kept.getvalue()}.get)
    assert (found.box, found.top, found.height) == ((20, 2000, 30, 2010), 1952, 3000)
    assert Image.open(BytesIO(strip(kept.getvalue(), found.top))).getpixel((20, 48)) == (200, 0, 0)
    assert Image.open(BytesIO(strip(pictures["one"], 4000))).size == (60, 1)
    assert strip(b"no picture", 0) == b""


def test_a_hand_over_that_a_gate_refused_is_drawn_as_refused(reviewed: str, project: Project) -> None:
    lane = next(row for row in timeline(project.entries()).lanes if row.role == "builder")
    assert [bar.look for bar in lane.bars] == ["bad", "good"]
    assert "refused by GATE-TESTS" in lane.bars[0].title


def test_a_hand_over_whose_objection_was_accepted_and_waived_is_drawn_as_good(project: Project) -> None:
    project.runners["builder"] = Scripted([objecting(), build("hi\n")])
    assert answered(project, answered(project, project.run(), "accept"), "waive").status == "APPROVED"
    lane = next(row for row in timeline(project.entries()).lanes if row.role == "builder")
    assert ([bar.look for bar in lane.bars], [bar for bar in lane.bars if "refused" in bar.title]) == (
        ["odd", "good"],
        [],
    )


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
    path = re.findall(r'src="/[0-9a-f]{16}([^"]+/element/10,10,50,30)"', page)[0]
    alone = browser.get(f"/hello/runs/{made.approved}/evidence?before=0&after=2").text
    assert ("change fixed" in page, "change fixed" in alone) == (True, False)
    around = Image.open(BytesIO(browser.get(path).content))
    assert (around.size, around.getpixel((8, 20)), around.getpixel((20, 20))) == ((108, 88), (200, 0, 40), (0, 0, 0))
    for box in ("999,10,50,30", "10,10,0,30", "a,b,c,d", "," * 5000, "1,2", "9" * 5000):
        assert browser.get(path.replace("10,10,50,30", box)).status_code == 404


def test_a_filter_by_no_time_is_refused_and_one_by_the_beginning_of_a_time_is_not(world: World) -> None:
    browser = world.browser()
    for since, status in (
        ("yesterday", 400), ("31.1.2026", 400), ("20260131", 400), ("2026-13", 400), ("2026-01-31T12:00+02:00", 400),
        ("2026", 200), ("2026-01", 200), ("2026-01-31 12:00", 200), ("2026-01-31T12:00:00.5Z", 200), ("", 200),
    ):  # fmt: skip
        assert browser.client.get("/hello/journal", params={"since": since}).status_code == status, since
    assert browser.get("/hello/journal/export?since=today").status_code == 400


def test_what_was_written_is_on_the_page_that_refuses_it_with_the_way_back(world: World) -> None:
    browser = world.browser()
    there = f"{world.sessions.base}/hello/runs/NONE.1/answer/qa"
    for came, leads in (
        (f"{URL}{there}?x=1", f"{there}?x=1"), (f"{URL}{there}/preview", there), (f"http://127.0.0.1:9{there}", ""),
        ("http://[", ""),
    ):  # fmt: skip
        browser.client.headers["referer"] = came
        text = browser.post("/hello/runs/NONE.1/answer/qa", output="An hour's work <b>", may_change="docs/*").text
        assert ("An hour&#39;s work &lt;b&gt;" in text, ">docs/*<" in text) == (True, True)
        assert re.findall('href="([^"]*)">Back', text) == ([leads] if leads else []), came
        assert "Back to the form" not in browser.get("/hello/runs/NONE.1").text


def test_leases_are_a_tree_with_requests_to_answer(over: Callable[..., World], project: Project) -> None:
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
    for calls in (ann, bob, me):
        calls.runtime.store.close()


def test_a_ticket_shows_its_submissions_and_whether_its_quotations_hold(
    over: Callable[..., World], project: Project
) -> None:
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
