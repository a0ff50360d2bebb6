"""Promises of re-asks: they go on in the conversation of the refused answer, and no other ask does."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Ask, RunnerError
from interlock.agents.runners import CommandRunner, make_runner
from interlock.agents.runners import chat as chat_runner
from interlock.agents.runners.conversation import MAX_KEPT, Conversations
from interlock.agents.usage import Limits
from tests.agents.chats import WIRES, chat
from tests.agents.providers.anthropic import Anthropic
from tests.agents.providers.base import Reply, Request, Script

each_wire = pytest.mark.parametrize("wire", WIRES)
LOOK = ("read_file", {"path": "src/x.css"})
AGAIN: dict[str, Any] = {"prompt": "Do it. Replace line 3.", "correction": "Replace line 3."}


@pytest.mark.sample(every=2)
@each_wire
def test_a_reask_goes_on_after_what_was_read_and_said(wire: str, make_ask: Any) -> None:
    server, settings = WIRES[wire]
    script = [
        Reply("I look.", [LOOK], usage=(100, 20)),
        Reply("first", usage=(200, 20)),
        Reply("I look again.", [LOOK], usage=(300, 20)),
        Reply("second", usage=(400, 20)),
        Reply("third", usage=(500, 20)),
    ]
    with server(script) as provider:
        runner = chat(provider.url, settings)
        asks = [make_ask(), *(make_ask(reask=number, **AGAIN) for number in (1, 2))]
        answers = [runner(ask) for ask in asks]
    assert [answer.text for answer in answers] == ["first", "second", "third"]
    counted = [(row.usage.calls, row.usage.input_tokens, row.tool_calls) for row in answers]
    assert counted == [(2, 300, 1), (2, 700, 1), (1, 500, 0)]
    last = provider.requests[-1].words
    assert (last.count("Do it."), last.count("Replace line 3."), last.count("it says: hello")) == (1, 2, 2)
    assert all(text in last for text in ("first", "second", "I look again."))


def asked(script: Script, *asks: Ask) -> list[Request]:
    """Put asks to one runner, and return what the provider was asked."""
    with Anthropic(script) as provider:
        runner = chat(provider.url, {"model": "anthropic:m"})
        for ask in asks:
            runner(ask)
    return provider.requests


@pytest.mark.parametrize(
    "changes",
    [
        {"reask": 2, **AGAIN},
        {"reask": 1, "turn": 2, **AGAIN},
        {"reask": 1, "attempt": 2, **AGAIN},
        {"reask": 1, "role": "other", **AGAIN},
        {"reask": 1, "run_id": "run-2", **AGAIN},
        {"reask": 1, "prompt": "Do it."},
    ],
    ids=["another answer", "another turn", "another round", "another role", "another run", "no correction"],
)
def test_any_other_ask_begins_anew(changes: Any, make_ask: Any) -> None:
    request = asked([Reply("first"), Reply("second")], make_ask(), make_ask(**changes))[-1]
    assert "first" not in request.words
    assert "Do it." in request.words


def test_a_reask_in_another_process_or_after_a_stop_has_the_whole_assignment(make_ask: Any) -> None:
    settings = {"model": "anthropic:m", "retries": 0}
    with Anthropic([Reply("first"), Reply(fault="500"), Reply("second"), Reply("third")]) as provider:
        runner = chat(provider.url, settings)
        runner(make_ask())
        again = make_ask(reask=1, **AGAIN)
        with pytest.raises(RunnerError):
            runner(again)
        runner(again)
        chat(provider.url, settings)(make_ask(reask=2, **AGAIN))
    for request in provider.requests[2:]:
        assert "first" not in request.words
        assert "Do it. Replace line 3." in request.words


def test_a_conversation_that_fills_half_of_what_the_model_reads_is_not_gone_on_with(
    make_ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_runner, "CONTEXT_TOKENS", 200)
    requests = asked([Reply("first " * 100), Reply("second")], make_ask(), make_ask(reask=1, **AGAIN))
    assert "first" not in requests[1].words


def test_a_limit_ends_a_reask_too_and_the_next_begins_anew(make_ask: Any) -> None:
    with Anthropic([Reply("first"), Reply(tool_calls=[LOOK]), Reply("third")]) as provider:
        runner = chat(provider.url, {"model": "anthropic:m"})
        runner(make_ask())
        stopped = runner(make_ask(reask=1, limits=Limits(calls=1), **AGAIN))
        runner(make_ask(reask=2, **AGAIN))
    assert stopped.stopped == "1 of 1 calls are spent"
    assert "first" not in provider.requests[2].words


def test_a_runner_keeps_few_conversations_and_forgets_the_oldest(make_ask: Any) -> None:
    kept = Conversations[str]()
    for number in range(MAX_KEPT + 1):
        kept.keep(make_ask(run_id=f"run-{number}"), "said")
    asks = [make_ask(run_id=f"run-{number}", reask=1, **AGAIN) for number in range(MAX_KEPT + 1)]
    assert [kept.take(ask) for ask in asks] == [None, *["said"] * MAX_KEPT]
    assert kept.take(asks[-1]) is None


# -- a program ---------------------------------------------------------------------------------------------------------

OUTPUTS: dict[str, list[dict[str, Any]]] = {
    "claude": [{"result": "said", "session_id": "s-1", "total_cost_usd": 0.5, "usage": {"input_tokens": 10}}],
    "codex": [
        {"type": "thread.started", "thread_id": "s-1"},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "said"}},
        {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 5}},
    ],
    "gemini": [{"response": "said", "session_id": "s-1", "stats": {}}],
}
RESUMED = {"claude": ["--resume", "s-1"], "codex": ["resume", "s-1", "-"], "gemini": ["--resume", "s-1"]}
PROGRAM = """#!{python}
import json, pathlib, sys, time
folder = pathlib.Path({folder!r})
with open(folder / "given.jsonl", "a") as file:
    print(json.dumps([sys.argv[1:], sys.stdin.read()]), file=file)
