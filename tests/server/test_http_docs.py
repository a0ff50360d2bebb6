"""The pages on the server say what the server does, and what they show works as it is written."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import cast

import click
import httpx2
import pytest

from interlock.cli.main import interlock
from interlock.graph import MINIMAL_FIELDS as FIELDS
from interlock.graph import POC, MinimalResponse, Tickets
from interlock.server.http.bounds import Limits
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
    source = "".join((root / "server" / "http" / name).read_text() for name in ("access.py", "sessions.py"))
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


PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"


@pytest.mark.long
def test_the_script_on_the_page_prints_what_the_page_says(tmp_path: Path) -> None:
    script, printed = re.findall(r"```python\n(.*?)```\n\nprints `(.*?)`", PAGE.read_text(encoding="utf-8"), re.DOTALL)[
        0
    ]
    # What the console script `interlock` does, for a checkout that is not installed.
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "interlock"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m interlock "$@"\n')
    command.chmod(0o755)
    (tmp_path / "project").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "project", capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{printed}\n"), done.stderr
    assert (tmp_path / "project" / ".interlock").is_dir()


def test_the_minimal_ticket_on_the_page_begins_a_run(tmp_path: Path) -> None:
    (text,) = re.findall(r"```json\n(\{\"ticket_id.*?)\n```", PAGE.read_text(encoding="utf-8"))
    answer = Tickets(tmp_path).next_step(text)
    assert (answer["gate_result"]["status"], answer["next_state"]) == ("pass", "extract_requirements")
    section = PAGE.read_text(encoding="utf-8").partition("### Minimal tickets")[2].partition("###")[0]
    words = {*FIELDS, *MinimalResponse.__annotations__, *(stage.name for stage in POC.stages), POC.end_state}
    assert [word for word in sorted(words) if word not in section] == []
