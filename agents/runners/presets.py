"""The command-line agents that are known by name: how each is started, its input and output, and its permissions."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from interlock.agents.runners.program_output import Form

Permit: TypeAlias = Callable[[Sequence[str], Path], tuple[str, ...]]
"""Takes command lines, at least one, and a folder that lasts as long as the program runs; returns its arguments."""

_PRIORITY: Final = 900


@dataclass(frozen=True, slots=True)
class Command:
    """How an agent's program is run. In all texts but the names, a word in braces is one of `PLACEHOLDERS`.

    Args:
        argv: The program and its arguments.
        build: More of them for a build role, which may edit.
        judge: More of them for a QA or review role, which reads, and writes reports alone.
        naming: Arguments when a model is named.
        stdin: What it reads; empty for nothing.
        form: How its output is written.
        environment: Names of the variables that it is given; `*` at the end stands for any ending.
        permit: Returns the arguments that let a build role run the task's commands; None when none are needed.
        state: Variables that name other folders for the client's settings and the proof of who uses it, and for each
            where those are without it: files, and folders of files, with their places below that folder.
        timeout_seconds: How long it may take.
        model: What `{model}` is.
    """

    argv: tuple[str, ...]
    build: tuple[str, ...] = ()
    judge: tuple[str, ...] = ()
    naming: tuple[str, ...] = ()
    stdin: str = ""
    form: Form = "text"
    environment: tuple[str, ...] = ()
    permit: Permit | None = None
    state: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    timeout_seconds: int = 1800
    model: str = ""


def command_lines(commands: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return each command as a shell reads it, once; one of several lines is left out."""
    # A line break would end the rule of a client, or begin a second command.
    lines = dict.fromkeys(shlex.join(argv) for argv in commands)
    return tuple(line for line in lines if line.isprintable())


def allow_in_claude(lines: Sequence[str], _folder: Path) -> tuple[str, ...]:
    """Return rules of Claude Code; a line with `*`, which a rule takes for any text, is left out."""
    rules = [f"Bash({line})" for line in lines if "*" not in line]
    return ("--allowedTools", *rules) if rules else ()


def allow_in_gemini(lines: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a policy file of Gemini CLI, whose rules hold for the whole line; `--allowed-tools` takes beginnings."""
    path = folder / "commands.toml"
    path.write_text("\n".join(map(_rule, lines)), encoding="utf-8")
    return ("--policy", str(path))


def _rule(line: str) -> str:
    # Arguments are compared as JSON, whose top-level members are between characters of number 0.
    member = _literally(f'"command":{json.dumps(line, ensure_ascii=False)}')
    pattern = rf"\u0000{member}\u0000"
    return (
        f'[[rule]]\ntoolName = "run_shell_command"\nargsPattern = {json.dumps(pattern)}\ndecision = "allow"\n'
        f"priority = {_PRIORITY}\n"
    )


def _literally(text: str) -> str:
    """Return a regular expression of JavaScript for a text: all but letters and digits by number."""
    # JavaScript's `\u` counts UTF-16 units: a character beyond U+FFFF is two of them.
    units = text.encode("utf-16-be")
    numbers = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else f"\\u{unit:04x}" for unit in numbers)


WHOLE: Final = "{system}\n\n{prompt}"

PRESETS: Final[Mapping[str, Command]] = {
    "claude": Command(
        argv=("claude", "-p", "--output-format", "stream-json", "--verbose", "--append-system-prompt", "{system}"),
        build=("--permission-mode", "acceptEdits"),
        # A rule for `Edit` with a path covers every tool that writes files; one for `Write` with a path covers none.
        judge=("--allowedTools", "Read,Grep,Glob,Edit({reports_dir}/**)"),
        naming=("--model", "{model}"),
        stdin="{prompt}",
        form="claude",
        environment=("ANTHROPIC_*", "CLAUDE_*", "AWS_*", "DISABLE_*"),
        permit=allow_in_claude,
        state={"CLAUDE_CONFIG_DIR": {"~/.claude": "", "~/.claude.json": ""}},
    ),
    "codex": Command(
        argv=("codex", "exec", "--json", "--skip-git-repo-check"),
        # Its sandbox lets every command run that stays in the project and off the network.
        build=("--sandbox", "workspace-write"),
        judge=("--sandbox", "workspace-write"),
        naming=("--model", "{model}"),
        # `codex exec` without a prompt among its arguments reads it from standard input; gemini does the same.
        stdin=WHOLE,
        form="codex",
        environment=("OPENAI_*", "CODEX_*"),
        state={"CODEX_HOME": {"~/.codex": ""}},
    ),
    "gemini": Command(
        argv=("gemini", "--output-format", "stream-json"),
        build=("--approval-mode", "auto_edit"),
        judge=("--approval-mode", "auto_edit"),
        naming=("--model", "{model}"),
        stdin=WHOLE,
        form="gemini",
        environment=("GEMINI_*", "GOOGLE_*"),
        permit=allow_in_gemini,
        state={"GEMINI_CLI_HOME": {"~/.gemini": ".gemini"}},
    ),
}
