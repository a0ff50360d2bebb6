"""The pages in a real browser: every screen, every action, live, by keyboard, beside others and over restarts."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import expect

from interlock.agents import Ask, RunnerError
from interlock.core.errors import InterlockError
from interlock.graph import journal_path
from interlock.journal import Journal
from interlock.web.access import COOKIE
from tests.graph.conftest import Scripted, make_project
from tests.web.browsing import Sample, Served, Visit, sample, screens, served, waiting_run

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample(tmp_path_factory.mktemp("browser") / "hello")


@pytest.fixture(scope="module")
def server(made: Sample) -> Generator[Served]:
    with served(made.root) as running:
        yield running


@pytest.mark.long
def test_a_page_is_live_and_keeps_what_one_types_and_where_one_is(made: Sample, server: Served, opened: Open) -> None:
    window = opened(server)
    page = window.open("/board")
    search = page.locator("[name=q]")
    search.fill("HELLO")
    page.keyboard.press("Tab")
    search.focus()
    page.wait_for_timeout(200)
    run = f"LIVE-{time.monotonic_ns()}.1"
    page.evaluate(
        """run => new Promise(done => { window.seen = new Promise(found => new MutationObserver(() => {
            if (document.body.textContent.includes(run)) found(performance.now());
        }).observe(document.body, {subtree: true, childList: true})); done(); })""",
        run,
    )
    start = page.evaluate("performance.now()")
    task = {"task": {"task_id": "LIVE-1", "task": "HELLO again", "gates_required": ["GATE-X"]}}
    Journal(journal_path(made.root)).append(run, "1", "run_started", task)
    took = page.evaluate("window.seen") - start
    assert took < (200 if os.getloadavg()[0] < 2 else 2000)
    assert search.input_value() == "HELLO"
    assert page.evaluate("document.activeElement.matches('[name=q]')")


@pytest.mark.long
def test_what_is_opened_written_and_focused_in_a_live_part_stays_as_it_is(
    made: Sample, server: Served, opened: Open
) -> None:
    window = opened(server)
    journal = Journal(journal_path(made.root))
    run = f"LIVE-{time.monotonic_ns()}.1"
    task = {"task": {"task_id": "LIVE-2", "task": "again", "gates_required": ["GATE-X"]}}

    page = window.open(f"/hello/runs/{made.waiting}")
    page.locator("summary", has_text="End this run for good").click()
    page.get_by_role("link", name="Answer for it").focus()
    journal.append(made.waiting, f"{run} 1", "comment", {"by": "ann", "path": "a", "line": 1, "text": "one"})
    window.sees("ann comments on a:1: one", within="#log")
    page.wait_for_timeout(500)
    expect(page.get_by_role("button", name="Abandon")).to_be_visible()
    assert page.evaluate("document.activeElement.textContent") == "Answer for it"

    page = window.open("/hello/leases")
    page.locator("summary", has_text="Ask for it").last.click()
    page.get_by_label("Reason").last.fill("half a sen")
    page.locator("h1").click()
    with page.expect_response("**/hello/leases"):
        journal.append(run, "1", "run_started", task)
    page.wait_for_timeout(200)
    assert page.get_by_label("Reason").last.input_value() == "half a sen"

    page = window.open("/board")
    page.locator("#rows a").nth(1).focus()
    held = page.evaluate("document.activeElement.href")
    journal.append(f"{run}x", "1", "run_started", task)
    expect(page.locator("#rows")).to_contain_text(f"{run}x")
    assert page.evaluate("document.activeElement.href") == held


@pytest.mark.long
def test_nine_tabs_of_a_browser_load_and_stay_live_whichever_of_them_are_closed(
    made: Sample, server: Served, opened: Open
) -> None:
    first = opened(server)
    path = f"/hello/runs/{made.waiting}"
    tabs = [first, *(first.tab() for _ in range(8))]
    for number, tab in enumerate(tabs):
        tab.open("/board" if number == 8 else path)
    journal = Journal(journal_path(made.root))

    def remark(text: str) -> None:
        journal.append(made.waiting, text, "comment", {"by": "ann", "path": "a", "line": 1, "text": text})

    remark("nine are open")
    for tab in tabs[:8]:
        tab.sees("nine are open", within="#log")
    for tab in tabs[:4]:
        tab.page.close()
    remark("the first four are closed")
    for tab in tabs[4:8]:
        tab.sees("the first four are closed", within="#log")
    texts = tabs[7].page.locator("#log li span").all_inner_texts()
    assert sum("are open" in text or "are closed" in text for text in texts) == 2


@pytest.mark.long
def test_without_shared_workers_a_tab_that_nobody_sees_listens_to_nothing_and_catches_up(
    made: Sample, server: Served, opened: Open
) -> None:
    window = opened(server)
    page = window.page
    page.add_init_script(
        "delete window.SharedWorker; Object.defineProperty(document, 'hidden', {get: () => window.away})"
    )
    streams: list[str] = []
    page.on("request", lambda asked: streams.append(asked.url) if asked.url.endswith("/events") else None)
    window.open(f"/hello/runs/{made.waiting}")
    journal, seen = Journal(journal_path(made.root)), "document.dispatchEvent(new Event('visibilitychange'))"

    def remark(text: str) -> None:
        journal.append(made.waiting, text, "comment", {"by": "ann", "path": "a", "line": 1, "text": text})

    remark("it is seen")
    window.sees("it is seen", within="#log")
    with page.expect_event("requestfailed", lambda asked: asked.url in streams):
        page.evaluate(f"window.away = true; {seen}")
    remark("nobody sees it")
    page.evaluate(f"window.away = false; {seen}")
    window.sees("nobody sees it", within="#log")
    assert len(streams) == 2


@pytest.mark.long
def test_every_screen_loads_without_a_fault_and_fits_its_window(made: Sample, server: Served, opened: Open) -> None:
    for width, scheme in ((375, "light"), (768, "dark"), (1280, "light")):
        window = opened(server, viewport={"width": width, "height": 800}, color_scheme=scheme)
        for path in screens(made, "hello"):
            page = window.open(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.locator("h1").count() == 1


@pytest.mark.long
def test_without_javascript_every_screen_is_read_and_a_run_is_answered(tmp_path: Path, opened: Open) -> None:
    made = sample(tmp_path / "hello")
    with served(made.root) as server:
        window = opened(server, java_script_enabled=False)
        for path in screens(made, "hello"):
            window.open(path)
            assert window.page.locator("main").inner_text()
        page = window.open("/")
        page.get_by_role("link", name=re.compile("builder is asked")).click()
        page.get_by_label("What you did").fill("It cannot be done")
        expect(page.get_by_role("button", name="Submit")).to_be_hidden()
        page.get_by_label("hand-over").check()
        page.get_by_role("button", name="Check").click()
        expect(page.locator("#preview h3")).to_contain_text("valid")
        assert page.get_by_label("What you did").input_value() == "It cannot be done"
        (made.root / "src/greeting.txt").write_text("hello\nworld\n")
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url(f"**/runs/{made.waiting}")
        wait_for(made.root, made.waiting, "answer")


def wait_for(root: Path, run: str, kind: str, count: int = 1, seconds: float = 20.0) -> None:
    """Wait until the journal has so many lines of a kind of a run."""
    until = time.monotonic() + seconds
    while sum(entry.type == kind for entry in Journal(journal_path(root)).entries(run)) < count:
        assert time.monotonic() < until, f"{run} has no {kind}"
        time.sleep(0.05)


@pytest.mark.long
def test_a_run_is_answered_to_the_end_by_hand_and_refused_answers_say_why(tmp_path: Path, opened: Open) -> None:
    project = make_project(tmp_path / "hello")
    run = waiting_run(project, "HELLO-002", "builder", "tester", "reviewer")
    with served(project.root) as server:
        window = opened(server)
        page = window.open("/")
        expect(page).to_have_title(re.compile(r"\(1\) Inbox"))
        page.get_by_role("link", name=re.compile("builder is asked")).click()
        page.wait_for_url("**/answer/builder")
        page.locator("summary", has_text="Write the envelope yourself").click()
        page.get_by_label("Used in place").fill("STATUS: nonsense")
        page.get_by_role("button", name="Check").click()
        expect(page.locator("#preview .finding").first).to_be_visible()
        expect(page.locator("#preview h3")).to_contain_text("refused")
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url("**/answer/builder")
        expect(page.get_by_text("The last answer was refused")).to_be_visible()
        (project.root / "src/greeting.txt").write_text("hello\n")
        page.get_by_label("What you did").fill("Done")
        page.get_by_label("hand-over").check()
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url(f"**/runs/{run}")
        page.get_by_role("link", name="Answer for it").click()
        page.wait_for_url("**/answer/tester")
        page.get_by_label("pass").check()
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url(f"**/runs/{run}")
        page.get_by_role("link", name="Answer for it").click()
        page.wait_for_url("**/answer/reviewer")
        page.get_by_label("What you found").fill("I read it.")
        page.get_by_label("pass").check()
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url(f"**/runs/{run}")
        expect(page.locator("h1")).to_contain_text("APPROVED", timeout=20_000)


def boom(_ask: Ask) -> str:
    """Fail as an agent's program may."""
    raise RunnerError("the program is not there", "Install it.")


