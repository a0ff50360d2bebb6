"""The `command` runner: real programs that answer, hang, die, flood, or answer without having worked."""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import AgentConfigError, Answer, RunnerError
from interlock.agents.runners import CommandRunner, make_runner
from interlock.agents.runners.presets import PRESETS
from interlock.agents.runners.program_output import Unreadable
from interlock.agents.usage import Usage
from tests.agents.conftest import AskMaker, read_output
from tests.refusals import raises_with
from tests.table import each_row

ENVELOPE = "STATUS: BLOCKED\nwhatever\n"


ask = partial(
    AskMaker(),
    run_id="HOME-1.1",
    task_id="HOME-1",
    role="builder",
    prompt="Do it. {not a placeholder}",
    evidence={},
    reports_dir="artifacts/reports/HOME-1/1",
)


def command(root: Path, **settings: Any) -> CommandRunner:
    runner = make_runner("builder", {"runner": "command", **settings}, root=root)
    assert isinstance(runner, CommandRunner)
    return runner


def python(code: str) -> list[str]:
    """Return the command line of a program, whose braces are no placeholders."""
    return [sys.executable, "-c", code.replace("{", "{{").replace("}", "}}")]


def problem(root: Path, **settings: Any) -> AgentConfigError:
    with pytest.raises(AgentConfigError) as caught:
        command(root, **settings)
    assert caught.value.fix
    return caught.value


def test_a_program_reads_role_and_prompt_and_its_output_is_the_answer(tmp_path: Path) -> None:
    answer = command(tmp_path, argv=python("import sys; print(sys.stdin.read().upper())"))(ask(tmp_path))
    assert answer.text == "YOU BUILD.\n\nDO IT. {NOT A PLACEHOLDER}\n"
    assert (answer.usage.calls, answer.usage.usd, answer.tool_calls) == (1, None, None)
    assert answer.usage.seconds > 0


def test_every_placeholder_stands_for_what_it_names(tmp_path: Path) -> None:
    names = ("root", "role", "reports_dir", "model", "prompt", "system")
    code = "import sys, pathlib; print(*sys.argv[3:], *(pathlib.Path(p).read_text() for p in sys.argv[1:3]), sep='|')"
    files = ["{prompt_file}", "{system_file}"]
    runner = command(tmp_path, argv=[*python(code), *files, *(f"<{{{name}}}>" for name in names)], model="m-1")
    prompt, system = "Do it. {not a placeholder}", "You build."
    wanted = (str(tmp_path), "builder", "artifacts/reports/HOME-1/1", "m-1", prompt, system)
    assert runner(ask(tmp_path)).text == "|".join([*(f"<{each}>" for each in wanted), prompt, system]) + "\n"


def test_a_program_works_in_the_project_and_as_the_run(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), os.environ.get('INTERLOCK_AGENT_ID'))"
    assert (
        command(tmp_path, argv=python(code))(ask(tmp_path, agent="run:HOME-1.1")).text == f"{tmp_path} run:HOME-1.1\n"
    )


def test_only_the_listed_part_of_the_environment_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MY_KEY", "MY_OTHER_KEY", "SECRET_TOKEN", "LC_ALL"):
        monkeypatch.setenv(name, "x")
    code = python("import json, os; print(json.dumps(sorted(os.environ)))")
    plain = json.loads(command(tmp_path, argv=code)(ask(tmp_path)).text)
    assert {"MY_KEY", "SECRET_TOKEN"}.isdisjoint(plain)
    assert "LC_ALL" in plain
    listed = json.loads(command(tmp_path, argv=code, environment=["MY_*"])(ask(tmp_path)).text)
    assert set(listed) - set(plain) == {"MY_KEY", "MY_OTHER_KEY"}


def test_bytes_that_are_no_text_reach_the_validator_as_they_are(tmp_path: Path) -> None:
    answer = command(tmp_path, argv=python("import sys; sys.stdout.buffer.write(b'\\xff')"))(ask(tmp_path))
    assert answer.text.encode("utf-8", "surrogateescape") == b"\xff"


