"""`interlock serve` and `interlock mcp` as a person starts them: how they end, and what they say to type."""

import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interlock.test_cli import interlock
from tests.server.http_process import new_project, new_token, running


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_directly_after_the_address_was_printed_ends_the_server_with_0(tmp_path: Path, number: int) -> None:
    root = new_project(tmp_path / "project")
    new_token(root)
    for _ in range(3):
        with running(root) as server:
            assert server.stop(number) == 0, server.stderr
            assert "Traceback" not in server.stderr


def test_what_a_refusal_says_to_type_holds_for_a_folder_with_a_blank_in_its_name(tmp_path: Path) -> None:
    root = new_project(tmp_path / "Mein Projekt \u00e4")
    new_token(root)
    (root / ".interlock" / "tokens.json").chmod(0o644)
    done = interlock(root, "serve", "--port", "0")
    assert done.returncode == 2
    assert "TOK901" in done.stderr
    command = shlex.split(done.stderr.split("`")[1])
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    assert interlock(root, "token", "list").returncode == 0


@pytest.mark.long
@pytest.mark.sample(every=2)
@pytest.mark.parametrize("text", ["[run]\nmax_rewrok = 1\n", "no toml"])
def test_a_broken_configuration_is_reported_at_the_start_and_the_server_goes_on(tmp_path: Path, text: str) -> None:
    root = new_project(tmp_path / "project")
    new_token(root)
    (root / "interlock.toml").write_text(text)
    done = interlock(root, "mcp")
    assert (done.returncode, done.stdout) == (0, "")
    with running(root) as server:
        assert server.stop() == 0
    for said in (done.stderr, server.stderr):
        assert "warning CFG10" in said
        assert "interlock.toml: " in said
        assert "fix: " in said


def test_mcp_says_on_a_terminal_what_it_waits_for(tmp_path: Path) -> None:
    root = new_project(tmp_path / "project")
    command = [sys.executable, "-m", "interlock", "mcp", "--root", str(root)]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        os.close(theirs)
        assert process.stderr is not None
        line = process.stderr.readline()
        assert str(root) in line
        assert "standard input" in line
        os.write(ours, b"\x04")
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
