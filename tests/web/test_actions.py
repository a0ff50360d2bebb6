"""What a person does from the pages: start a run, run again, restore, land, dismiss; and what a run shows first."""

import html
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from interlock.graph import journal_path, list_runs, view_run
from interlock.journal import Journal
from interlock.web import report
from tests.child import git
from tests.graph.conftest import Project, Scripted, build
from tests.graph.sealed_project import CONFIG, FILES, RIGHT, WEAK, sealed_project, text_of, working
from tests.web.browsing import Visit, served
from tests.web.conftest import Browser, World


def led_to(browser: Browser, path: str, /, **fields: str) -> str:
    """Send a form and return the page that it leads to in the end, also by way of what is under way."""
    answer = browser.post(path, **fields)
    for _ in range(1000):
        if answer.status_code == 303:
            there = unquote(answer.headers["location"]).removeprefix(browser.sessions.base)
            if "/jobs/" not in there:
                return there
            path = there
        else:
            assert "This is under way" in answer.text, answer.text
            time.sleep(0.05)
        answer = browser.get(path)
    raise AssertionError(path)


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
    assert led_to(browser, "/shop/start", like=run_id) == "/shop/runs/HELLO-001.2"
    until = time.monotonic() + 30
    while "builder is asked" not in browser.text("/shop/runs/HELLO-001.2"):
        assert time.monotonic() < until, "it is not driven"
        time.sleep(0.1)
    form = browser.get("/shop/start").text
    assert ('value="HELLO-002"' in form, "src/**\ntests/**\nMakefile" in form) == (True, True)
    assert re.findall(r'name="gate (\S+)" value="on" checked', form) == ["GATE-MSG-STRICT", "GATE-TESTS"]
    fields = {"task": "Greet twice", "task_id": "HELLO-002", "scope": "no/**", "gate GATE-TESTS": "on"}
    refused = browser.post("/shop/start", **fields)
    assert refused.status_code == 409
    for part in ("RUN620", "RUN623", ">Greet twice<", ">no/**<"):
        assert part in refused.text, part
    assert "no model" in browser.post("/shop/start", **{**fields, "models": "nobody"}).text
    assert list_runs(shop.root, "runs") == ["HELLO-001.1", "HELLO-001.2"]
    fields |= {"scope": "src/**", "like": run_id}
    assert led_to(browser, "/shop/start", **fields) == "/shop/runs/HELLO-002.1"
    task = view_run("HELLO-002.1", root=shop.root).task
    assert (task.task, task.scope, task.gates_required) == ("Greet twice", ("src/**",), ("GATE-TESTS",))
    assert task.agents == shop.task.agents
    dirty = browser.post("/shop/start", **fields, where="apart")
    assert "1 file of the checkout changed and not committed: src/greeting.txt" in html.unescape(dirty.text)
    assert led_to(browser, "/shop/start", **fields, where="changes") == "/shop/runs/HELLO-002.2"
    assert view_run("HELLO-002.2", root=shop.root).policy.tree


def test_what_an_agent_left_is_shown_restored_and_brought_back(shop: Project, over: Callable[..., World]) -> None:
    shop.runners = {"builder": working({**RIGHT, "tests/check.sh": WEAK})}
    run_id = shop.run().run_id
    browser = over(shop.root).browser("review")
    where = f"/shop/runs/{run_id}/restore"
    assert ">Restore files…<" in browser.get(f"/shop/runs/{run_id}").text
    assert "Nothing differs" in browser.text(where)
    left = browser.get(f"{where}?as_left=1").text
    assert "grep -qx hello src/greeting.txt" in left

    def button(page: str) -> dict[str, str]:
        return {
            name: value.replace("&#34;", '"')
            for name, value in re.findall(r'name="(paths|tree)" value="([^"]*)"', page)
        }

    done = browser.post(where, **button(left))
    assert text_of(shop.root, "tests/check.sh") == WEAK
    assert "1 file was written" in done.text
    undo = re.findall(r'name="paths" value="([^"]*)"><input type="hidden" name="tree" value="(\w+)"', done.text)[0]
    browser.post(where, paths=undo[0].replace("&#34;", '"'), tree=undo[1])
    assert text_of(shop.root, "tests/check.sh") == FILES["tests/check.sh"]
    assert browser.post(where, paths='["../x"]', tree="--help").status_code == 409


def test_what_is_dismissed_comes_back_when_something_new_happens(shop: Project, over: Callable[..., World]) -> None:
    run_id = shop.run().run_id
    browser = over(shop.root).browser("review")
    page = browser.get("/").text
    assert ("<title>(1) Inbox" in page, "blocked" in page) == (True, True)
    mark = re.findall(r'name="mark" value="([^"]+)"', page)[0]
    browser.post("/shop/dismiss", mark=mark)
    gone = over(shop.root).browser("review")
    for part in ("<title>Inbox", "Nothing waits for you", "Dismissed: 1"):
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
    browser.post("/shop/queue", run=second, do="move", position="1", **{"from": "board"})
    browser.post("/shop/queue", run=first, do="hold")
    assert queue() == [second, first]
    for page in ("/board", f"/shop/runs/{first}"):
        assert ("Release" in browser.get(page).text, "held back" in browser.text(page).lower()) == (True, True)
    assert led_to(browser, "/shop/land", run=first) == f"/shop/runs/{first}"
    commit = git(shop.root, "rev-parse", "HEAD").strip()
    for text in (browser.text(f"/shop/runs/{first}"), browser.text("/board")):
        assert commit[:12] in text
    assert queue() == [second]
    assert "LND" in browser.post("/shop/queue", run=first, do="hold").text


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
    for path in ("start", "land", "queue", "dismiss", f"runs/{run_id}/restore"):
        assert "WEB403" in browser.post(f"/shop/{path}", like=run_id, run=run_id, paths='["a"]', mark="x").text, path
    for path in ("/", "/board", f"/shop/runs/{run_id}", f"/shop/runs/{run_id}/restore"):
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
        window.sees("This is under way")
        page.wait_for_url("**/runs/TASK-001.1", timeout=30_000)
        window.sees("builder is asked")
