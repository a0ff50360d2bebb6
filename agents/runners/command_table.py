"""The table of a `command` runner, read strictly: which program, its arguments, and what it is given."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from interlock.agents.runners.presets import PRESETS, WHOLE, Command
from interlock.agents.runners.program_output import FORMS
from interlock.agents.tables import Table
from interlock.core.process import COMMON_ENVIRONMENT
from interlock.core.text import closest

KEYS: Final = ("preset", "argv", "arguments", "model", "stdin", "output", "timeout_seconds", "environment")
"""What an `[agents.ROLE]` table of this runner may hold."""

PLACEHOLDERS: Final = (
    "prompt", "system", "prompt_file", "system_file", "answer_file", "model", "root", "role", "run_id", "task_id",
    "reports_dir",
)  # fmt: skip
"""What may be in braces in `argv`, `arguments` and `stdin`; `{{` and `}}` are braces."""

PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([a-z_]*)\}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?", re.ASCII)


def read_command(table: Table) -> Command:
    """Return the command of an `[agents.ROLE]` table.

    Raises:
        AgentConfigError: When a key cannot be used.
    """
    if table.has("preset") == table.has("argv"):
        known = ", ".join(f'"{name}"' for name in PRESETS)
        message = "a command has either a `preset` or an `argv`"
        raise table.error("preset", message, f'Write `preset = …` with {known}, or `argv = ["program", "argument"]`.')
    row = _own(table) if table.has("argv") else _preset(table)
    model = table.text("model", "")
    row = replace(
        row,
        argv=(*row.argv, *(row.naming if model else ()), *table.texts("arguments")),
        form=table.choice("output", FORMS, row.form),
        timeout_seconds=table.number("timeout_seconds", row.timeout_seconds, least=1),
        environment=(*COMMON_ENVIRONMENT, *row.environment, *_names(table)),
        model=model,
    )
    if table.has("argv") and not any(name in part for part in row.argv for name in ("{prompt}", "{prompt_file}")):
        row = replace(row, stdin=WHOLE)
    if table.has("stdin"):
        # What to write into a conversation then is not known.
        row = replace(row, stdin="" if table.raw("stdin") == "" else table.text("stdin"), resume=())
    for key, parts in (("argv", (*row.argv, *row.build, *row.judge)), ("stdin", (row.stdin,))):
        _check_placeholders(table, key, parts, model)
    return row


def _own(table: Table) -> Command:
    argv = table.texts("argv")
    if not argv:
        raise table.error("argv", "`argv` is empty", 'Write `argv = ["program", "argument"]`.')
    return Command(argv)


def _preset(table: Table) -> Command:
    name = table.text("preset")
    if name not in PRESETS:
        near = closest(name, PRESETS) or next(iter(PRESETS))
        raise table.error("preset", f"there is no preset `{name}`", f'Write `preset = "{near}"`, or give an `argv`.')
    return PRESETS[name]


def check_program(table: Table, command: Command, root: Path) -> None:
    """Refuse a command whose program is not there, before anybody is asked; a placeholder's is not known yet.

    Raises:
        AgentConfigError: No program of that name can be started.
    """
    program = command.argv[0]
    if PLACEHOLDER.search(program) is None and shutil.which(root / program if "/" in program else program) is None:
        key = "preset" if table.has("preset") else "argv"
        fix = f"Install {program} so that it is on PATH, or name another program."
        raise table.error(key, f"there is no program `{program}`", fix)


def _names(table: Table) -> tuple[str, ...]:
    names = table.texts("environment")
    for name in names:
        if not _NAME.fullmatch(name):
            fix = 'Write names of variables alone, such as "MY_KEY" or "MY_*"; their values stay in the environment.'
            raise table.error("environment", f"`{name.partition('=')[0]}` is no name of a variable", fix)
    return names


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
