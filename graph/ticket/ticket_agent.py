"""Who works a ticket: the model of `[tickets.agent]` in the configuration, or one that the command names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.agents.ask import AgentConfigError, Runner
from interlock.agents.model_spec import OPTION, agent_table
from interlock.agents.runners.model_settings import CHAT_KEYS, LOCAL, LOCAL_KEYS, ModelSettings, read_model
from interlock.agents.tables import Table, read_limits
from interlock.agents.usage import FREE, Limits, Price
from interlock.gates.config import FILE, load_config

WHERE: Final = "tickets.agent"

_KEYS: Final = {"chat": CHAT_KEYS, LOCAL: LOCAL_KEYS}


@dataclass(frozen=True, slots=True)
class TicketAgent:
    """A model and what it may spend. The price is None when it is not known."""

    settings: ModelSettings
    price: Price | None
    limits: Limits

    def runner(self) -> Runner:
        """Make the runner; this imports LangChain, and starts a local model.

        Raises:
            AgentConfigError: The model cannot be made as the settings say.
            RunnerError: A local model cannot be started.
        """
        from interlock.agents.runners.models import chat_model, check_installed  # noqa: PLC0415 - as said above

        check_installed(self.settings, WHERE)
        from interlock.graph.ticket.stage_runner import StageRunner  # noqa: PLC0415

        return StageRunner(chat_model(self.settings, where=WHERE), self.settings, self.price)


def ticket_agent(root: Path, spec: str | None = None) -> TicketAgent:
    """Return who works the tickets of a project.

    A model that `--model` names takes the place of the configured one, whose budget counts all the same.

    Raises:
        ConfigError: `interlock.toml` is wrong.
        AgentConfigError: Nobody is named, or a value cannot be used.
    """
    config = load_config(root)
    given = dict(config.tickets.agent or {})
    source = config.path or FILE
    if spec is not None:
        budget = {"budget": given["budget"]} if "budget" in given else {}
        given, source = {**agent_table(spec), **budget}, OPTION
    if not given:
        fix = f'Add `{OPTION} PROVIDER:MODEL`, or write [tickets.agent] with `model = "PROVIDER:MODEL"`.'
        raise AgentConfigError(source, WHERE, "nobody is named who works the ticket", fix)
    table = Table(given, source, WHERE)
    kind = table.text("runner", "chat")
    if kind not in _KEYS:
        fix = (
            "Name a model. A command-line agent works tickets over MCP: run `interlock init` for it once, and say to "
            "it: Work ticket ID with Interlock."
        )
        raise table.error("runner", f"a ticket is not worked with the runner `{kind}`", fix)
    table.close(("runner", "budget", *_KEYS[kind]))
    limits = read_limits(table.table("budget"))
    settings = read_model(table, base=root)
    row = config.prices.get(settings.model)
    price = FREE if kind == LOCAL else None if row is None else Price(row.input, row.output, row.cached_input)
    if price is None and limits.usd is not None:
        fix = f'Write `[prices."{settings.model}"]` with `input = …` and `output = …`, USD per million tokens.'
        raise table.error("budget.usd", f"money is limited, and {settings.model} has no price", fix)
    return TicketAgent(settings, price, limits)
