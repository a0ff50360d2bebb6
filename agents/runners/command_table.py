"""The table of a `command` runner, read strictly: which program, its arguments, and what it is given."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from interlock.agents.runners.permissions import Permit
from interlock.agents.runners.presets import PRESETS, WHOLE, Figure
from interlock.agents.runners.printed import FORMS, Form
from interlock.agents.tables import Table, type_name
from interlock.core.process import COMMON_ENVIRONMENT
from interlock.core.text import closest

KEYS: Final = ("preset", "argv", "arguments", "model", "stdin", "output", "timeout_seconds", "environment")
"""What an `[agents.ROLE]` table of this runner may hold."""

TIMEOUT_SECONDS: Final = 1800
PLACEHOLDERS: Final = (
    "prompt", "system", "prompt_file", "system_file", "answer_file", "model", "root", "role", "run_id", "task_id",
    "reports_dir",
)  # fmt: skip
"""What may stand in braces in `argv`, `arguments` and `stdin`; `{{` and `}}` are braces."""

PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([a-z_]*)\}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?", re.ASCII)


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
        resume: Arguments with which it goes on with the conversation `{session}`; empty when it cannot.
        last: Arguments that stand behind all others.
        totals: What it tells as the sum over a whole conversation.
        permit: Returns the arguments that let a build role run the task's commands; None when none are needed.
    """

    build: tuple[str, ...]
    judge: tuple[str, ...]
    stdin: str
    form: Form
    timeout_seconds: float
    environment: tuple[str, ...]
    model: str = ""
    resume: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    totals: tuple[Figure, ...] = ()
    permit: Permit | None = None


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
        resume, last, totals, permit = (), (), (), None
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
        resume, last, totals, permit = row.resume, row.last, row.totals, row.permit
    if table.has("stdin"):
        resume = ()  # what a conversation is to be told then is not known
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
        resume=resume,
        last=last,
        totals=totals,
        permit=permit,
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
    if PLACEHOLDER.search(program) is None and shutil.which(root / program if "/" in program else program) is None:
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
        for found in PLACEHOLDER.finditer(part):
            name = found[1]
            if name is None or (name in PLACEHOLDERS and (name != "model" or model)):
                continue
            near = closest(name, PLACEHOLDERS)
            fix = f"Write `{{{near}}}`." if near else f"Known are {', '.join(PLACEHOLDERS)}; a brace is `{{{{`."
            if name == "model":
                raise table.error("model", f"`{key}` names a model, and none is given", 'Add `model = "…"`.')
            raise table.error(key, f"there is nothing for `{{{name}}}`", fix)
