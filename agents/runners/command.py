"""The `command` runner: an agent that is a program, such as Claude Code, Codex or Gemini CLI."""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, cast

from interlock.agents.answer import Answer
from interlock.agents.ask import Ask, RunnerError
from interlock.agents.runners.child import MAX_OUTPUT_BYTES, TAIL_BYTES, Ended, run_child
from interlock.agents.runners.presets import COMMON_ENVIRONMENT, PRESETS, WHOLE
from interlock.agents.runners.printed import FORMS, Form, UnreadableOutput, read_output
from interlock.agents.secrets import redact
from interlock.agents.tables import Table, type_name
from interlock.agents.usage import Usage
from interlock.envelope.labels import closest

KEYS: Final = ("preset", "argv", "arguments", "model", "stdin", "output", "timeout_seconds", "environment")
"""What an `[agents.ROLE]` table of this runner may hold."""

TIMEOUT_SECONDS: Final = 1800
PLACEHOLDERS: Final = (
    "prompt", "system", "prompt_file", "system_file", "answer_file", "model", "root", "role", "run_id", "task_id",
    "reports_dir",
)  # fmt: skip
"""What may stand in braces in `argv`, `arguments` and `stdin`; `{{` and `}}` are braces."""

_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([a-z_]*)\}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?", re.ASCII)
_SHOWN_CHARS: Final = 1000


@dataclass(frozen=True, slots=True)
class Command:
    """How an agent's program is run.

    Args:
        build: Its arguments for a build role, with placeholders.
        judge: Its arguments for a QA or review role.
        stdin: What it reads, with placeholders; empty for nothing.
        form: How its output is written.
        timeout_seconds: How long it may take.
        environment: Names of the variables that it is given; `*` at the end stands for any ending.
        model: What `{model}` is.
    """

    build: tuple[str, ...]
    judge: tuple[str, ...]
    stdin: str
    form: Form
    timeout_seconds: float
    environment: tuple[str, ...]
    model: str = ""


class CommandRunner:
    """A runner around a program. Each ask starts it anew; nothing of it is left when the answer is there.

    Args:
        command: How it is run.
    """

    def __init__(self, command: Command) -> None:
        self._command = command

    def __call__(self, ask: Ask, /) -> Answer:
        """Run the program for an ask and return what it answered.

        Raises:
            RunnerError: It cannot be started, took too long, failed, or printed what is no answer.
        """
        command = self._command
        with tempfile.TemporaryDirectory(prefix="interlock-ask-") as folder:
            words = _words(ask, command, Path(folder))
            argv = [fill(part, words) for part in (command.build if ask.step == "build" else command.judge)]
            stdin = fill(command.stdin, words).encode("utf-8", "surrogatepass")
            try:
                ended = run_child(
                    argv,
                    stdin=stdin,
                    cwd=Path(ask.root),
                    env=environment_of(command.environment) | ask.environment,
                    timeout_seconds=command.timeout_seconds,
                )
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                fix = f"Install {argv[0]} so that it is on PATH, or mend the command of {ask.role}."
                if isinstance(error, OSError) and error.errno == errno.E2BIG:
                    fix = "Hand long texts on by {prompt_file} and {system_file}, or on standard input."
                raise RunnerError(f"{argv[0]} cannot be started: {why}", fix) from error
            try:
                _refuse(argv[0], ended, command)
                answer = _answer(argv[0], ended, command, Path(words["answer_file"]))
            except RunnerError as error:
                error.spent = _spent(ended, command)
                raise
        return replace(answer, usage=replace(answer.usage, seconds=ended.seconds), model=answer.model or command.model)


def _words(ask: Ask, command: Command, folder: Path) -> dict[str, str]:
    """Return what each placeholder stands for, and write the files that are named."""
    words = {
        "prompt": ask.prompt,
        "system": ask.system,
        "prompt_file": str(folder / "prompt.md"),
        "system_file": str(folder / "system.md"),
        "answer_file": str(folder / "answer.txt"),
        "model": command.model,
        "root": ask.root,
        "role": ask.role,
        "run_id": ask.run_id,
        "task_id": ask.task_id,
        "reports_dir": ask.reports_dir,
    }
    for name in ("prompt", "system"):
        Path(words[f"{name}_file"]).write_bytes(words[name].encode("utf-8", "surrogatepass"))
    return words


def fill(text: str, words: Mapping[str, str]) -> str:
    """Put words in place of their names in braces."""
    return _PLACEHOLDER.sub(lambda found: found[0][0] if found[1] is None else words[found[1]], text)


def environment_of(names: tuple[str, ...]) -> dict[str, str]:
    """Return the variables of this process that are named; `*` at the end of a name stands for any ending."""
    return {name: value for name, value in os.environ.items() if any(fnmatchcase(name, each) for each in names)}


def _spent(ended: Ended, command: Command) -> Usage:
    """Return what a program that gave no answer says that it spent; where it is silent, its money is not known."""
    try:
        used = read_output(command.form, ended.output).usage
    except UnreadableOutput as error:
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
        said = _told(command.form, ended) or _tail(ended)
        raise RunnerError(f"{program} {how}{said}", "Run it by hand in this folder, and mend what it says.")


