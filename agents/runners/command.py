"""The `command` runner: an agent that is a program, such as Claude Code, Codex or Gemini CLI."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from interlock.agents.ask import Answer, Ask, RunnerError
from interlock.agents.runners.command_table import PLACEHOLDER
from interlock.agents.runners.presets import Command, command_lines
from interlock.agents.runners.program_output import STREAMS, Stream, Unreadable
from interlock.agents.usage import Limits, Price, Usage
from interlock.core.process import MAX_OUTPUT_BYTES, TAIL_BYTES, Ended, capture, environment_of
from interlock.redaction import redact

_SHOWN_CHARS: Final = 1000
_DOING_CHARS: Final = 120


class SpentError(Exception):
    """A limit is reached while the program works: it is ended."""


class CommandRunner:
    """A runner that starts a program for each ask; no process of it is left when the answer is there.

    Args:
        command: The program.
        prices: What the tokens of models cost, by `provider:name`; a program may know better.
    """

    def __init__(self, command: Command, prices: Mapping[str, Price] | None = None) -> None:
        self._command, self.program = command, command.argv[0]
        self._prices = prices

    def __call__(self, ask: Ask, /) -> Answer:
        """Run the program for an ask and return what it answered.

        What it does is reported as its events say it. It is ended when a limit of the ask is reached: by the time, or
        when the model would be asked again and what its events say is spent leaves nothing.

        Raises:
            RunnerError: It cannot be started, took too long, failed, or printed what is no answer.
        """
        command, began, limit = self._command, time.monotonic(), ask.limits.seconds
        form = STREAMS.get(command.form)
        stream = None if form is None else form(watching(ask, began), self._prices, command.model)
        stopped = ""
        # In the tree of the run it goes with the tree, should this process be killed.
        place = None if ask.sandbox is None else ask.sandbox.clients
        with tempfile.TemporaryDirectory(prefix="interlock-ask-", dir=place) as folder:
            try:
                ended = self._run(ask, stream, folder)
            except SpentError as spent:
                ended, stopped = Ended(-signal.SIGKILL, time.monotonic() - began), str(spent)
        if ended.timed_out and limit is not None and limit < command.timeout_seconds:
            stopped = Limits(seconds=limit).spent(Usage(seconds=ended.seconds))
        # A program that failed may say all the same what it spent, and why it failed.
        text = ended.output.decode("utf-8", "surrogateescape")
        read = Answer(text, Usage(calls=1, usd=None)) if stream is None else stream.end()
        usage = replace(read.usage or Usage(calls=1, usd=None), seconds=ended.seconds)
        if stopped:
            return Answer("", usage, command.model, stopped=stopped)
        problem = _problem(command.argv[0], ended, command, read)
        if problem is not None:
            message, fix = problem
            raise RunnerError(message, fix, usage)
        assert isinstance(read, Answer)
        return replace(read, usage=usage, model=read.model or command.model)

    def _run(self, ask: Ask, stream: Stream | None, folder: str) -> Ended:
        """Run the program to its end; `folder` is for the files that it is handed.

        Raises:
            RunnerError: It cannot be started.
            SpentError: A limit is reached.
        """
        command, limit = self._command, ask.limits.seconds
        words = _words(ask, command, Path(folder))
        argv = [fill(part, words) for part in command.argv]
        argv += [fill(part, words) for part in (command.build if ask.step == "build" else command.judge)]
        lines = command_lines(ask.commands.values()) if ask.step == "build" else ()
        if command.permit is not None and lines:
            argv += command.permit(lines, Path(folder))
        if ask.sandbox is not None:
            argv = [*ask.sandbox.words, "--ro-bind", folder, folder, "--chdir", ask.root, "--", *argv]
        try:
            return capture(
                argv,
                stdin=fill(command.stdin, words).encode("utf-8", "surrogatepass"),
                cwd=Path(ask.root),
                env=environment_for(ask, command),
                timeout_seconds=command.timeout_seconds if limit is None else min(command.timeout_seconds, limit),
                at_start=ask.at_work,
                seen=None if stream is None else stream.feed,
            )
        except (OSError, ValueError) as error:
            name = command.argv[0]
            fix = f"Install {name} so that it is on PATH; hand long texts on by {{prompt_file}} or standard input."
            raise RunnerError(f"{name} cannot be started: {error}", fix) from error
        finally:
            ask.at_work(None)


def environment_for(ask: Ask, command: Command) -> dict[str, str]:
    """Return the variables of a program that does the work, in the sandbox of the ask where there is one."""
    given = environment_of(command.environment) | ask.environment | ask.own_mark
    box = ask.sandbox
    return given if box is None else given | box.environment | _own_state(box.clients, command)


def watching(ask: Ask, began: float) -> Callable[[Stream], None]:
    """Return what reports each event, and raises `SpentError` before a model is asked for which nothing is left."""
    said = "", Usage(usd=None)

    def heard(stream: Stream) -> None:
        nonlocal said
        used, before = stream.used, said
        said = stream.doing, used
        if said != before:
            # Half a key would not be known as one, so that keys go before anything is cut.
            tool = redact(stream.doing).replace(f"{ask.root}/", "")[:_DOING_CHARS]
            row = {"kind": "working", "role": ask.role, "tool": tool, "calls": used.calls, "tokens": used.tokens}
            ask.notice({**row, "usd": used.usd})
        if stream.asks_next:
            # Money that no event has named yet stops nobody: some programs name it at the end.
            used = replace(used, seconds=time.monotonic() - began, usd=used.usd or 0.0)
            if stopped := ask.limits.spent(used):
                raise SpentError(stopped)

    return heard


def _own_state(folder: str, command: Command) -> dict[str, str]:
    """Return the variables that name the state folders of a client in a sandbox, made on first use.

    The files of the person's own are copied, by which the client knows who uses it; no folders, which hold sessions.
    """
    for variable, sources in command.state.items():
        named, top = os.environ.get(variable), Path(folder, variable)
        for source, place in () if top.exists() else sources.items():
            own, mine = top / place, Path(named, place) if named else Path(source).expanduser()
            own.mkdir(parents=True, mode=0o700, exist_ok=True)
            for path in mine.iterdir() if mine.is_dir() else [mine]:
                if path.is_file():
                    shutil.copy2(path, own / path.name)
    return {variable: os.fspath(Path(folder, variable)) for variable in command.state}


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
        message = f"{program} gave no answer within {command.timeout_seconds:g} s and was ended{last_words(ended)}"
        return message, "Give it more `timeout_seconds`, or see by hand what it waits for."
    if ended.stopped == "flood":
        return f"{program} printed more than {MAX_OUTPUT_BYTES} bytes and was ended", "Let it print its answer alone."
    if ended.status != 0:
        how = f"was ended by signal {-ended.status}" if ended.status < 0 else f"ended with status {ended.status}"
        # What it reports in its own form comes first: standard error may hold other warnings.
        own = f". It said: {redact(read.said)}" if isinstance(read, Unreadable) and read.said else last_words(ended)
        if not own and isinstance(read, Unreadable):
            own = f"; of its output, {redact(read.why)}"
        return f"{program} {how}{own}", "Run it by hand in this folder, and fix what it says."
    if isinstance(read, Unreadable):
        fix = 'Fix what it says, or read the output as it is with `output = "text"`.'
        return f"the output of {program} is no answer: {redact(read.why)}{last_words(ended)}", fix
    return None


def last_words(ended: Ended) -> str:
    """Return the last lines of the program's error output, for a message."""
    # Half a key would not be known as one, so that keys go before anything is cut.
    text = redact((ended.complaints or ended.output[-TAIL_BYTES:]).decode("utf-8", "replace")).strip()
    return f". It said: {text[-_SHOWN_CHARS:]}" if text else ""