@pytest.mark.long
def test_a_run_that_was_cut_off_is_taken_on(tmp_path: Path, opened: Open) -> None:
    project = make_project(tmp_path / "hello")
    project.task = replace(
        project.task, run={"reserve": False}, agents={name: {"runner": "remote"} for name in project.runners}
    )
    project.runners["builder"] = Scripted([boom])
    with suppress(InterlockError):
        project.run()
    (run,) = {entry.run for entry in project.entries() if entry.type == "run_started"}
    with served(project.root) as server:
        window = opened(server, "review")
        page = window.open("/")
        page.get_by_role("link", name=re.compile(run)).click()
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url(f"**/runs/{run}")
        window.sees("builder is asked")


class Planter(BaseHTTPRequestHandler):
    """A server of an agent on another port, which sets a cookie for the whole host."""

    def do_GET(self) -> None:
        """Set it."""
        self.send_response(204)
        self.send_header("set-cookie", f"{COOKIE}=evil; Path=/")
        self.end_headers()


@pytest.mark.long
def test_a_server_on_another_port_locks_nobody_out_by_a_cookie(made: Sample, server: Served, opened: Open) -> None:
    with HTTPServer(("127.0.0.1", 0), Planter) as planter:
        Thread(target=planter.handle_request, daemon=True).start()
        window = opened(server)
        with suppress(PlaywrightError):  # an answer without a page
            window.page.goto(f"http://127.0.0.1:{planter.server_port}/")
    page = window.open(f"/hello/runs/{made.waiting}")
    window.sees("builder is asked")
    remark = {"by": "ann", "path": "a", "line": 1, "text": "live beside another cookie"}
    Journal(journal_path(made.root)).append(made.waiting, "cookie", "comment", remark)
    window.sees("live beside another cookie", within="#log")
    assert "evil" in [cookie.get("value") for cookie in page.context.cookies(f"{server.url}/")]


