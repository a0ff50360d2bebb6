"""What a person sees of a run while it works, on a terminal and without one, and what a program reads of it."""

import io
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from interlock.cli.events import EVENTS, EventStream
from interlock.cli.screen import Screen, answer_text, money_text, usage_lines

DOCS = Path(__file__).parents[2] / "docs"


class Clock:
    """A clock that does not move until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def screen(width: int = 100, *, terminal: bool = True, live: bool = True) -> tuple[Screen, Console, io.StringIO, Clock]:
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, force_terminal=terminal, width=width, color_system=None, highlight=False)
    return Screen(console, live=live, clock=clock), console, out, clock


def asking(role: str) -> dict[str, Any]:
    return {"kind": "asking", "role": role, "attempt": 1, "reask": 0}


def working(role: str, tool: str = "", tokens: int = 0) -> dict[str, Any]:
    return {"kind": "working", "role": role, "tool": tool, "calls": 1, "tokens": tokens, "usd": tokens / 10**6}


def answered(role: str, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": "answered", "role": role, "outcome": "pass", "codes": [], "first": ""}
    return {**row, "seconds": None, "usage": None, "model": "", **more}


def test_a_terminal_is_redrawn_with_the_present_second_until_the_role_has_answered() -> None:
    shown, console, out, clock = screen()
    with shown:
        shown.notice(asking("visual-qa"))
        shown.notice(asking("a11y-auditor"))
        clock.now = 5.0
        shown.notice(working("visual-qa", "read_file a.css", 2_345))
        assert shown.picture().plain == (
            "visual-qa 0:05 · read_file a.css · 2,345 tokens · $0.0023\na11y-auditor 0:05 · at work"
        )
        shown.notice(answered("visual-qa"))
        shown.notice(working("visual-qa", "too late", 1))
        shown.notice(working("a11y-auditor"))
        assert shown.picture().plain == "a11y-auditor 0:05 · thinking"
        assert console.is_terminal
    assert "a11y-auditor 0:05" in out.getvalue()
    assert "visual-qa: PASS" in out.getvalue()


def test_without_a_terminal_there_are_lines_alone_and_each_answer_says_what_it_took() -> None:
    shown, _, out, _ = screen(terminal=False)
    usage = {"calls": 3, "input_tokens": 4000, "output_tokens": 211, "seconds": 12.3, "usd": 0.02}
    with shown:
        shown.notice(asking("visual-qa"))
        shown.notice(working("visual-qa", "read_file", 100))
        shown.notice(answered("visual-qa", seconds=12.345, usage=usage))
        shown.notice(answered("code-reviewer", outcome="invalid", codes=["ENV201"], first="no", seconds=3.0))
        shown.notice(answered("builder", outcome="handover"))
    lines = [line[10:] for line in out.getvalue().splitlines()]
    assert lines == [
        "asking visual-qa",
        "  visual-qa: PASS  12.3 s, 4,211 tokens, $0.02",
        "  code-reviewer: refused (ENV201)  3.0 s",
        "  no",
        "  builder: hands over",
    ]


def test_without_a_terminal_the_tests_of_a_gate_are_counted_every_ten_seconds() -> None:
    shown, _, out, clock = screen(terminal=False)
    with shown:
        shown.notice({"kind": "collecting", "role": "", "gate": "GATE-TESTS"})
        for number in range(60):
            clock.now += 0.5
            shown.notice({"kind": "gate", "gate": "GATE-TESTS", "line": f"{number + 1} of 60 tests"})
        shown.notice({"kind": "gate", "gate": "GATE-TESTS", "line": "try 2: 3 failed before"})
    lines = [line.partition("GATE-TESTS: ")[2] for line in out.getvalue().splitlines()]
    assert lines == ["1 of 60 tests", "21 of 60 tests", "41 of 60 tests", "try 2: 3 failed before"]


def test_on_a_terminal_the_row_of_a_gate_counts_its_tests() -> None:
    shown, _, out, _ = screen(terminal=True)
    with shown:
        for number in (1, 2):
            shown.notice({"kind": "gate", "gate": "GATE-TESTS", "line": f"{number} of 2 tests"})
        assert "2 of 2 tests" in shown.picture().plain
    assert "GATE-TESTS: 1 of 2" not in out.getvalue()


def test_on_a_terminal_that_a_program_reads_from_nothing_is_redrawn() -> None:
    shown, _, out, _ = screen(live=False)
    with shown:
        shown.notice(asking("visual-qa"))
    assert out.getvalue().count("\n") == 1
    assert "\x1b" not in out.getvalue()


def test_amounts_are_short_and_say_nothing_that_is_not_known() -> None:
    assert [money_text(each) for each in (0.0, 0.000312, 0.02, 1234.5)] == ["$0.00", "$0.00031", "$0.02", "$1,234.50"]
    assert answer_text(None, None) == answer_text(0.04, {"usd": 0.0}) == ""


def test_usage_names_roles_that_cost_something_or_have_a_budget_and_the_sum() -> None:
    def used(calls: int, read: int, written: int, seconds: float, usd: float | None) -> dict[str, Any]:
        return {
            "calls": calls,
            "seconds": seconds,
            "usd": usd,
            "left": {},
            "input_tokens": read,
            "output_tokens": written,
        }

    nothing, spent = used(1, 0, 0, 0.0, 0.0), used(2, 1200, 30, 2.5, None)
    row = "visual-qa: 2 calls, 1,200 tokens in, 30 out, 2.5 s, price not known"
    assert usage_lines({"roles": {"a": nothing}, "all": nothing}) == []
    assert usage_lines({"roles": {"a": nothing, "visual-qa": spent}, "all": spent}) == [row]
    left = {"calls": 1, "tokens": 8770, "seconds": 57.5, "usd": 0.5}
    assert usage_lines({"roles": {"visual-qa": spent, "b": {**nothing, "left": left}}, "all": spent}) == [
        row,
        "b: 1 call, 0.0 s, $0.00; left: 1 calls, 8,770 tokens, 57.5 seconds, $0.50",
        "in all: 2 calls, 1,200 tokens in, 30 out, 2.5 s, price not known",
    ]


class Flushing(io.StringIO):
    """Remembers what had been written at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[str] = []

    def flush(self) -> None:
        self.flushed.append(self.getvalue())


