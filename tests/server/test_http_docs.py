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
from interlock.server.http import serving
from tests.server.http_process import new_project, new_token, running


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "http.md").read_text()


def test_every_bound_on_the_page_is_the_one_that_holds(page: str) -> None:
    assert f"A body has at most {serving.MAX_BODY_BYTES // 1024**2} MiB" in page
    assert f"streams and calls have {serving.STOP_SECONDS} seconds" in page


def test_every_command_and_every_code_is_on_the_page(page: str, root: Path) -> None:
    for name in cast("click.Group", interlock.get_command(click.Context(interlock), "token")).commands:
        assert f"`interlock token {name}" in page
    source = (root / "server" / "http" / "access.py").read_text()
    raised = set(re.findall(r"_refusal\(\s*(\d{3})", source))
    assert raised == set(re.findall(r"\| WEB(\d{3}) \|", page))


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
        [sys.executable, "-c", script],
        cwd=tmp_path / "project",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    )
    assert (done.returncode, done.stdout) == (0, f"{printed}\n"), done.stderr
    assert (tmp_path / "project" / ".interlock").is_dir()


def test_the_minimal_ticket_on_the_page_begins_a_run(tmp_path: Path) -> None:
    (text,) = re.findall(r"```json\n(\{\"ticket_id.*?)\n```", PAGE.read_text(encoding="utf-8"))
    answer = Tickets(tmp_path).next_step(text)
    assert (answer["gate_result"]["status"], answer["next_state"]) == ("pass", "extract_requirements")
    section = PAGE.read_text(encoding="utf-8").partition("### Minimal tickets")[2].partition("###")[0]
    words = {*FIELDS, *MinimalResponse.__annotations__, *(stage.name for stage in POC.stages), POC.end_state}
    assert [word for word in sorted(words) if word not in section] == []
