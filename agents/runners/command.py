"""The `command` runner: an agent that is a program, such as Claude Code, Codex or Gemini CLI."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from interlock.agents.ask import Answer, Ask, RunnerError, Sandbox
from interlock.agents.runners.command_table import PLACEHOLDER
from interlock.agents.runners.event_stream import Stream, Unreadable
from interlock.agents.runners.presets import Command, State, command_lines
from interlock.agents.runners.program_output import PROVIDERS, STREAMS, read_output
from interlock.agents.usage import Limits, Price, Usage
from interlock.core.process import MAX_OUTPUT_BYTES, TAIL_BYTES, Ended, capture, environment_of
from interlock.redaction import redact

_SHOWN_CHARS: Final = 1000
_DOING_CHARS: Final = 120
_EVENTS: Final = "stream-json"
"""How the presets that can choose ask for events."""


class _SpentError(Exception):
    """A limit is reached while the program works: it is ended."""


class CommandRunner:
    """A runner that starts a program for each ask; no process of it is left when the answer is there.

    Args:
        command: The program.
        prices: What the tokens of models cost, by `provider:name`; a program may know better.
    """

    def __init__(self, command: Command, prices: Mapping[str, Price] | None = None) -> None:
        self._command = command
        self._prices = prices or {}

    def __call__(self, ask: Ask, /) -> Answer:
        """Run the program for an ask and return what it answered.

        What it does is reported as its events say it. It is ended when a limit of the ask is reached: by the time, or
        when the model would be asked again and what its events say is spent leaves nothing.

        Raises:
            RunnerError: It cannot be started, took too long, failed, or printed what is no answer.
        """
        command = self._command
        with tempfile.TemporaryDirectory(prefix="interlock-ask-") as folder:
            words = _words(ask, command, Path(folder))
            argv = [fill(part, words) for part in command.argv]
            argv += [fill(part, words) for part in (command.build if ask.step == "build" else command.judge)]
            lines = command_lines(ask.commands.values()) if ask.step == "build" else ()
            if command.permit is not None and lines:
                argv += command.permit(lines, Path(folder))
            work, stdin = _Work(ask, command, self._prices, folder), fill(command.stdin, words)
            ended = work.run(argv, stdin)
            if ended.status > 0 and _EVENTS.encode() in ended.complaints and not work.is_heard:
                # An earlier version, which names the form that it does not know and has done nothing yet.
                ended = work.run(["json" if part == _EVENTS else part for part in argv], stdin)
        # A program that failed may say all the same what it spent, and why it failed.
        read = read_output("text", ended.output) if work.stream is None else work.stream.end()
        usage = replace(read.usage or Usage(calls=1, usd=None), seconds=ended.seconds)
        if work.stopped:
            return Answer("", usage, command.model, stopped=work.stopped)
        problem = _problem(command.argv[0], ended, command, read)
        if problem is not None:
            message, fix = problem
            raise RunnerError(message, fix, usage)
        assert isinstance(read, Answer)
        return replace(read, usage=usage, model=read.model or command.model)


def _own_state(sandbox: Sandbox, state: State | None) -> dict[str, str]:
    """Return the variable that names the state folder of a client in a sandbox, made on first use.

    The files of the person's own are copied, by which the client knows who uses it; no folders, which hold sessions.
    """
    if state is None:
        return {}
    named = os.environ.get(state.variable)
    mine = Path(named, state.below) if named else Path(state.folder).expanduser()
    top = Path(sandbox.clients, state.variable)
    own = top / state.below
    if not own.exists():
        own.mkdir(parents=True, mode=0o700)
        beside = [Path(state.file).expanduser()] if state.file and not named else []
        for path in (*(mine.iterdir() if mine.is_dir() else ()), *beside):
            if path.is_file():
                shutil.copy2(path, own / path.name)
    return {state.variable: os.fspath(top)}


class _Work:
    """A program at work on an ask: reported, and ended when a limit is reached.

    Attributes:
        stream: Its events; None where its output is the answer as it is.
        is_heard: Whether an event has come.
        stopped: The limit that ended it, with its figures.
    """

    def __init__(self, ask: Ask, command: Command, prices: Mapping[str, Price], folder: str) -> None:
        self._ask, self._command, self._folder = ask, command, folder
        self._began = time.monotonic()
        self._said = "", Usage(usd=None)
        self.is_heard, self.stopped = False, ""
        form, provider = STREAMS.get(command.form), PROVIDERS.get(command.form)

        def price(model: str) -> Price | None:
            # The events of some programs do not name the model.
            return prices.get(f"{provider}:{model}") or prices.get(f"{provider}:{command.model}")

        self.stream = None if form is None else form(self._heard, price)

    def run(self, argv: list[str], stdin: str) -> Ended:
        """Run the program to its end.

        Raises:
            RunnerError: It cannot be started.
        """
        ask, limit = self._ask, self._ask.limits.seconds
        left = float("inf") if limit is None else max(0.0, limit - self._seconds)
        program, own = self._command.argv[0], dict[str, str]()
        if ask.sandbox is not None:
            own = ask.sandbox.environment | _own_state(ask.sandbox, self._command.state)
            seen = ("--ro-bind", self._folder, self._folder, "--chdir", ask.root, "--")
            argv = [*ask.sandbox.words, *seen, *argv]
        try:
            ended = capture(
                argv,
                stdin=stdin.encode("utf-8", "surrogatepass"),
                cwd=Path(ask.root),
                env=environment_of(self._command.environment) | ask.environment | ask.own_mark | own,
                timeout_seconds=min(self._command.timeout_seconds, left),
                at_start=ask.at_work,
                seen=None if self.stream is None else self.stream.feed,
            )
        except _SpentError:
            return Ended(-signal.SIGKILL, self._seconds)
        except (OSError, ValueError) as error:
            fix = f"Install {program} so that it is on PATH; hand long texts on by {{prompt_file}} or standard input."
            raise RunnerError(f"{program} cannot be started: {error}", fix) from error
        finally:
            ask.at_work(None)
        if ended.timed_out and left < self._command.timeout_seconds:
            self.stopped = Limits(seconds=limit).spent(Usage(seconds=self._seconds))
        return ended

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _heard(self, stream: Stream) -> None:
        """Report what the agent does, and end it before its model is asked again where nothing is left.

        Raises:
            _SpentError: A limit is reached.
        """
        self.is_heard = True
        ask, used = self._ask, stream.used
        said = (stream.doing, used)
        if said != self._said:
            self._said = said
            # Half a key would not be known as one, so that keys go before anything is cut.
            tool = redact(stream.doing).replace(f"{ask.root}/", "")[:_DOING_CHARS]
            row = {"kind": "working", "role": ask.role, "tool": tool, "calls": used.calls, "tokens": used.tokens}
            ask.notice({**row, "usd": used.usd})
        if stream.asks_next:
            # Money that no event has named yet stops nobody: some programs name it at the end.
            self.stopped = ask.limits.spent(replace(used, seconds=self._seconds, usd=used.usd or 0.0))
            if self.stopped:
                raise _SpentError


def _words(ask: Ask, command: Command, folder: Path) -> dict[str, str]:
    """Return what each placeholder stands for, and write the files that are named."""
    words = {
        "prompt": ask.prompt,
        "system": ask.system,
        "prompt_file": str(folder / "prompt.md"),
        "system_file": str(folder / "system.md"),
        "model": command.model,
        "root": ask.root,
        "role": ask.role,
        "reports_dir": ask.reports_dir,
    }
    for name in ("prompt", "system"):
        Path(words[f"{name}_file"]).write_bytes(words[name].encode("utf-8", "surrogatepass"))
    return words


def fill(text: str, words: Mapping[str, str]) -> str:
    """Replace names in braces by their words."""
    return PLACEHOLDER.sub(lambda found: found[0][0] if found[1] is None else words[found[1]], text)


def _problem(program: str, ended: Ended, command: Command, read: Answer | Unreadable) -> tuple[str, str] | None:
    """Return why a program gave no answer, and the fix; None when it gave one."""
    if ended.stopped == "timeout":
        message = f"{program} gave no answer within {command.timeout_seconds:g} s and was ended{_tail(ended)}"
        return message, "Give it more `timeout_seconds`, or see by hand what it waits for."
    if ended.stopped == "flood":
        return f"{program} printed more than {MAX_OUTPUT_BYTES} bytes and was ended", "Let it print its answer alone."
    if ended.status != 0:
        how = f"was ended by signal {-ended.status}" if ended.status < 0 else f"ended with status {ended.status}"
        # What it reports in its own form comes first: standard error may hold other warnings.
        own = f". It said: {redact(read.said)}" if isinstance(read, Unreadable) and read.said else _tail(ended)
        if not own and isinstance(read, Unreadable):
            own = f"; of its output, {redact(read.why)}"
        return f"{program} {how}{own}", "Run it by hand in this folder, and fix what it says."
    if isinstance(read, Unreadable):
        fix = 'Fix what it says, or read the output as it is with `output = "text"`.'
        return f"the output of {program} is no answer: {redact(read.why)}{_tail(ended)}", fix
    return None


def _tail(ended: Ended) -> str:
    """Return the last lines of the program's error output, for a message."""
    # Half a key would not be known as one, so that keys go before anything is cut.
    text = redact((ended.complaints or ended.output[-TAIL_BYTES:]).decode("utf-8", "replace")).strip()
    return f". It said: {text[-_SHOWN_CHARS:]}" if text else ""