what = (folder / "what").read_text() if (folder / "what").exists() else ""
if "s-1" in sys.argv and what == "gone":
    sys.exit("no such session")
if "s-1" in sys.argv and what == "hangs":
    time.sleep(600)
print({output!r})
"""


class StandIn:
    """A program on PATH with the name of a preset, which keeps what it was given."""

    def __init__(self, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
        self.root, self._folder = folder, folder / "kept"
        self._folder.mkdir()
        lines = [json.dumps(row | changes) for row in OUTPUTS[name]]
        path = folder / "bin" / name
        path.parent.mkdir()
        path.write_text(PROGRAM.format(python=sys.executable, folder=str(self._folder), output="\n".join(lines)))
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
        self._name = name

    def runner(self, **settings: Any) -> CommandRunner:
        """Make a runner of the preset."""
        made = make_runner("builder", {"runner": "command", "preset": self._name, **settings}, root=self.root)
        assert isinstance(made, CommandRunner)
        return made

    def when_resumed(self, what: str) -> None:
        """Say what it does when it is to go on with a conversation."""
        (self._folder / "what").write_text(what)

    def given(self) -> list[tuple[list[str], str]]:
        """Return arguments and standard input of each start."""
        rows = [json.loads(line) for line in (self._folder / "given.jsonl").read_text().splitlines()]
        return [(argv, stdin) for argv, stdin in rows]


each_preset = pytest.mark.parametrize("name", OUTPUTS)


@pytest.fixture
def stand_in(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(name, tmp_path, monkeypatch)


def pair(make_ask: Any, root: Path, **more: Any) -> tuple[Ask, Ask]:
    return make_ask(root, **more), make_ask(root, reask=1, **AGAIN, **more)


@each_preset
def test_a_program_gets_the_correction_alone_in_its_conversation(name: str, stand_in: StandIn, make_ask: Any) -> None:
    runner = stand_in.runner(model="m-1", arguments=["--more"])
    for ask in pair(make_ask, stand_in.root):
        assert runner(ask).text == "said"
    (first, whole), (again, correction) = stand_in.given()
    assert "s-1" not in first
    assert "Do it." in whole
    assert (again[-len(RESUMED[name]) :], again[: len(first) - 1]) == (RESUMED[name], first[:-1])
    assert correction == "Replace line 3."


@each_preset
def test_a_program_that_cannot_go_on_gets_the_whole_assignment(name: str, stand_in: StandIn, make_ask: Any) -> None:
    stand_in.when_resumed("gone")
    runner = stand_in.runner()
    for ask in pair(make_ask, stand_in.root):
        assert runner(ask).text == "said"
    (first, _), (resumed, _), (last, whole) = stand_in.given()
    assert ("s-1" in resumed, last) == (True, first)
    assert whole.endswith("Do it. Replace line 3.")
    assert name


def test_a_program_out_of_time_is_not_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_ask: Any) -> None:
    stand_in = StandIn("claude", tmp_path, monkeypatch)
    stand_in.when_resumed("hangs")
    runner = stand_in.runner(timeout_seconds=1)
    first, again = pair(make_ask, tmp_path)
    runner(first)
    with pytest.raises(RunnerError):
        runner(again)
    assert len(stand_in.given()) == 2


@pytest.mark.parametrize(
    ("session", "settings"),
    [("--dangerously-skip-permissions", {}), ("", {}), (7, {}), ("s-1", {"stdin": "{prompt}"})],
    ids=["an option", "empty", "a number", "other input"],
)
def test_a_conversation_without_a_plain_name_or_with_input_of_the_users_is_not_gone_on_with(
    session: object, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_ask: Any
) -> None:
    stand_in = StandIn("claude", tmp_path, monkeypatch, session_id=session)
    runner = stand_in.runner(**settings)
    for ask in pair(make_ask, tmp_path):
        runner(ask)
    (first, _), (again, whole) = stand_in.given()
    assert (again, whole) == (first, "Do it. Replace line 3.")


@each_preset
def test_a_reported_sum_over_the_conversation_is_counted_once(name: str, stand_in: StandIn, make_ask: Any) -> None:
    runner = stand_in.runner()
    first, again = [runner(ask).usage for ask in pair(make_ask, stand_in.root)]
    # The program reports the same figures twice: a sum to which nothing was added, or the cost of the second turn.
    assert (again.usd, first.usd) == ((0.0, 0.5) if name == "claude" else (None, None))
    assert again.input_tokens == (0 if name == "codex" else first.input_tokens)


# -- permissions -------------------------------------------------------------------------------------------------------

COMMANDS = {"test": ("pytest", "-q"), "GATE-TESTS": ("pytest", "-q"), "say": ("echo", "a b*"), "two": ("echo", "a\nb")}


@pytest.mark.sample(every=3)
@each_preset
@pytest.mark.parametrize("step", ["build", "qa", "review"])
def test_only_a_build_role_may_run_commands_of_its_task(name: str, step: str, stand_in: StandIn, make_ask: Any) -> None:
    runner = stand_in.runner()
    runner(make_ask(stand_in.root, step=step))
    runner(make_ask(stand_in.root, step=step, commands=COMMANDS))
    (plain, _), (given, _) = stand_in.given()
    added = [word for word in given if word not in plain]
    match name, step:
        case "claude", "build":
            assert added == ["--allowedTools", "Bash(pytest -q)"]
        case "gemini", "build":
            assert (added[0], len(added)) == ("--policy", 2)
        case _:
            assert not added
