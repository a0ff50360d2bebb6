"""The `command` runner: an agent that is a program, such as Claude Code, Codex or Gemini CLI."""

import errno
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from interlock.agents.ask import Answer, Ask, RunnerError
from interlock.agents.runners.command_table import PLACEHOLDER
from interlock.agents.runners.conversation import Conversations
from interlock.agents.runners.presets import Command, Figure, command_lines
from interlock.agents.runners.program_output import Form, UnreadableOutputError, read_output, session_of
from interlock.agents.usage import Usage
from interlock.core.process import MAX_OUTPUT_BYTES, TAIL_BYTES, Ended, capture, environment_of
from interlock.redaction import redact

_SHOWN_CHARS: Final = 1000


class FailedError(RunnerError):
    """The program exited with a failure."""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation that a program has kept: its name, and the cost that it reported with its last answer."""

    name: str
    reported: Usage


class CommandRunner:
    """A runner that starts a program for each ask; no process of it is left when the answer is there.

    A re-ask goes on in the conversation that the program itself has kept, where it can; else, and where the program
    fails at that, it begins with the whole assignment.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        self._sessions = Conversations[Session]()

    def __call__(self, ask: Ask, /) -> Answer:
        """Run the program for an ask and return what it answered.

        Raises:
            RunnerError: It cannot be started, took too long, failed, or printed what is no answer.
        """
        session = self._sessions.take(ask)
        if session is None:
            return self._run(ask, None)
        started = time.monotonic()
        try:
            return self._run(ask, session)
        except FailedError:
            lost = time.monotonic() - started
        answer = self._run(ask, None)
        return replace(answer, usage=replace(answer.usage, seconds=answer.usage.seconds + lost))

    def _run(self, ask: Ask, session: Session | None) -> Answer:
        """Run the program once: in a conversation that it has, or from the beginning."""
        command = self._command
        with tempfile.TemporaryDirectory(prefix="interlock-ask-") as folder:
            words = _words(ask, command, Path(folder), "" if session is None else session.name)
            argv = [*_argv(ask, command, words, Path(folder)), *(fill(part, words) for part in command.last)]
            stdin = fill(command.stdin if session is None else "{prompt}", words).encode("utf-8", "surrogatepass")
            try:
                ended = capture(
                    argv,
                    stdin=stdin,
                    cwd=Path(ask.root),
                    env=environment_of(command.environment) | ask.environment | ask.own_mark,
                    timeout_seconds=command.timeout_seconds,
                    at_start=ask.at_work,
                )
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                fix = f"Install {argv[0]} so that it is on PATH, or fix the command of {ask.role}."
                if isinstance(error, OSError) and error.errno == errno.E2BIG:
                    fix = "Hand long texts on by {prompt_file} and {system_file}, or on standard input."
                raise RunnerError(f"{argv[0]} cannot be started: {why}", fix) from error
            finally:
                ask.at_work(None)
            try:
                _refuse(argv[0], ended, command)
                answer = _answer(argv[0], ended, command, Path(words["answer_file"]))
            except RunnerError as error:
                error.spent = _spent(ended, command)
                raise
        if command.resume and (name := session_of(command.form, ended.output)):
            self._sessions.keep(ask, Session(name, answer.usage))
        usage = replace(answer.usage, seconds=ended.seconds)
        if session is not None:
            usage = replace(usage, **{name: _since(usage, session.reported, name) for name in command.totals})
        return replace(answer, usage=usage, model=answer.model or command.model)


def _since(total: Usage, before: Usage, name: Figure) -> float | None:
    """Return what was added to a sum since; a smaller number is not a sum and counts whole."""
    now, then = getattr(total, name), getattr(before, name)
    return now if now is None or then is None or now < then else now - then


