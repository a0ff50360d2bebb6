"""`interlock watch` as a person and a program see it: on terminals of any width, into a pipe, and as JSON."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from interlock.cli.watch import changes, in_words
from interlock.cli.watch_frame import frame
from interlock.graph import Look, abandon
from tests.campaign.test_kills import greeting_project
from tests.graph.conftest import Project, Scripted, build, make_project
from tests.interlock.test_cli import interlock
from tests.table import each_row

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AT = "2026-01-02T03:00:00Z"
HOSTILE = "[bold]x[/] \x1b[31m\x9b2J \u202e\n--once 語語語 " + "y" * 200


def look_of(runs: int, text: str = "Write the greeting") -> Look:
    """Return a look with some of everything."""
    at_work = {"name": text, "since": AT, "doing": text, "tokens": 5100}
    run = {
        "of": "task", "name": "A-1", "title": text, "status": "IN_PROGRESS", "attempt": 2, "state": "at work",
        "reasons": [], "put_back": [], "at_work": [at_work], "begun_at": AT, "changed_at": AT, "seconds": 1.0,
        "tokens": 240_000, "usd": 1.5,
    }  # fmt: skip
    wait = {"key": "k", "wait": "review", "run_id": "A-1.1", "role": "r", "text": text, "since": AT, "next": "n"}
    lease = {"holder": text, "pattern": "src/**", "exclusive": False, "granted_at": AT, "holder_state": "alive",
             "reason": text, "reservation_id": "rsv_1", "age_seconds": 5}  # fmt: skip
    place = {"position": 1, "agent": "bob", "patterns": [text], "since": AT}
    return Look([{**run, "run_id": f"A-{n}.1"} for n in range(runs)], [lease], [place], [wait], "")


@each_row("width", [20, 60, 100, 160])
def test_a_frame_fits_into_the_terminal_and_shows_hostile_text_inert(width: int) -> None:
    for text in ("Write the greeting", HOSTILE):
        lines = frame(look_of(2, text), f"shop {text}", NOW, width, None).plain.split("\n")
        assert max(map(cell_len, lines)) <= width
        assert all(line.isprintable() for line in lines)
        assert [line for line in lines if not line.startswith(" ")][1:] == ["waits for you", "runs", "leases", "queue"]
        if width >= 60:
            assert any("A-1.1" in line and "IN_PROGRESS" in line and "at work" in line for line in lines)
    assert "[bold]x[/]" in "".join(lines), "markup is text"
    assert ("240k" in "".join(lines), "$1.50" in "".join(lines)) == (width >= 100, width >= 100)


@each_row("height", [5, 12, 24])
def test_a_frame_fits_the_height_and_counts_what_is_left_out(height: int) -> None:
    lines = frame(look_of(50), "shop", NOW, 80, height).plain.split("\n")
    assert len(lines) <= height
    assert lines[0].endswith("50 open runs, 1 waiting for you")
    if height > 12:
        assert len(lines) == height
        assert any(re.search(r"… and \d+ more lines", line) for line in lines)
        assert "queue" in lines


def test_each_change_is_reported_once_with_what_it_is() -> None:
    first, gone = look_of(1), Look([], [], [], [], "the journal is damaged")
    aged = first._replace(leases=[{**first.leases[0], "age_seconds": 9}])
    moved = aged._replace(runs=[{**aged.runs[0], "status": "APPROVED", "state": "ended", "at_work": []}])
    seen = list(changes(iter([first, aged, moved, gone])))
    assert [(line["kind"], line.get("change")) for line in seen] == [
        ("watch", None), ("wait", "new"), ("run", "new"), ("lease", "new"), ("queue", "new"), ("run", "changed"),
        ("wait", "gone"), ("run", "gone"), ("lease", "gone"), ("queue", "gone"), ("damaged", "new"),
    ]  # fmt: skip
    words = [in_words(line)[1] for line in seen]
    assert words[2] == "A-0.1 IN_PROGRESS, attempt 2: at work (Write the greeting: Write the greeting)"
    assert words[5] == "A-0.1 APPROVED, attempt 2: ended"
    assert words[8] == "Write the greeting holds src/** no more"
    assert all(words[1:])


@pytest.mark.long
def test_once_gives_the_status_of_a_run_by_its_exit_code(tmp_path: Path) -> None:
    def made(name: str) -> Project:
        return make_project(tmp_path / name)

    good, bad, left, waiting = made("good"), made("bad"), made("left"), made("waiting")
    bad.runners["builder"] = Scripted([build("hi\n")])
    good.run()
    bad.run()
    abandon(left.root, left.waiting("builder").run_id)
    waiting.waiting("reviewer")
    codes = {project.root.name: interlock(project.root, "watch", "HELLO-001", "--once") for project in
             (good, bad, left, waiting)}  # fmt: skip
    assert {name: done.returncode for name, done in codes.items()} == {"good": 0, "bad": 1, "left": 1, "waiting": 3}
    assert "review" in codes["waiting"].stdout
    assert interlock(good.root, "watch", "NOPE").returncode == 2
    assert interlock(waiting.root, "watch", "--once").returncode == 0
    rows = [json.loads(line) for line in interlock(waiting.root, "watch", "--once", "--json").stdout.splitlines()]
    assert [row["kind"] for row in rows] == ["watch", "wait", "run", "lease"]


@pytest.mark.long
def test_a_run_is_watched_until_it_ends_whoever_drives_it(tmp_path: Path) -> None:
    root = tmp_path / "project"
    greeting_project(root)
    team = root / "team.py"
    first = "    if ask.attempt == 1 and ask.reask == 0:\n"
    held = '    while not (Path(ask.root) / "go").exists():\n        __import__("time").sleep(0.01)\n'
    team.write_text(team.read_text().replace(first, held + first))
    words = [sys.executable, "-m", "interlock"]
    with subprocess.Popen([*words, "run", "task.toml"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        until((root / ".interlock/runs/HELLO-001.1/progress.jsonl").exists)
        with subprocess.Popen([*words, "watch", "HELLO-001", "--interval", "0.1"], cwd=root, stdout=subprocess.PIPE,
                              text=True) as watching:  # fmt: skip
            assert watching.stdout is not None
            first = watching.stdout.readline()
            (root / "go").touch()
            rest = watching.stdout.read()
    assert "HELLO-001.1 IN_PROGRESS, attempt 1: at work (builder: at work)" in first
    assert (watching.returncode, "HELLO-001.1 APPROVED" in rest) == (0, True)


def until(what: Any) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_terminal_gets_a_picture_without_colour_and_is_left_as_it_was(tmp_path: Path, stop: signal.Signals) -> None:
    project = make_project(tmp_path / "hello")
    project.waiting("reviewer")
    main, end = pty.openpty()
    termios.tcsetwinsize(end, (12, 60))
    env = {**os.environ, "NO_COLOR": "1", "TERM": "xterm-256color"}
    env.pop("COLUMNS", None)
    words = [sys.executable, "-m", "interlock", "watch", "--interval", "0.2"]
    with subprocess.Popen(words, cwd=project.root, stdin=end, stdout=end, stderr=end, env=env) as watching:
        os.close(end)
        seen = b""
        while b"review" not in seen:
            assert select.select([main], [], [], 60)[0], seen
            seen += os.read(main, 65536)
        watching.send_signal(stop)
        while True:
            try:
                seen += os.read(main, 65536)
            except OSError:  # the other end is closed
                break
    os.close(main)
    text = seen.decode()
    assert watching.returncode == 128 + stop
    assert text.index("\x1b[?1049h") < text.index("\x1b[?1049l") < text.rindex("HELLO-001.1"), "the last one stays"
    assert "\x1b[?25h" in text.partition("\x1b[?1049l")[0][-40:] + text.partition("\x1b[?1049l")[2]
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38)[0-9;]*m", text), "no colour"
    drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", re.sub(r"\x1b\[(H|\?1049l)", "\n", text))
    assert max(map(cell_len, drawn.splitlines())) <= 60


def test_a_waived_gate_is_named_with_the_status_in_words_and_in_a_key_of_its_own() -> None:
    look = look_of(1)
    look.runs[0] |= {"status": "APPROVED", "waived": {"GATE-VISUAL-BROWSER": "ada"}, "state": "ended", "at_work": []}
    text = "APPROVED (GATE-VISUAL-BROWSER waived by ada)"
    assert text in frame(look, "shop", NOW, 120, None).plain
    (row,) = [line for line in changes(iter([look])) if line["kind"] == "run"]
    assert (row["status"], row["waived"]) == ("APPROVED", {"GATE-VISUAL-BROWSER": "ada"})
    assert text in in_words(row)[1]


def test_what_was_put_back_is_named_beside_the_run() -> None:
    look = look_of(1)
    look.runs[0]["put_back"] = ["tests/test_a.py", "b", "c", "d"]
    text = "put back as in the base: tests/test_a.py, b, c and 1 more"
    assert text in frame(look, "shop", NOW, 120, None).plain
    (row,) = [line for line in changes(iter([look])) if line["kind"] == "run"]
    assert in_words(row)[1].endswith(f"; {text}")
