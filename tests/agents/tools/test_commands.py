"""A command runs by its name alone, in bounded time and with bounded output, and leaves nothing behind."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.tools import command_tool
from interlock.core import process
from tests.agents.tools.conftest import Opened, Tools
from tests.gates.collecting import wait_for_end


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def made(root: Path, code: str, **more: Any) -> Tools:
    return Tools([command_tool({"it": python(code)}, str(root), {"INTERLOCK_AGENT_ID": "run:1"}, **more)])


def test_a_command_runs_in_the_root_and_its_answer_says_how_it_ended(opened: Opened, root: Path) -> None:
    code = "import os, sys; print(os.getcwd(), sys.stdin.read()); print('odd \\u20ac', file=sys.stderr); sys.exit(3)"
    answer = opened(commands={"it": python(code)})("run_command", name="it")
    assert answer.pop("seconds") > 0
    assert answer == {
        "name": "it",
        "argv": [sys.executable, "-c", code],
        "exit_status": 3,
        "output": f"{root} \n",
        "error_output": "odd \u20ac\n",
        "errors": [],
    }


def test_no_shell_reads_the_words_of_a_command(root: Path) -> None:
    tools = Tools([command_tool({"it": (*python("import sys; print(sys.argv[1])"), "$(touch x); *")}, str(root), {})])
    assert tools("run_command", name="it")["output"] == "$(touch x); *\n"
    assert not (root / "x").exists()


def test_a_command_is_given_the_name_of_its_run_and_no_key(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    output = made(root, "import os; print(sorted(os.environ))")("run_command", name="it")["output"]
    assert "'INTERLOCK_AGENT_ID'" in output
    assert "'PATH'" in output
    assert "ANTHROPIC_API_KEY" not in output


def test_what_a_command_prints_without_end_is_kept_at_both_ends(root: Path) -> None:
    code = "import sys\nfor n in range(9000): print('\\x01', n)\nfor n in range(9000): print('e', n, file=sys.stderr)"
    answer = made(root, code)("run_command", name="it")
    assert (answer["exit_status"], answer["errors"]) == (0, [])
    for key, mark in (("output", "\x01"), ("error_output", "e")):
        assert answer[key].endswith(f"{mark} 8999\n")
        assert "characters left out" in answer[key]
    assert answer["output"].startswith("\x01 0\n")


def test_a_flood_ends_a_command(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_OUTPUT_BYTES", 200_000)
    answer = made(root, "while True: print('flood')")("run_command", name="it")
    assert ([row["code"] for row in answer["errors"]], answer["exit_status"]) == (["AGT920"], -signal.SIGKILL)
    assert answer["output"].startswith("flood\n")


def test_a_command_that_hangs_is_ended_with_all_that_it_started(root: Path) -> None:
    code = "import os, time\npid = os.fork()\nif pid: print(pid, flush=True)\ntime.sleep(600)\n"
    answer = made(root, code, timeout_seconds=0.4)("run_command", name="it")
    assert ([row["code"] for row in answer["errors"]], answer["exit_status"]) == (["AGT920"], -signal.SIGTERM)
    assert wait_for_end([int(answer["output"])])


@pytest.mark.parametrize("argv", [("no-such-program-here", "x"), ("./src",), ("a\0b",)])
def test_a_program_that_cannot_be_started_is_refused(root: Path, argv: tuple[str, ...]) -> None:
    tools = Tools([command_tool({"it": argv}, str(root), {})])
    answer = tools("run_command", name="it")
    assert [(row["code"], row["place"]) for row in answer["errors"]] == [("AGT920", "it")]
    assert "exit_status" not in answer


def test_a_long_command_line_fits_the_answer(root: Path) -> None:
    tools = Tools([command_tool({"it": (*python("print('ok')"), *["\u20ac" * 500] * 500)}, str(root), {})])
    answer = tools("run_command", name="it")
    assert answer["output"] == "ok\n"
    assert 3 < len(answer["argv"]) < 500