def _answer(program: str, ended: Ended, command: Command, file: Path) -> Answer:
    try:
        output = ended.output
        if any("{answer_file}" in part for part in (*command.build, *command.judge)):
            with file.open("rb") as answer:
                output = answer.read(MAX_OUTPUT_BYTES)
        return read_output(command.form, output)
    except UnreadableOutput as error:
        fix = 'Mend what it says, or read the output as it is with `output = "text"`.'
        raise RunnerError(f"the output of {program} is no answer: {error}{_tail(ended)}", fix) from error
    except OSError as error:
        message = f"{program} wrote no answer into the file that it was given: {error.strerror}"
        raise RunnerError(
            message + _tail(ended), "Let it write to {answer_file}, or answer on standard output."
        ) from error


def _told(form: Form, ended: Ended) -> str:
    """Return what a program that failed says of it in its own form; on standard error it may warn of anything."""
    try:
        read_output(form, ended.output)
    except UnreadableOutput as error:
        return f". It said: {redact(error.told)}" if error.told else ""
    return ""


def _tail(ended: Ended) -> str:
    """Return the last lines that the program complained in, for a message."""
    # Half a key would not be known as one, so that keys go before anything is cut.
    text = redact((ended.complaints or ended.output[-TAIL_BYTES:]).decode("utf-8", "replace")).strip()
    return f". It said: {text[-_SHOWN_CHARS:]}" if text else ""


def read_command(table: Table) -> Command:
    """Return the command of an `[agents.ROLE]` table.

    Raises:
        AgentConfigError: When a key cannot be used.
    """
    model = table.text("model", "")
    extra = _strings(table, "arguments")
    if table.has("preset") == table.has("argv"):
        known = ", ".join(f'"{name}"' for name in PRESETS)
        message = "a command has either a `preset` or an `argv`"
        raise table.error("preset", message, f'Write `preset = …` with {known}, or `argv = ["program", "argument"]`.')
    if table.has("argv"):
        argv = _strings(table, "argv")
        if not argv:
            raise table.error("argv", "`argv` is empty", 'Write `argv = ["program", "argument"]`.')
        build = judge = (*argv, *extra)
        fed = any(name in part for part in build for name in ("{prompt}", "{prompt_file}"))
        stdin, form, given = "" if fed else WHOLE, "text", ()
    else:
        name = table.text("preset")
        if name not in PRESETS:
            near = closest(name, PRESETS) or next(iter(PRESETS))
            raise table.error(
                "preset", f"there is no preset `{name}`", f'Write `preset = "{near}"`, or give an `argv`.'
            )
        row = PRESETS[name]
        shared = (*row.argv, *(row.model if model else ()), *extra)
        build, judge = (*shared, *row.build), (*shared, *row.judge)
        stdin, form, given = row.stdin, row.form, row.environment
    if table.has("stdin"):
        stdin = "" if table.raw("stdin") == "" else table.text("stdin")
    for key, parts in (("argv", (*build, *judge)), ("stdin", (stdin,))):
        _check_placeholders(table, key, parts, model)
    return Command(
        build=build,
        judge=judge,
        stdin=stdin,
        form=_form(table, form),
        timeout_seconds=table.number("timeout_seconds", TIMEOUT_SECONDS, least=1),
        environment=(*COMMON_ENVIRONMENT, *given, *_names(table)),
        model=model,
    )


def check_program(table: Table, command: Command, root: Path) -> None:
    """Refuse a command whose program is not there, before anybody is asked.

    Args:
        table: The table that asks for it.
        command: The command; a program that is named by a placeholder is known with the ask alone.
        root: The folder that it runs in.

    Raises:
        AgentConfigError: No program of that name can be started.
    """
    program = command.build[0]
    if _PLACEHOLDER.search(program) is None and shutil.which(root / program if "/" in program else program) is None:
        key = "preset" if table.has("preset") else "argv"
        fix = f"Install {program} so that it is on PATH, or name another program."
        raise table.error(key, f"there is no program `{program}`", fix)


def _strings(table: Table, key: str) -> tuple[str, ...]:
    value: object = table.raw(key) if table.has(key) else ()
    rows = cast("list[object]", value) if isinstance(value, list) else [] if value == () else [None]
    texts = [each for each in rows if isinstance(each, str)]
    if len(texts) < len(rows):
        message = f"`{key}` is {type_name(table.raw(key))}, not a list of strings"
        raise table.error(key, message, f'Write `{key} = ["…", "…"]`.')
    return tuple(texts)


def _names(table: Table) -> tuple[str, ...]:
    names = _strings(table, "environment")
    for name in names:
        if not _NAME.fullmatch(name):
            fix = 'Write names of variables alone, such as "MY_KEY" or "MY_*"; their values stay in the environment.'
            raise table.error("environment", f"`{name.partition('=')[0]}` is no name of a variable", fix)
    return names


def _form(table: Table, default: Form) -> Form:
    name = table.text("output", default)
    if name not in FORMS:
        choices = ", ".join(f'"{form}"' for form in FORMS)
        raise table.error("output", f"there is no output form `{name}`", f"Write one of {choices}.")
    return name


def _check_placeholders(table: Table, key: str, parts: tuple[str, ...], model: str) -> None:
    for part in parts:
        for found in _PLACEHOLDER.finditer(part):
            name = found[1]
            if name is None or (name in PLACEHOLDERS and (name != "model" or model)):
                continue
            near = closest(name, PLACEHOLDERS)
            fix = f"Write `{{{near}}}`." if near else f"Known are {', '.join(PLACEHOLDERS)}; a brace is `{{{{`."
            if name == "model":
                raise table.error("model", f"`{key}` names a model, and none is given", 'Add `model = "…"`.')
            raise table.error(key, f"there is nothing for `{{{name}}}`", fix)
