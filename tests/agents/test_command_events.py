"""Programs that print events while they work: what is reported of them, what ends them, and what says nothing."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Answer
from interlock.agents.runners import CommandRunner, make_runner
from interlock.agents.usage import Limits, Price
from tests.agents.conftest import AskMaker, read_output

ask = partial(AskMaker(), role="builder", evidence={})
Rows = list[dict[str, Any]]


def claude(number: int, *blocks: dict[str, Any], tool: str = "") -> dict[str, Any]:
    usage = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 10}
    content = [*blocks, *([{"type": "tool_use", "name": "Edit", "input": {"file_path": tool}}] if tool else [])]
    message = {"id": f"m{number}", "model": "claude-x", "usage": usage, "content": content}
    return {"type": "assistant", "message": message}


def events(root: Path) -> dict[str, Rows]:
    """Return for each form: it edits a file, runs a command, and answers."""
    tool_result = {"type": "user", "message": {"content": [{"type": "tool_result"}]}}
    text = {"type": "text", "text": "I edit."}
    shell = {"type": "tool_use", "name": "Bash", "input": {"description": "run it", "command": "pytest  -q"}}
    used = {"input_tokens": 3000, "output_tokens": 66}
    codex_shell = {"id": "1", "type": "command_execution", "command": "pytest -q"}
    codex_edit = {"id": "0", "type": "file_change", "changes": [{"path": f"{root}/src/a.py", "kind": "update"}]}
    return {
        "claude": [
            {"type": "system", "subtype": "init"},
            # A message of two blocks is two events, and one call of the model.
            claude(1, text),
            claude(1, tool=f"{root}/src/a.py"),
            tool_result,
            claude(2, shell),
            tool_result,
            claude(3, {"type": "text", "text": "Done."}),
            {"type": "result", "subtype": "success", "result": "Done.", "usage": used, "total_cost_usd": 0.5},
        ],
        "codex": [
            {"type": "turn.started"},
            {"type": "item.completed", "item": {"id": "0", **codex_edit}},
            {"type": "item.started", "item": codex_shell},
            {"type": "item.completed", "item": codex_shell},
            {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": "Done."}},
            {"type": "turn.completed", "usage": used},
        ],
        "gemini": [
            {"type": "init", "model": "gemini-x"},
            {"type": "message", "role": "assistant", "content": "I edit.", "delta": True},
            {"type": "tool_use", "tool_name": "Edit", "parameters": {"file_path": f"{root}/src/a.py"}},
            {"type": "tool_result", "status": "success"},
            {"type": "tool_use", "tool_name": "Bash", "parameters": {"command": "pytest -q"}},
            {"type": "tool_result", "status": "success"},
            {"type": "message", "role": "assistant", "content": "Do", "delta": True},
            {"type": "message", "role": "assistant", "content": "ne.", "delta": True},
            {"type": "result", "status": "success", "stats": {**used, "total_tokens": 3066}},
        ],
    }


WAITING = """
import pathlib, sys, time
*first, last = pathlib.Path(sys.argv[1]).read_text().splitlines()
print(*first, sep="\\n", flush=True)
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
print(last)
"""


def runner(root: Path, form: str, rows: Rows, prices: dict[str, Price] | None = None) -> CommandRunner:
    """Return a program that prints all but the last row, waits for the file `go`, and prints that."""
    (root / "rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
    argv = [sys.executable, "-c", WAITING, str(root / "rows"), str(root / "go")]
    table = {"runner": "command", "argv": argv, "output": form, "timeout_seconds": 60}
    made = make_runner("builder", table, root=root, prices=prices)
    assert isinstance(made, CommandRunner)
    return made


@pytest.mark.parametrize("form", ["claude", "codex", "gemini"])
def test_what_an_agent_does_is_reported_before_it_has_answered(tmp_path: Path, form: str) -> None:
    seen: list[dict[str, Any]] = []

    def notice(step: Any) -> None:
        seen.append(step)
        # The program ends only once its last tool was reported.
        if step["tool"].endswith("pytest -q"):
            (tmp_path / "go").touch()

    prices = {"anthropic:claude-x": Price(1.0, 10.0, 0.1)}
    answer = runner(tmp_path, form, events(tmp_path)[form], prices)(ask(tmp_path, notice=notice))
    assert (answer.text, answer.tool_calls) == ("Done.", 2)
    assert (answer.usage.calls, answer.usage.input_tokens, answer.usage.output_tokens) == (3, 3000, 66)
    edit, shell = ("edit", "shell") if form == "codex" else ("Edit", "Bash")
    tools = [step["tool"] for step in seen if step["tool"]]
    assert tools == [f"{edit} src/a.py", f"{shell} pytest -q"]
    (at_work,) = [step for step in seen if step["tool"] == tools[1]]
    assert (at_work["kind"], at_work["role"], at_work["calls"]) == ("working", "builder", 2)
    if form == "claude":
        assert (at_work["tokens"], at_work["usd"]) == (2020, pytest.approx(2 * 0.00029))
        assert answer.usage.usd == 0.5, "what the program says that it cost"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(calls=2), "2 of 2 calls are spent"),
        (Limits(tokens=2000), "2020 of 2000 tokens are spent"),
        (Limits(usd=0.0005), "0.00058 of 0.0005 usd are spent"),
        (Limits(seconds=3.0), " of 3 seconds are spent"),
    ],
    ids=["calls", "tokens", "usd", "seconds"],
)
def test_an_agent_whose_limit_is_reached_is_ended_while_it_works(tmp_path: Path, limits: Limits, words: str) -> None:
    prices = {"anthropic:claude-x": Price(1.0, 10.0, 0.1)}
    answer = runner(tmp_path, "claude", events(tmp_path)["claude"], prices)(ask(tmp_path, limits=limits))
    assert answer.text == ""
    assert words in answer.stopped
    calls = 3 if limits.seconds else 2
    assert (answer.usage.calls, answer.usage.tokens) == (calls, calls * 1010)


def test_money_that_nobody_has_named_yet_ends_no_agent(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    answer = runner(tmp_path, "claude", events(tmp_path)["claude"])(ask(tmp_path, limits=Limits(usd=0.6)))
    assert (answer.text, answer.stopped, answer.usage.usd) == ("Done.", "", 0.5)


@pytest.mark.parametrize("form", ["claude", "codex", "gemini"])
def test_lines_of_another_form_and_unknown_events_say_nothing(tmp_path: Path, form: Any) -> None:
    odd = [b"a warning", b"", b"[1]", b"7", b"\xff", b"[" * 10**5, b'{"type": "new"}', b'{"type": ["x"]}', b'{"a": 1}']
    odd += [b'{"type": "item.started", "item": 3}', b'{"type": "item.completed", "item": {"type": {}}}']
    odd += [b'{"type": "assistant", "message": {"usage": 3, "content": "x"}}', b"x" * (9 * 1024 * 1024)]
    rows = [json.dumps(row).encode() for row in events(tmp_path)[form]]
    plain = read_output(form, b"\n".join(rows))
    assert isinstance(plain, Answer)
    mixed = [line for row in rows for line in (*odd, row)]
    assert read_output(form, b"\n".join(mixed)) == plain
