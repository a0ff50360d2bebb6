"""The runners that ship, and the one function that makes a runner from a configuration table."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from interlock.agents.ask import REMOTE, AgentConfigError, Remote, Runner, remote_request
from interlock.agents.role_file import read_role
from interlock.agents.runners.acp import AcpRunner
from interlock.agents.runners.acp_agents import KEYS as ACP_KEYS
from interlock.agents.runners.acp_agents import PREFIX as ACP
from interlock.agents.runners.acp_agents import read_agent
from interlock.agents.runners.command import CommandRunner
from interlock.agents.runners.command_table import KEYS as COMMAND_KEYS
from interlock.agents.runners.command_table import read_command
from interlock.agents.runners.models import KEYS as CHAT_KEYS
from interlock.agents.runners.models import chat_model, read_model
from interlock.agents.runners.python import PREFIX, PythonRunner, load_function
from interlock.agents.runners.replay import ReplayRunner, ReplayTable
from interlock.agents.tables import Table, Text
from interlock.agents.usage import Limits, Price
from interlock.core.text import closest

__all__ = [
    "ACP",
    "ACP_KEYS",
    "AcpRunner",
    "CommandRunner",
    "PythonRunner",
    "ReplayRunner",
    "make_runner",
    "remote_request",
]


@dataclass(frozen=True, slots=True)
class CommonTable:
    """What every `[agents.ROLE]` table may hold."""

    runner: Text = ""
    prompt: Text = ""
    budget: Mapping[str, Any] = field(default_factory=dict[str, Any])


COMMON_KEYS = tuple(each.name for each in fields(CommonTable))

RUNNER_KEYS: dict[str, tuple[str, ...]] = {
    "chat": CHAT_KEYS,
    "command": COMMAND_KEYS,
    "replay": ("script",),
    "remote": (),
    ACP: ACP_KEYS,
    PREFIX: (),
}
"""What each runner's table may hold besides."""


def make_runner(
    role: str,
    settings: Mapping[str, object],
    *,
    root: str | Path,
    base: str | Path | None = None,
    source: str = "interlock.toml",
    prices: Mapping[str, Price] | None = None,
    limits: Limits | None = None,
) -> Runner | Remote:
    """Return the runner that an `[agents.ROLE]` table asks for, or `REMOTE`.

    Args:
        role: The role that the table is for.
        settings: The table.
        root: The folder that the task works in.
        base: The folder of the file that holds the table, when it is not the root; scripts and modules are found from
            there.
        source: That file, for messages.
        prices: What the tokens of a model cost, by `provider:name`.
        limits: What the task may spend.

    Raises:
        AgentConfigError: When the table, the script, the function or the model that it names cannot be used, or money
            is limited and the price of the model is not known.
    """
    table = Table(settings, source, f"agents.{role}")
    folder = Path(root if base is None else base)
    common = table.read(CommonTable, COMMON_KEYS)
    kind = _kind(table, common.runner)
    table.close((*COMMON_KEYS, *RUNNER_KEYS[kind]))
    own = table.table("budget").read(Limits)
    if common.prompt:
        # Read for its refusals alone: a mistake in it stops the run before anybody is asked.
        read_role(role, folder / common.prompt)
    if kind == "replay":
        return ReplayRunner(folder / table.read(ReplayTable, RUNNER_KEYS[kind]).script)
    if kind == "command":
        return CommandRunner(read_command(table, Path(root)), prices)
    if kind == ACP:
        return AcpRunner(read_agent(table, common.runner.removeprefix(ACP), Path(root)), prices)
    if kind == "chat":
        asked = read_model(table)
        price = (prices or {}).get(asked.model)
        # An unknown price uses up the limit with the first answer, which would be paid for in vain.
        if price is None and own.within(limits or Limits()).usd is not None:
            where = table.key("budget.usd") if own.usd is not None else "budget.usd"
            fix = f'Write `[prices."{asked.model}"]` with `input = …` and `output = …`, USD per million tokens.'
            raise AgentConfigError(source, where, f"money is limited, and {asked.model} has no price", fix)
        model = chat_model(asked, table)
        from interlock.agents.runners.chat import ChatRunner  # noqa: PLC0415 - imports LangChain

        return ChatRunner(model, asked, price)
    if kind == "remote":
        return REMOTE
    return load_function(common.runner, base=folder, path=source, key=table.key("runner"))


def _kind(table: Table, name: str) -> str:
    plain = [known for known in RUNNER_KEYS if known not in (ACP, PREFIX)]
    choices = ", ".join(f'`"{known}"`' for known in plain) + ', `"acp:agent"` or `"python:module:function"`'
    if not name:
        raise table.error("runner", "the role has no runner", f"Add `runner = …` with {choices}.")
    kind = next((prefix for prefix in (ACP, PREFIX) if name.startswith(prefix)), name)
    if kind not in RUNNER_KEYS:
        near = closest(name, plain)
        fix = f'Write `runner = "{near}"`.' if near else f"Write {choices}."
        raise table.error("runner", f"there is no runner `{name}`", fix)
    return kind
