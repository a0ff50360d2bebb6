"""The page on the server over HTTP says what the server does."""

import re
import shlex
from pathlib import Path
from typing import cast

import click
import httpx2
import pytest

from interlock.cli.main import interlock
from interlock.server.bounds import Limits
from interlock.server.rules import MAX_VALUES
from tests.server.http_process import ACCEPT, INITIALIZE, new_project, new_token, running


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "http.md").read_text()


def test_every_bound_on_the_page_is_the_one_that_holds(page: str) -> None:
    limits = Limits()
    for words in (
        f"| {limits.rate:g} a second, {limits.burst} at once after a pause; up to one second a request is held back",
        f"at the same time | {limits.in_flight} |",
        f"| {limits.header_bytes // 1024} KiB, within {limits.head_seconds:g} seconds;",
        f"more than {MAX_VALUES} values",
        f"| sessions of one token | {limits.sessions_of_token} |",
        f"closed after {limits.session_idle_seconds / 60:g} minutes",
        f"| sessions, connections | {limits.sessions}, {limits.connections} |",
        f"longer than {limits.body_seconds:g} seconds",
        f"more than {limits.body_bytes // 1024**2} MiB ({limits.body_bytes} bytes)",
        f"calls have {limits.stop_seconds} seconds",
    ):
        assert words in page
    assert limits.patience_seconds == 1


def test_every_command_and_every_code_is_on_the_page(page: str, root: Path) -> None:
    for name in cast("click.Group", interlock.get_command(click.Context(interlock), "token")).commands:
        assert f"`interlock token {name}" in page
    source = "".join((root / "server" / name).read_text() for name in ("access.py", "sessions.py"))
    raised = set(re.findall(r"refusal\(\s*(\d{3})", source))
    assert raised == set(re.findall(r"\| WEB(\d{3}) \|", page))


@pytest.mark.long
def test_what_the_sdk_answers_behind_the_checks_has_the_statuses_of_the_page(page: str, tmp_path: Path) -> None:
    project = new_project(tmp_path / "project")
    headers = {**ACCEPT, "authorization": f"Bearer {new_token(project)}"}
    asked: list[tuple[int, str, dict[str, str]]] = [
        (400, "POST", {"content-type": "text/plain"}),
        (400, "GET", {}),
        (400, "POST", {"mcp-protocol-version": "2026-07-28"}),
        (404, "POST", {"mcp-session-id": "none"}),
        (405, "PUT", {}),
        (406, "POST", {"accept": "application/json"}),
    ]
    with running(project) as server, httpx2.Client(timeout=20) as http:
        for status, method, more in asked:
            answer = http.request(method, server.url, headers=headers | more, json=INITIALIZE)
            assert (answer.status_code, "WEB" in answer.text) == (status, False), (method, more)
    behind = page.partition("After these checks")[2].partition("`Host` must be")[0]
    assert {int(number) for number in re.findall(r"^\| (\d{3}) \|", behind, re.MULTILINE)} == {row[0] for row in asked}


def curl(words: list[str]) -> httpx2.Response:
    """Do what curl does with an address, `-H` and `-d`."""
    _, address, *options = words
    given = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ", 1) for name, value in given if name == "-H")
    data = [value for name, value in given if name == "-d"]
    assert {name for name, _ in given} <= {"-H", "-d"}
    with httpx2.Client(timeout=20) as http:
        return http.request("POST" if data else "GET", address, headers=headers, content="".join(data) or None)


@pytest.mark.long
def test_the_curl_commands_of_the_page_work(page: str, tmp_path: Path) -> None:
    project = new_project(tmp_path / "project")
    token = new_token(project)
    commands = [
        text.replace("\\\n", " ")
        for block in re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        for text in re.split(r"\n\n", block)
        if text.startswith("curl ")
    ]
    assert len(commands) == 2
    with running(project, "--toolsets", "envelope") as server:
        for command in commands:
            here = command.replace("127.0.0.1:8765", f"127.0.0.1:{server.port}").replace("$INTERLOCK_TOKEN", token)
            answer = curl(shlex.split(here))
            assert answer.status_code == 200
            assert answer.text == "ok\n" or '"serverInfo"' in answer.text