def _argv(ask: Ask, command: Command, words: Mapping[str, str], folder: Path) -> list[str]:
    """Return the program and its arguments but the last ones."""
    argv = [fill(part, words) for part in (*command.argv, *(command.build if ask.step == "build" else command.judge))]
    lines = command_lines(ask.commands.values()) if ask.step == "build" else ()
    if command.permit is not None and lines:
        argv += command.permit(lines, folder)
    if words["session"]:
        argv += [part.replace("{session}", words["session"]) for part in command.resume]
    return argv


def _words(ask: Ask, command: Command, folder: Path, session: str) -> dict[str, str]:
    """Return what each placeholder stands for, and write the files that are named."""
    words = {
        "session": session,
        "prompt": ask.correction if session else ask.prompt,
        "system": ask.system,
        "prompt_file": str(folder / "prompt.md"),
        "system_file": str(folder / "system.md"),
        "answer_file": str(folder / "answer.txt"),
        "model": command.model,
        **{name: getattr(ask, name) for name in ("root", "role", "run_id", "task_id", "reports_dir")},
    }
    for name in ("prompt", "system"):
        Path(words[f"{name}_file"]).write_bytes(words[name].encode("utf-8", "surrogatepass"))
    return words


def fill(text: str, words: Mapping[str, str]) -> str:
    """Replace names in braces by their words."""
    return PLACEHOLDER.sub(lambda found: found[0][0] if found[1] is None else words[found[1]], text)


def _spent(ended: Ended, command: Command) -> Usage:
    """Return what a program without an answer reports that it spent; where it reports nothing, the cost is unknown."""
    try:
        used = read_output(command.form, ended.output).usage
    except UnreadableOutputError as error:
        used = error.usage
    return replace(used or Usage(calls=1, usd=None), seconds=ended.seconds)


def _refuse(program: str, ended: Ended, command: Command) -> None:
    if ended.stopped == "timeout":
        message = f"{program} gave no answer within {command.timeout_seconds:g} s and was ended"
        raise RunnerError(message + _tail(ended), "Give it more `timeout_seconds`, or see by hand what it waits for.")
    if ended.stopped == "flood":
        message = f"{program} printed more than {MAX_OUTPUT_BYTES} bytes and was ended"
        raise RunnerError(message, "Let it print its answer alone.")
    if ended.status != 0:
        how = f"was ended by signal {-ended.status}" if ended.status < 0 else f"ended with status {ended.status}"
        said = _error_of(command.form, ended) or _tail(ended)
        raise FailedError(f"{program} {how}{said}", "Run it by hand in this folder, and fix what it says.")


def _answer(program: str, ended: Ended, command: Command, file: Path) -> Answer:
    try:
        output = ended.output
        if any("{answer_file}" in part for part in (*command.argv, *command.build, *command.judge)):
            with file.open("rb") as answer:
                output = answer.read(MAX_OUTPUT_BYTES)
        return read_output(command.form, output)
    except UnreadableOutputError as error:
        fix = 'Fix what it says, or read the output as it is with `output = "text"`.'
        raise RunnerError(f"the output of {program} is no answer: {error}{_tail(ended)}", fix) from error
    except OSError as error:
        message = f"{program} wrote no answer into the file that it was given: {error.strerror}"
        raise RunnerError(
            message + _tail(ended), "Let it write to {answer_file}, or answer on standard output."
        ) from error


def _error_of(form: Form, ended: Ended) -> str:
    """Return the error that a failed program reports in its own form; standard error may hold other warnings."""
    try:
        read_output(form, ended.output)
    except UnreadableOutputError as error:
        return f". It said: {redact(error.said)}" if error.said else ""
    return ""


def _tail(ended: Ended) -> str:
    """Return the last lines of the program's error output, for a message."""
    # Half a key would not be known as one, so that keys go before anything is cut.
    text = redact((ended.complaints or ended.output[-TAIL_BYTES:]).decode("utf-8", "replace")).strip()
    return f". It said: {text[-_SHOWN_CHARS:]}" if text else ""
