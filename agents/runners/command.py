"""The `command` runner: an agent that is a program, such as Claude Code, Codex or Gemini CLI."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from interlock.agents.ask import Answer, Ask, RunnerError, Sandbox
from interlock.agents.runners.command_table import PLACEHOLDER
from interlock.agents.runners.presets import Command, State, command_lines
from interlock.agents.runners.program_output import Unreadable, read_output
from interlock.agents.usage import Usage
from interlock.core.process import MAX_OUTPUT_BYTES, TAIL_BYTES, Ended, capture, environment_of
from interlock.redaction import redact

_SHOWN_CHARS: Final = 1000


class CommandRunner:
    """A runner that starts a program for each ask; no process of it is left when the answer is there."""

    def __init__(self, command: Command) -> None:
        self._command = command

    def __call__(self, ask: Ask, /) -> Answer:
        """Run the program for an ask and return what it answered.

        Raises:
            RunnerError: It cannot be started, took too long, failed, or printed what is no answer.
        """
        command, program = self._command, self._command.argv[0]
        # In the tree of the run it goes with the tree, should this process be killed.
        place = None if ask.sandbox is None else ask.sandbox.clients
        with tempfile.TemporaryDirectory(prefix="interlock-ask-", dir=place) as folder:
            words = _words(ask, command, Path(folder))
            argv = [fill(part, words) for part in command.argv]
            argv += [fill(part, words) for part in (command.build if ask.step == "build" else command.judge)]
            lines = command_lines(ask.commands.values()) if ask.step == "build" else ()
            if command.permit is not None and lines:
                argv += command.permit(lines, Path(folder))
            own = dict[str, str]()
            if ask.sandbox is not None:
                own = ask.sandbox.environment | _own_state(ask.sandbox, command.state)
                argv = [*ask.sandbox.words, "--ro-bind", folder, folder, "--chdir", ask.root, "--", *argv]
            try:
                ended = capture(
                    argv,
                    stdin=fill(command.stdin, words).encode("utf-8", "surrogatepass"),
                    cwd=Path(ask.root),
                    env=environment_of(command.environment) | ask.environment | ask.own_mark | own,
                    timeout_seconds=command.timeout_seconds,
                    at_start=ask.at_work,
                )
            except (OSError, ValueError) as error:
                fix = (
                    f"Install {program} so that it is on PATH; hand long texts on by {{prompt_file}} or standard input."
                )
                raise RunnerError(f"{program} cannot be started: {error}", fix) from error
            finally:
                ask.at_work(None)
        # A program that failed may say all the same what it spent, and why it failed.
        read = read_output(command.form, ended.output)
        usage = replace(read.usage or Usage(calls=1, usd=None), seconds=ended.seconds)
        problem = _problem(program, ended, command, read)
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
        own = f". It said: {redact(read.said)}" if isinstance(read, Unreadable) and read.said else ""
        return f"{program} {how}{own or _tail(ended)}", "Run it by hand in this folder, and fix what it says."
    if isinstance(read, Unreadable):
        fix = 'Fix what it says, or read the output as it is with `output = "text"`.'
        return f"the output of {program} is no answer: {redact(read.why)}{_tail(ended)}", fix
    return None


def _tail(ended: Ended) -> str:
    """Return the last lines of the program's error output, for a message."""
    # Half a key would not be known as one, so that keys go before anything is cut.
    text = redact((ended.complaints or ended.output[-TAIL_BYTES:]).decode("utf-8", "replace")).strip()
    return f". It said: {text[-_SHOWN_CHARS:]}" if text else ""
