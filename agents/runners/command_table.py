"""The table of a `command` runner, read strictly: which program, its arguments, and what it is given."""

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Final

from annotated_types import Ge, MinLen

from interlock.agents.runners.presets import PRESETS, WHOLE, Command
from interlock.agents.runners.program_output import Form
from interlock.agents.tables import Table, Text
from interlock.core.process import COMMON_ENVIRONMENT
from interlock.core.text import closest

PLACEHOLDERS: Final = ("prompt", "system", "prompt_file", "system_file", "model", "root", "role", "reports_dir")
"""What may be in braces in `argv` and `arguments`; `{{` and `}}` are braces."""

PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([a-z_]*)\}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?", re.ASCII)


@dataclass(frozen=True, slots=True)
class CommandTable:
    """What a table of this runner holds beside the keys of all runners; None where the preset has its own."""

    preset: Text = ""
    argv: Annotated[tuple[str, ...], MinLen(1)] = ()
    arguments: tuple[str, ...] = ()
    model: Text = ""
    output: Form | None = None
    timeout_seconds: Annotated[int, Ge(1)] | None = None
    environment: tuple[str, ...] = ()


KEYS: Final = tuple(each.name for each in fields(CommandTable))
"""What an `[agents.ROLE]` table of this runner may hold."""


def read_command(table: Table, root: Path) -> Command:
    """Return the command of an `[agents.ROLE]` table, whose program is there.

    Raises:
        AgentConfigError: When a key cannot be used.
    """
    given = table.read(CommandTable, KEYS)
    if bool(given.preset) == bool(given.argv) or (given.preset and given.preset not in PRESETS):
        known = ", ".join(f'"{name}"' for name in PRESETS)
        near = "" if given.argv else closest(given.preset, PRESETS)
        fix = f'Write `preset = "{near}"`.' if near else f'Write `preset = …` with {known}, or `argv = ["program"]`.'
        raise table.error("preset", "a command has either a `preset` that is known or an `argv`", fix)
    row = PRESETS[given.preset] if given.preset else Command(given.argv)
    row = replace(
        row,
        argv=(*row.argv, *(row.naming if given.model else ()), *given.arguments),
        form=given.output or row.form,
        timeout_seconds=given.timeout_seconds or row.timeout_seconds,
        environment=(*COMMON_ENVIRONMENT, *row.environment, *given.environment),
        model=given.model,
    )
    check_names(table, given.environment)
    # A program of the user's that is handed no prompt reads it with the role's text from standard input.
    if given.argv and not any(name in part for part in row.argv for name in ("{prompt}", "{prompt_file}")):
        row = replace(row, stdin=WHOLE)
    _check_placeholders(table, row)
    # A program that is named by a placeholder is not known before the ask.
    program = row.argv[0]
    if PLACEHOLDER.search(program) is None and shutil.which(root / program if "/" in program else program) is None:
        key = "preset" if given.preset else "argv"
        fix = f"Install {program} so that it is on PATH, or name another program."
        raise table.error(key, f"there is no program `{program}`", fix)
    return row


def check_names(table: Table, environment: Iterable[str]) -> None:
    """Refuse what is no name of a variable.

    Raises:
        AgentConfigError: One is none.
    """
    for name in environment:
        if not _NAME.fullmatch(name):
            fix = 'Write names of variables alone, such as "MY_KEY" or "MY_*"; their values stay in the environment.'
            raise table.error("environment", f"`{name.partition('=')[0]}` is no name of a variable", fix)


def _check_placeholders(table: Table, row: Command) -> None:
    known = PLACEHOLDERS if row.model else tuple(name for name in PLACEHOLDERS if name != "model")
    for part in row.argv:
        for found in PLACEHOLDER.finditer(part):
            name = found[1]
            if name is not None and name not in known:
                fix = f"Write one of {', '.join(known)} (`model` where the table names one); a brace is `{{{{`."
                raise table.error("argv", f"there is nothing for `{{{name}}}`", fix)