def test_every_event_is_one_whole_flushed_line_whichever_thread_reports_it() -> None:
    out = Flushing()
    events = EventStream("A-1.1", out, unread="", now=lambda: datetime(2026, 1, 2, 3, 4, 5, 6789, UTC))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(events.notice, [working("visual-qa", "x\ny", number) for number in range(100)]))
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert sorted(row["tokens"] for row in rows) == list(range(100))
    assert {(row["at"], row["run_id"]) for row in rows} == {("2026-01-02T03:04:05.006Z", "A-1.1")}
    assert len([text for text in out.flushed if text.endswith("}\n")]) == 100


def test_what_others_print_meanwhile_does_not_get_between_the_events(capsys: pytest.CaptureFixture[str]) -> None:
    with EventStream.on_stdout("A-1.1", "A-1", again="") as events:
        print("a stray word")
        with redirect_stdout(io.StringIO()):
            events.notice(asking("visual-qa"))
    print("after")
    streams = capsys.readouterr()
    assert streams.err == "a stray word\n"
    assert [line if line == "after" else json.loads(line)["kind"] for line in streams.out.splitlines()] == [
        "run",
        "asking",
        "after",
    ]


def test_a_writer_of_events_that_nobody_reads_ends_and_says_how_to_go_on(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom interlock.cli.events import EventStream\n"
        "EventStream('A-1.1', sys.stdout, unread='go on').notice({'kind': 'run'})\nprint('not reached')"
    )
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"go on\n")


def test_each_kind_of_event_is_written_down_with_its_keys() -> None:
    rows = [line for line in (DOCS / "watch.md").read_text().splitlines() if line.startswith("| `")]
    described = {cells[1].strip(" `"): cells[2] for cells in (row.split("|") for row in rows)}
    for kind, keys in EVENTS.items():
        assert [key for key in keys if f"`{key}`" not in described[kind]] == []
