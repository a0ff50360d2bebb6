"""Who is let in, from where, and the security headers of every answer."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.web.access import COOKIE, ENTER, HEADERS, MAX_FORM_BYTES
from interlock.web.errors import PageError
from interlock.web.sessions import LINK_SECONDS, SESSION_SECONDS, Sessions
from tests.graph.conftest import Project
from tests.table import each_row
from tests.web.conftest import FORM, URL, World

PATHS = (
    "/",
    "/board",
    "/hello/journal",
    "/hello/runs/HELLO-001.1",
    "/hello/leases",
    "/events",
    "/static/x/interlock.js",
    "/no",
)


def test_nobody_without_a_session_sees_a_byte_of_any_page(world: World, project: Project) -> None:
    project.run()
    stranger = world.browser(None)
    for path in PATHS:
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert "HELLO" not in answer.text
        assert "<" not in answer.text


def test_a_link_works_once_and_leads_on_by_a_page_of_the_server(world: World) -> None:
    link = ENTER + world.sessions.invite("review")
    browser = world.browser(None)
    answer = browser.get(link)
    assert answer.status_code == 200
    there = f"{world.sessions.base}/"
    assert f'content="0;url={there}"' in answer.text
    cookie = answer.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", f"path={there}"} <= {part.strip() for part in cookie.split(";")}
    assert browser.get("/").status_code == 200
    assert world.browser(None).get(link).status_code == 401


def test_links_and_sessions_end_by_themselves(tmp_path: Path) -> None:
    now = [1_000_000.0]
    sessions = Sessions(tmp_path, "ada", clock=lambda: now[0])
    old, new = sessions.invite("read"), sessions.invite("read")
    now[0] += LINK_SECONDS - 1
    entered = sessions.enter(new)
    now[0] += 2
    assert sessions.enter(old) is None
    assert entered is not None
    assert sessions.find(entered[1]) == entered[0]
    now[0] += SESSION_SECONDS
    assert sessions.find(entered[1]) is None
    assert not sessions.is_open(entered[0])


def test_neither_links_nor_cookies_are_kept_and_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path, "ada")
    link = sessions.invite("decide")
    entered = sessions.enter(sessions.invite("read"))
    assert entered is not None
    path = tmp_path / ".interlock/web.json"
    assert link not in path.read_text()
    assert entered[1] not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(PageError) as refused:
        Sessions(tmp_path, "ada").find(entered[1])
    assert refused.value.code == "WEB901"


@each_row(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"schema": "interlock.web-sessions/2", "path": "0", "links": [], "sessions": []}',
        *(
            f'{{"schema": "interlock.web-sessions/3", "path": "0", "links": [{link}], "sessions": []}}'
            for link in (
                "{}",
                '{"sha256": "0", "rights": "all", "ends_at": 9}',
                '{"sha256": "0", "rights": "read", "ends_at": "9"}',
            )
        ),
    ],
)
def test_a_damaged_file_lets_nobody_in(text: str, tmp_path: Path) -> None:
    path = tmp_path / ".interlock/web.json"
    path.parent.mkdir(exist_ok=True)
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(PageError) as refused:
        Sessions(tmp_path, "ada").find("x")
    assert refused.value.code == "WEB901"


def test_a_session_outlives_the_server(over: Callable[..., World], project: Project) -> None:
    browser = over(project.root).browser()
    browser.client.app = over(project.root).pages.app
    assert browser.get("/board").status_code == 200


def test_a_cookie_is_sent_to_no_other_server_of_the_machine_and_opens_nothing_outside_its_path(world: World) -> None:
    browser, base = world.browser(), world.sessions.base
    assert re.fullmatch("/[0-9a-f]{16}", base)
    assert browser.get(f"{URL}{base}/board").status_code == 200
    sent = {"cookie": f"{COOKIE}={browser.client.cookies[COOKIE]}"}
    for path in ("/", "/board", f"{base}x/board", f"/x{base}/board", base, f"/{base}/board"):
        assert browser.client.get(URL + path, headers=sent).status_code == 401


def test_a_cookie_that_another_port_set_locks_nobody_out(world: World) -> None:
    browser = world.browser()
    mine, other = f"{COOKIE}={browser.client.cookies[COOKIE]}", f"{COOKIE}="
    browser.client.cookies.clear()

    def status(*cookies: str) -> int:
        return browser.client.get("/", headers=[(b"cookie", cookie.encode()) for cookie in cookies]).status_code

    for planted in ("evil", "", '"evil', "é", "a=b", "evil; $Path=/", "evil, x"):
        sent = f"{other}{planted}"
        assert status(f"{mine}; {sent}") == status(f"{sent}; {mine}") == status(f"x=y;{sent} ;{mine};;") == 200
        assert status(sent, mine) == status(mine, sent) == 200
        assert status(sent) == status(f"{sent}; {sent}") == 401
    form = {"csrf": browser.csrf, "file": "src/a", "reason": "r"}
    headers = {"cookie": f"{other}evil; {mine}; {other}evil"}
    answer = browser.client.post("/hello/leases/ask", data=form, headers=headers, follow_redirects=False)
    assert answer.status_code == 303


@each_row(
    "host", ["", "127.0.0.1", "127.0.0.1:8001", "localhost:8000", "evil.example:8000", "127.0.0.1:8000.evil.example"]
)
def test_another_host_is_refused_before_anything_else(host: str, world: World) -> None:
    browser = world.browser()
    assert browser.get("/", host=host).status_code == 421


@each_row(
    "origin",
    ["null", "http://evil.example", "https://127.0.0.1:8000", "http://127.0.0.1:8001", "HTTP://127.0.0.1:8000"],
)
def test_another_origin_is_refused(origin: str, world: World) -> None:
    browser = world.browser()
    assert browser.get("/", origin=origin).status_code == 403
    assert browser.get("/", origin=URL).status_code == 200


def test_a_form_without_the_token_of_its_session_changes_nothing(world: World) -> None:
    browser, other = world.browser(), world.browser()
    for token in ("", "0" * 64, other.csrf, "é"):
        browser.csrf = token
        assert browser.post("/hello/leases/release", lease="x").status_code == 403
    assert browser.get("/").status_code == 200


def test_a_form_is_bounded_and_of_one_kind(world: World) -> None:
    browser = world.browser()
    sent = {
        "large": (FORM, b"a=" + b"x" * MAX_FORM_BYTES),
        "json": ("application/json", b"{}"),
        "bytes": (FORM, b"a=%ff"),
    }
    found = {
        name: browser.client.post("/hello/leases/release", content=body, headers={"content-type": kind}).status_code
        for name, (kind, body) in sent.items()
    }
    assert found == {"large": 413, "json": 415, "bytes": 400}
    assert browser.client.put("/").status_code == 405


def test_every_answer_keeps_browsers_from_running_framing_and_storing_anything(world: World) -> None:
    for browser, paths in ((world.browser(), PATHS[:5]), (world.browser(None), PATHS)):
        for path in paths:
            headers = browser.get(path).headers
            assert {name: headers.get(name) for name in HEADERS} == HEADERS
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_static_files_bear_their_digest_and_no_other_file_is_served(world: World) -> None:
    browser = world.browser()
    page = browser.get("/board").text
    names = re.findall(rf'(?:src|href)="{world.sessions.base}(/static/[^"]+)"', page)
    assert len(names) == 4
    for name in names:
        answer = browser.get(name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    for name in ("../app.py", "..%2fapp.py", "x", "interlock.css/.."):
        assert browser.get(f"/static/0/{name}").status_code == 404


def test_a_page_that_fails_says_so_and_shows_nothing_of_the_program(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    browser = world.browser()

    def found_rows(_site: object, _wanted: object) -> float:
        return 1 / 0

    monkeypatch.setattr("interlock.web.views.board.found_rows", found_rows)
    answer = browser.get("/board")
    assert answer.status_code == 500
    assert "ZeroDivisionError" in answer.text
    assert "Traceback" not in answer.text
    assert "found_rows" in capsys.readouterr().err
    assert COOKIE not in answer.text