@pytest.mark.parametrize(
    ("code", "settings", "words"),
    [
        ("import sys; print('no key', file=sys.stderr); sys.exit(7)", {}, "ended with status 7. It said: no key"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", {}, "was ended by signal 9"),
        ("import time; time.sleep(600)", {"timeout_seconds": 1}, "gave no answer within 1 s"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", {}, "printed more than 8388608 bytes"),
        ("print('not json')", {"output": "claude"}, "is no answer: it is no JSON object: not json"),
    ],
    ids=["fails", "dies", "hangs", "floods", "another form"],
)
def test_a_program_without_an_answer_stops_the_run_and_says_why(
    tmp_path: Path, code: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(RunnerError) as caught:
        command(tmp_path, argv=python(code), **settings)(ask(tmp_path))
    assert words in caught.value.message
    assert caught.value.fix


@pytest.mark.parametrize("name", ["no-such-agent", "./no-such-agent", "/no/such/agent"])
def test_a_program_that_is_not_there_is_refused_before_anybody_is_asked(tmp_path: Path, name: str) -> None:
    error = problem(tmp_path, argv=[name])
    assert (error.key, name in error.message) == ("agents.builder.argv", True)


def test_a_prompt_that_is_too_long_for_a_command_line_is_said_with_the_way_round(tmp_path: Path) -> None:
    with raises_with(RunnerError, "{prompt_file}"):
        command(tmp_path, argv=[*python("pass"), "{prompt}"])(ask(tmp_path, prompt="x" * 1_000_000))


def stand_in(folder: Path, name: str, output: str) -> Path:
    """Put a program of that name on PATH: it keeps what it was given and prints an output."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"json.dump([sys.argv[1:], sys.stdin.read()], open({str(folder / 'given.json')!r}, 'w'))\n"
        f"print({output!r})\n"
    )
    path.chmod(0o755)
    return path.parent


CLAUDE_USED = {
    "input_tokens": 5,
    "cache_creation_input_tokens": 100,
    "cache_read_input_tokens": 1000,
    "output_tokens": 70,
}
CLAUDE_TOOL = {"type": "tool_use", "name": "Read", "input": {"file_path": "a"}}
GEMINI_USED = {"input_tokens": 800, "output_tokens": 60, "total_tokens": 900}
EVENTS: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {"type": "assistant", "message": {"id": "1", "usage": CLAUDE_USED, "content": [CLAUDE_TOOL]}},
        {"type": "user"},
        {"type": "assistant", "message": {"id": "2", "usage": CLAUDE_USED}},
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": ENVELOPE,
            "num_turns": 2,
            "total_cost_usd": 0.0125,
            "usage": CLAUDE_USED,
            "modelUsage": {"claude-x": {}},
        },
    ],
    "codex": [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"type": "command_execution", "command": "ls"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "on my way"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": ENVELOPE}},
        {"type": "turn.completed", "usage": {"input_tokens": 900, "cached_input_tokens": 100, "output_tokens": 80}},
    ],
    "gemini": [
        {"type": "init", "model": "auto"},
        {"type": "tool_use", "tool_name": "ls", "parameters": {}},
        {"type": "tool_result", "status": "success"},
        {"type": "message", "role": "assistant", "content": ENVELOPE, "delta": True},
        {"type": "result", "status": "success", "stats": {"models": {"gemini-x": GEMINI_USED}}},
    ],
}
OUTPUTS = {name: "\n".join(map(json.dumps, rows)) for name, rows in EVENTS.items()}
ANSWERS = {
    "claude": Answer(ENVELOPE, Usage(2, 1105, 70, usd=0.0125), "claude-x", 1),
    "codex": Answer(ENVELOPE, Usage(2, 900, 80, usd=None), tool_calls=1),
    "gemini": Answer(ENVELOPE, Usage(2, 800, 100, usd=None), "gemini-x", 1),
}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("step", ["build", "qa"])
def test_a_preset_starts_its_program_and_reads_answer_and_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: str
) -> None:
    monkeypatch.setenv("PATH", f"{stand_in(tmp_path, name, OUTPUTS[name])}:{os.environ['PATH']}")
    runner = command(tmp_path, preset=name, model="m-1", arguments=["--more", "{role}"])
    answer = runner(ask(tmp_path, step=step))
    wanted = ANSWERS[name]
    assert answer.text == ENVELOPE
    assert answer.usage.to_json() | {"seconds": 0.0} == wanted.usage.to_json()
    assert (answer.model, answer.tool_calls) == (wanted.model or "m-1", wanted.tool_calls)
    argv, stdin = json.loads((tmp_path / "given.json").read_text())
    assert "m-1" in argv
    assert argv[argv.index("--more") + 1] == "builder"
    assert "Do it. {not a placeholder}" in stdin
    assert "You build." in (*argv, stdin.partition("\n")[0])
    assert ("acceptEdits" in argv) == (name == "claude" and step == "build")


@each_row(
    ("form", "output", "words"),
    [
        (
            "claude",
            '{"type": "result", "is_error": true, "subtype": "error_max_turns", "result": "too long"}',
            "error_max_turns: too long",
        ),
        ("codex", '{"type": "turn.failed", "error": {"message": "no quota"}}', "it says: no quota"),
        ("codex", "", "no message of the agent"),
        ("gemini", '{"type": "result", "status": "error", "error": {"message": "no quota"}}', "no quota"),
        ("claude", "[" * 100_000, "it is no JSON"),
    ],
)
def test_an_output_that_says_that_there_is_no_answer_is_none(form: Any, output: str, words: str) -> None:
    read = read_output(form, output.encode())
    assert isinstance(read, Unreadable)
    assert words in read.why


@pytest.mark.parametrize(
    ("form", "output", "words"),
    [
        (
            "claude",
            '{"type": "result", "is_error": true, "subtype": "success", "result": "API Error: 500"}',
            "It said: API Error: 500",
        ),
        ("codex", '{"type": "turn.failed", "error": {"message": "no quota"}}', "no quota"),
        ("gemini", '{"type": "result", "status": "error", "error": {"message": "no quota"}}', "no quota"),
        ("claude", "no JSON", "only a warning"),
    ],
)
def test_what_a_program_that_fails_says_in_its_own_form_comes_before_its_warnings(
    tmp_path: Path, form: str, output: str, words: str
) -> None:
    script = f"import sys; print({output!r}); sys.exit('only a warning')"
    with pytest.raises(RunnerError) as caught:
        command(tmp_path, argv=python(script), output=form)(ask(tmp_path))
    assert words in caught.value.message
    assert ("only a warning" in caught.value.message) is (words == "only a warning")


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({}, "preset"),
        ({"preset": "claude", "argv": ["x"]}, "preset"),
        ({"preset": "cluade"}, "preset"),
        ({"argv": "claude -p"}, "argv"),
        ({"argv": ["x", "{promt}"]}, "argv"),
        ({"argv": ["x", "{model}"]}, "argv"),
        ({"argv": ["x"], "output": "xml"}, "output"),
        ({"argv": ["x"], "timeout_seconds": 0}, "timeout_seconds"),
        ({"argv": ["x"], "environment": ["KEY=hunter2"]}, "environment"),
        ({"argv": ["x"], "environment": ["*"]}, "environment"),
        ({"argv": ["x"], "timeout": 5}, "timeout"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_at_its_key(tmp_path: Path, settings: dict[str, Any], key: str) -> None:
    found = problem(tmp_path, **settings)
    assert found.key == f"agents.builder.{key}"
    assert "hunter2" not in f"{found} {found.fix}", "a value beside a name is not shown"


@pytest.mark.parametrize("cost", ["NaN", "1e999", "-1", '"3"', "null"])
def test_a_cost_that_is_no_amount_is_unknown(cost: str) -> None:
    read = read_output("claude", f'{{"type": "result", "result": "x", "total_cost_usd": {cost}}}'.encode())
    assert isinstance(read, Answer)
    assert read.usage.usd is None
