"""Permissions for programs that ask before they run a command: exactly the commands of a task, and no others."""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

Permit: TypeAlias = Callable[[Sequence[str], Path], tuple[str, ...]]
"""Takes command lines, at least one, and a folder that lasts as long as the program runs; returns its arguments."""

_PRIORITY: Final = 900


def command_lines(commands: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return each command as a shell reads it, once; one of several lines is left out."""
    lines = dict.fromkeys(shlex.join(argv) for argv in commands)
    return tuple(line for line in lines if line.isprintable())


def allow_in_claude(lines: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return rules of Claude Code; a line with `*`, which a rule takes for any text, is left out."""
    del folder
    rules = [f"Bash({line})" for line in lines if "*" not in line]
    return ("--allowedTools", *rules) if rules else ()


def allow_in_gemini(lines: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a policy file of Gemini CLI, whose rules hold for the whole line; `--allowed-tools` takes beginnings."""
    path = folder / "commands.toml"
    path.write_text("\n".join(map(_rule, lines)), encoding="utf-8")
    return ("--policy", str(path))


def _rule(line: str) -> str:
    # Arguments are compared as JSON, whose members at the top stand between characters of number 0.
    member = _literally(f'"command":{json.dumps(line, ensure_ascii=False)}')
    pattern = rf"\u0000{member}\u0000"
    return (
        f'[[rule]]\ntoolName = "run_shell_command"\nargsPattern = {json.dumps(pattern)}\ndecision = "allow"\n'
        f"priority = {_PRIORITY}\n"
    )


def _literally(text: str) -> str:
    """Return a regular expression of JavaScript for a text: all but letters and digits by number."""
    units = text.encode("utf-16-be")
    numbers = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else f"\\u{unit:04x}" for unit in numbers)