@pytest.mark.long
def test_whatever_the_tab_key_reaches_is_seen_to_be_reached(made: Sample, server: Served, opened: Open) -> None:
    window = opened(server)
    seen: set[str] = set()
    for path in screens(made, "hello"):
        page = window.open(path)
        reached: list[str] = []
        for _ in range(150):
            page.keyboard.press("Tab")
            at = page.evaluate(
                """() => { const e = document.activeElement; if (e === document.body) return "";
                const s = getComputedStyle(e); return s.outlineStyle !== "none" ? "shown" : e.outerHTML; }"""
            )
            if not at:
                break
            reached.append(at)
        seen |= {each for each in reached if each != "shown"}
    assert seen == set()


@pytest.mark.long
def test_a_server_that_was_killed_comes_back_with_every_line_once_and_the_session(tmp_path: Path, opened: Open) -> None:
    made = sample(tmp_path / "hello")
    journal = Journal(journal_path(made.root))
    with served(made.root) as server:
        window = opened(server)
        page = window.open(f"/hello/runs/{made.waiting}")
        before = page.locator("#log li").count()

        def note(number: int) -> None:
            data = {"by": "ann", "path": "a.txt", "line": number, "text": f"remark {number}."}
            journal.append(made.waiting, f"remark {number}", "comment", data)

        note(1)
        window.sees("remark 1.", within="#log")
        server.kill()
        expect(page.locator("#link-state")).to_have_text("not connected")
        for number in range(2, 12):
            note(number)
        server.start()
        for number in range(12, 15):
            note(number)
        window.sees("remark 14.", within="#log")
        texts = page.locator("#log li span").all_inner_texts()
        assert [text for text in texts if "remark" in text] == [
            f"ann comments on a.txt:{number}: remark {number}." for number in range(1, 15)
        ]
        assert len(texts) == before + 14
        expect(page.locator("#link-state")).to_have_text("")
        window.open("/board")
        window.forgive("ERR_")


@pytest.mark.long
def test_a_run_that_is_deleted_under_its_page_is_shown_from_its_lines(tmp_path: Path, opened: Open) -> None:
    made = sample(tmp_path / "hello")
    with served(made.root) as server:
        window = opened(server)
        page = window.open(f"/hello/runs/{made.approved}")
        prune(made)
        Journal(journal_path(made.root)).append(made.approved, "later", "note", {})
        expect(page.locator("#why")).to_contain_text("Its state is not in this checkout")
        for path in ("", "/evidence", "/answers/3"):
            window.open(f"/hello/runs/{made.approved}{path}")
            window.sees(made.approved)
        window.open("/board")
        window.sees(made.approved)


def prune(made: Sample) -> None:
    """Delete what the sample's runs keep, as `interlock prune` does."""
    command = [sys.executable, "-m", "interlock", "prune", "--root", str(made.root), "--older-than", "0", "--yes"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not (made.root / ".interlock/runs" / made.approved).exists(), done.stdout + done.stderr
