"""Agents of the Agent Client Protocol: those that are known by name, and how a table names one."""

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Final

from annotated_types import Ge

from interlock.agents.runners.command import fill
from interlock.agents.runners.command_table import check_names
from interlock.agents.runners.presets import PRESETS, Command
from interlock.agents.tables import Table, Text
from interlock.core.process import COMMON_ENVIRONMENT
from interlock.core.text import closest

PREFIX: Final = "acp:"
"""How the name of such a runner begins; a preset or a command line follows."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of the protocol.

    Args:
        command: How its program is run.
        provider: The provider of its models, whose prices count; empty where it may have any.
        mode: The mode in which it asks before it edits; empty where that is not known.
        settings: Variables that it is given, so that it asks.
        sign_in: The method by which it is signed in; empty for none.
        package: What it is called in npm; empty where it is not known by name.
    """

    command: Command
    provider: str = ""
    mode: str = ""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    sign_in: str = ""
    package: str = ""


def _of(preset: str, *argv: str) -> Command:
    """Return the program of the agent whose command-line client is known: with its variables and its state."""
    return replace(PRESETS[preset], argv=argv, build=(), judge=(), naming=(), permit=None)


AGENTS: Final[Mapping[str, Agent]] = {
    "claude": Agent(
        _of("claude", "claude-agent-acp"), "anthropic", "default", package="@agentclientprotocol/claude-agent-acp"
    ),
    # Files are read, and commands run that write nothing, without a question.
    "codex": Agent(_of("codex", "codex-acp"), "openai", "read-only", package="@agentclientprotocol/codex-acp"),
    "copilot": Agent(
        Command(
            ("copilot", "--acp"),
            environment=("COPILOT_*", "GH_TOKEN", "GH_HOST", "GITHUB_TOKEN"),
            state={"COPILOT_HOME": {"~/.copilot": ""}},
        ),
        mode="https://agentclientprotocol.com/protocol/session-modes#agent",
        settings={"COPILOT_ALLOW_ALL": ""},
        package="@github/copilot",
    ),
    "gemini": Agent(
        replace(_of("gemini", "gemini", "--acp"), naming=("--model", "{model}")),
        "google_genai",
        "default",
        package="@google/gemini-cli",
    ),
    "opencode": Agent(
        Command(
            ("opencode", "acp"),
            environment=("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*"),
            state={
                "XDG_CONFIG_HOME": {"~/.config/opencode": "opencode"},
                "XDG_DATA_HOME": {"~/.local/share/opencode/auth.json": "opencode"},
            },
        ),
        # Without it nothing is asked.
        settings={"OPENCODE_PERMISSION": '{"edit": "ask", "bash": "ask", "webfetch": "ask"}'},
        package="opencode-ai",
    ),
}
"""The agents that are known by name, as they were tried."""


@dataclass(frozen=True, slots=True)
class AcpTable:
    """What a table of this runner holds beside the keys of all runners."""

    arguments: tuple[str, ...] = ()
    model: Text = ""
    mode: Text = ""
    sign_in: Text = ""
    timeout_seconds: Annotated[int, Ge(1)] = 1800
    environment: tuple[str, ...] = ()


KEYS: Final = tuple(each.name for each in fields(AcpTable))
"""What an `[agents.ROLE]` table of this runner may hold."""


def read_agent(table: Table, name: str, root: Path) -> Agent:
    """Return the agent of an `[agents.ROLE]` table, whose program is there.

    Args:
        table: The table.
        name: What follows `acp:`.
        root: The folder that a program is looked for in when its name has a slash.

    Raises:
        AgentConfigError: A key cannot be used, or there is no such program.
    """
    given, agent = table.read(AcpTable, KEYS), AGENTS.get(name)
    try:
        argv = [*agent.command.argv] if agent else shlex.split(name)
    except ValueError as error:
        raise table.error("runner", f"`{name}` is no command line: {error}", "Close its quotes.") from error
    program = argv[0] if argv else ""
    if shutil.which(root / program if "/" in program else program) is None:
        near = "" if agent else closest(name, AGENTS)
        known = " or ".join(f'"{PREFIX}{each}"' for each in AGENTS)
        fix = f"Install {program or 'an agent'} so that it is on PATH, or write {known}."
        if agent:
            fix = f"Install {program} so that it is on PATH: `npm install --global {agent.package}`."
        raise table.error(
            "runner", f"there is no program `{program}`", f'Write `runner = "{PREFIX}{near}"`.' if near else fix
        )
    check_names(table, given.environment)
    agent = agent or Agent(Command(tuple(argv)))
    command = agent.command
    naming = tuple(fill(word, {"model": given.model}) for word in command.naming) if given.model else ()
    command = replace(
        command,
        argv=(*command.argv, *naming, *given.arguments),
        environment=(*COMMON_ENVIRONMENT, *command.environment, *given.environment),
        timeout_seconds=given.timeout_seconds,
        model=given.model,
    )
    return replace(agent, command=command, mode=given.mode or agent.mode, sign_in=given.sign_in)
