"""The runners that ship, and the one function that makes a runner from a configuration table."""

from collections.abc import Mapping
from pathlib import Path

from interlock.agents.ask import REMOTE, AgentConfigError, Remote, Runner, remote_request
from interlock.agents.role_file import read_role
from interlock.agents.runners.command import CommandRunner
from interlock.agents.runners.command_table import KEYS as COMMAND_KEYS
from interlock.agents.runners.command_table import check_program, read_command
from interlock.agents.runners.model_settings import CHAT_KEYS, LOCAL, LOCAL_KEYS, read_model
from interlock.agents.runners.models import check_installed
from interlock.agents.runners.python import PREFIX, PythonRunner, load_function
from interlock.agents.runners.replay import ReplayRunner
from interlock.agents.tables import Table, read_limits
from interlock.agents.usage import FREE, Limits, Price
from interlock.core.text import closest

__all__ = ["CommandRunner", "PythonRunner", "ReplayRunner", "make_runner", "remote_request"]

COMMON_KEYS = ("runner", "prompt", "budget")
"""What every `[agents.ROLE]` table may hold."""

RUNNER_KEYS: dict[str, tuple[str, ...]] = {
    "chat": CHAT_KEYS,
    "command": COMMAND_KEYS,
    "replay": ("script",),
    LOCAL: LOCAL_KEYS,
    "remote": (),
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
    kind = _kind(table)
    table.close((*COMMON_KEYS, *RUNNER_KEYS[kind]))
    own = read_limits(table.table("budget"))
    if table.has("prompt"):
        read_role(role, folder / table.text("prompt"))
    if kind == "replay":
        return ReplayRunner.load(folder / table.text("script"))
    if kind == "command":
        command = read_command(table)
        check_program(table, command, Path(root))
        return CommandRunner(command)
    if kind in ("chat", LOCAL):
        model = read_model(table, base=folder)
        price = FREE if kind == LOCAL else (prices or {}).get(model.model)
        if price is None and own.within(limits or Limits()).usd is not None:
            where = table.key("budget.usd") if own.usd is not None else "budget.usd"
            fix = f'Write `[prices."{model.model}"]` with `input = …` and `output = …`, USD per million tokens.'
            raise AgentConfigError(source, where, f"money is limited, and {model.model} has no price", fix)
        check_installed(model, f"agents.{role}")
        from interlock.agents.runners.chat import ChatRunner  # noqa: PLC0415 - imports LangChain

        return ChatRunner(model, price, where=f"agents.{role}")
    if kind == "remote":
        return REMOTE
    return load_function(table.text("runner"), base=folder, path=source, key=table.key("runner"))


def _kind(table: Table) -> str:
    choices = ", ".join(f'`"{name}"`' for name in RUNNER_KEYS if name != PREFIX) + ' or `"python:module:function"`'
    if not table.has("runner"):
        raise table.error("runner", "the role has no runner", f"Add `runner = …` with {choices}.")
    name = table.text("runner")
    kind = PREFIX if name.startswith(PREFIX) else name
    if kind not in RUNNER_KEYS:
        near = closest(name, [known for known in RUNNER_KEYS if known != PREFIX])
        fix = f'Write `runner = "{near}"`.' if near else f"Write {choices}."
        raise table.error("runner", f"there is no runner `{name}`", fix)
    return kind
