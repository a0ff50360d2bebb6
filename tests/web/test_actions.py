"""What a person does from the pages: start a run, run again, restore, land, dismiss; and what a run shows first."""

import html
import re
import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from interlock import graph
from interlock.graph import journal_path, list_runs, view_run
from interlock.journal import Journal
from interlock.web import projects, report
from interlock.web.views import starting
from tests import warm
from tests.child import git
from tests.graph.conftest import Project, Scripted, build
from tests.graph.sealed_project import CONFIG, FILES, RIGHT, WEAK, sealed_project, text_of, working
from tests.web.browsing import Visit, served
from tests.web.conftest import Browser, World


def led_to(browser: Browser, path: str, /, **fields: str) -> str:
    """Send a form and return the page that it leads to, the board for what takes longer once that is over."""
    answer = browser.post(path, **fields)
    assert answer.status_code == 303, answer.text
    until = time.monotonic() + 60
    while "Now: " in browser.text("/board"):
        assert time.monotonic() < until, "it does not end"
        time.sleep(0.05)
    assert "Not done" not in browser.text("/board")
    return unquote(answer.headers["location"]).removeprefix(browser.sessions.base)


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Return a project in git whose builder weakens the test, and is put right at once."""
    made = sealed_project(tmp_path / "shop")
    made.task = replace(made.task, agents={"builder": {"runner": "remote"}}, run={"max_rework": 0, "reserve": False})
    made.runners = {"builder": working({"tests/check.sh": WEAK, "src/greeting.txt": "hallo\n"})}
    return made


def test_a_run_shows_its_reasons_and_its_changes_before_everything_else(
    shop: Project, over: Callable[..., World]
) -> None:
    run_id = shop.run().run_id
    browser = over(shop.root).browser()
    text = browser.text(f"/shop/runs/{run_id}")
    (reason, *_) = view_run(run_id, root=shop.root).values["fail_reasons"]
    places = [text.index(part) for part in (reason, "Changes: 1 file, +1 −1", "src/greeting.txt", "Run again", "Log")]
    assert places == sorted(places)
    assert reason in re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", report(shop.root, run_id)))


def test_a_run_is_started_again_and_with_another_task(shop: Project, over: Callable[..., World]) -> None:
    run_id = shop.run().run_id
    browser = over(shop.root).browser("review")
    form = browser.get(f"/shop/start?like={run_id}").text
    assert ('value="HELLO-001"' in form, f">{shop.task.task}<" in form) == (True, True)
    again = {"like": run_id, "task": "Greet", "task_id": "HELLO-001", "scope": "src/**", "gate GATE-TESTS": "on"}
    assert led_to(browser, "/shop/start", **again) in ("/shop/runs/HELLO-001.2", "/board")
    until = time.monotonic() + 30
    while "builder is asked" not in browser.text("/shop/runs/HELLO-001.2"):
        assert time.monotonic() < until, "it is not driven"
        time.sleep(0.1)
    form = browser.get("/shop/start").text
    assert ('value="TASK-001"' in form, ">src/**<" in form) == (True, True)
    assert re.findall(r'name="gate (\S+)" value="on" checked', form) == ["GATE-MSG-STRICT", "GATE-TESTS"]
    assert "RUN620" in browser.post("/shop/start", task="Greet", task_id="TASK-001", scope="src/**").text
    fields = {"like": run_id, "task": "Greet twice", "task_id": "HELLO-002", "scope": "no/**", "gate GATE-TESTS": "on"}
    refused = browser.post("/shop/start", **fields)
    assert refused.status_code == 409
    for part in ("RUN623", ">Greet twice<", ">no/**<"):
        assert part in refused.text, part
    fields["scope"] = "src/**"
    assert "no model" in browser.post("/shop/start", **{**fields, "models": "nobody"}).text
    dirty = browser.post("/shop/start", **fields, apart="yes")
    assert "the checkout has changes that are not committed: src/greeting.txt" in html.unescape(dirty.text)
    assert list_runs(shop.root, "runs") == ["HELLO-001.1", "HELLO-001.2"]
    assert led_to(browser, "/shop/start", **fields) in ("/shop/runs/HELLO-002.1", "/board")
    task = view_run("HELLO-002.1", root=shop.root).task
    assert (task.task, task.scope, task.gates_required) == ("Greet twice", ("src/**",), ("GATE-TESTS",))
    assert (task.agents, task.may_change) == (shop.task.agents, shop.task.may_change)
    git(shop.root, "commit", "-qam", "What is there")
    assert led_to(browser, "/shop/start", **fields, apart="yes") in ("/shop/runs/HELLO-002.2", "/board")
    assert view_run("HELLO-002.2", root=shop.root).policy.tree


def test_what_takes_long_goes_on_and_is_shown_on_the_board(
    shop: Project, over: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = threading.Event()

    def start(*_: object) -> str:
        assert tested.wait(60)
        raise graph.TaskError("the base is not what it was", "Look at it.")

    monkeypatch.setattr(projects, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(starting, "_start", start)
    browser = over(shop.root).browser("review")
    fields = {"task": "Greet", "task_id": "HELLO-002", "scope": "src/**", "gate GATE-TESTS": "on"}
    assert browser.post("/shop/start", **fields).headers["location"].endswith("/board")
    assert "Now: start of HELLO-002" in browser.text("/board")
    tested.set()
    until = time.monotonic() + 60
    while "Now: " in (board := browser.text("/board")):
        assert time.monotonic() < until
    for part in ("Not done: start of HELLO-002", "RUN601 the base is not what it was", "fix: Look at it."):
        assert part in board


def test_tests_are_restored_and_the_command_that_brings_back_what_was_there_is_shown(
    shop: Project, over: Callable[..., World]
) -> None:
    shop.runners = {"builder": working({**RIGHT, "tests/check.sh": WEAK})}
    run_id = shop.run().run_id
    browser = over(shop.root).browser("review")
    where = f"/shop/runs/{run_id}/restore"
    assert ">Restore tests and settings<" in browser.get(f"/shop/runs/{run_id}").text
    assert "nothing differs" in browser.post(where).text
    (shop.root / "tests/check.sh").write_text(WEAK)
    done = browser.post(where)
    assert text_of(shop.root, "tests/check.sh") == FILES["tests/check.sh"]
    undo = re.findall(r"<code>interlock (.*)</code>", html.unescape(done.text))[0]
    assert warm.interlock(shop.root, *shlex.split(undo)).returncode == 0
    assert text_of(shop.root, "tests/check.sh") == WEAK


def test_what_is_dismissed_comes_back_when_something_new_happens(shop: Project, over: Callable[..., World]) -> None:
    run_id = shop.run().run_id
    browser = over(shop.root).browser("review")
    page = browser.get("/").text
    assert ("<title>(1) Inbox" in page, "blocked" in page) == (True, True)
    mark = re.findall(r'name="mark" value="([^"]+)"', page)[0]
    browser.post("/shop/dismiss", mark=mark)
    gone = over(shop.root).browser("review")
    for part in ("<title>Inbox", "Nothing waits for you"):
        assert part in gone.get("/").text
    Journal(journal_path(shop.root)).append(
        run_id, "new", "comment", {"by": "ann", "path": "a", "line": 1, "text": "x"}
    )
    assert "<title>(1) Inbox" in over(shop.root).browser().get("/").text
    again = browser.post("/shop/dismiss", mark=mark)
    assert (again.status_code, "WEB409" in again.text) == (409, True)


def test_candidates_are_shown_beside_one_another(project: Project, over: Callable[..., World]) -> None:
    for number, text in enumerate(("hello\n", "hello\n\n"), 1):
        project.task = replace(project.task, task_id=f"HELLO-001-C{number}")
        project.runners["builder"] = Scripted([build(text)])
        project.run()
    browser = over(project.root).browser()
    text = browser.text("/hello/candidates/HELLO-001")
    for part in ("HELLO-001-C1.1", "HELLO-001-C2.1", "in scope added, +1 −0", "in scope changed, +1 −0", "passed"):
        assert part in text
    assert "/hello/candidates/HELLO-001" in browser.get("/hello/runs/HELLO-001-C2.1").text
    assert browser.get("/hello/candidates/HELLO-009").status_code == 404


def test_approved_runs_are_queued_held_moved_and_landed(shop: Project, over: Callable[..., World]) -> None:
    for name in ("HELLO-001", "HELLO-002"):
        shop.task = replace(shop.task, task_id=name)
        shop.runners = {"builder": working({**RIGHT, f"src/{name}.txt": "new\n"})}
        assert shop.run().status == "APPROVED"
    first, second = "HELLO-001.1", "HELLO-002.1"
    browser = over(shop.root).browser("review")

    def queue() -> list[str]:
        part = browser.get("/board").text.partition('id="rows"')[0]
        return re.findall(r"<strong>(\S+)</strong>", part)

    assert queue() == [first, second]
    browser.post(f"/shop/runs/{second}/queue", do="move", position="1")
    browser.post(f"/shop/runs/{first}/queue", do="hold")
    assert queue() == [second, first]
    for page in ("/board", f"/shop/runs/{first}"):
        assert ("Release" in browser.get(page).text, "held back" in browser.text(page).lower()) == (True, True)
    assert led_to(browser, "/shop/land", run=first) in (f"/shop/runs/{first}", "/board")
    commit = git(shop.root, "rev-parse", "HEAD").strip()
    assert commit[:12] in browser.text(f"/shop/runs/{first}")
    assert "landed on " in browser.text("/board")
    assert queue() == [second]
    assert "LND" in browser.post(f"/shop/runs/{first}/queue", do="hold").text


def test_an_abandoned_run_is_in_no_other_state_and_a_board_of_projects_names_them(
    project: Project, over: Callable[..., World], tmp_path: Path
) -> None:
    run_id = project.start()
    browser = over(project.root, tmp_path).browser()
    browser.post(f"/hello/runs/{run_id}/abandon", sure="yes")
    page = browser.get("/board").text
    assert re.findall(r'class="status (\S+)"', page) == ["abandoned"]
    assert ('<td data-label="Project">hello</td>' in page, run_id in browser.text("/board?status=abandoned")) == (1, 1)
    assert run_id not in browser.text("/board?status=IN_PROGRESS")


def test_a_session_that_may_only_read_has_no_button_and_does_nothing(shop: Project, over: Callable[..., World]) -> None:
    run_id = shop.run().run_id
    browser = over(shop.root).browser("read")
    for path in ("start", "land", "dismiss", f"runs/{run_id}/queue", f"runs/{run_id}/restore"):
        assert "WEB403" in browser.post(f"/shop/{path}", like=run_id, run=run_id, mark="x").text, path
    for path in ("/", "/board", f"/shop/runs/{run_id}"):
        assert 'method="post"' not in browser.get(path).text


@pytest.mark.browser
@pytest.mark.long
def test_a_run_is_started_by_keyboard_and_its_page_comes_by_itself(shop: Project, opened: Callable[..., Visit]) -> None:
    slow = CONFIG.replace('["sh", "tests/check.sh"]', '["sh", "-c", "sleep 2; sh tests/check.sh"]')
    (shop.root / "interlock.toml").write_text(f'{slow}[agents.builder]\nrunner = "remote"\n')
    with served(shop.root) as server:
        window = opened(server, "review")
        page = window.open("/shop/start")
        page.get_by_label("Task, in one line").focus()
        page.keyboard.type("Greet")
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "Start":
                break
        page.keyboard.press("Enter")
        window.sees("Now: start of TASK-001")
        window.sees("waits for builder")
