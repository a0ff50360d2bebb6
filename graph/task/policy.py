"""The policy of one run: roster, gates, budgets and agent settings, read when the run starts and frozen."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from interlock.agents.role_file import prompt_path, role_text
from interlock.agents.tables import Table
from interlock.agents.usage import Limits, Price, Usage, total
from interlock.core.json import fingerprint
from interlock.envelope.protocol import Protocol, Role
from interlock.gates.config import Config
from interlock.gates.registry import build_protocol
from interlock.gates.sealed import Seal, seals, top_of
from interlock.graph.task.roster import roster_of
from interlock.graph.task.task import Task


@dataclass(frozen=True, slots=True)
class AgentSetting:
    """How one role is run.

    Args:
        settings: The table of its runner.
        base: The folder that the paths in it are relative to.
        source: The file that holds it, for messages.
        system: The role's prompt, as it was at the start.
        limits: What the role may spend in the whole run.
    """

    settings: Mapping[str, Any]
    base: str
    source: str = ""
    system: str = ""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a run is judged by.

    Args:
        protocol: The roster of the task and every gate row.
        max_reasks: How often an invalid answer is sent back.
        max_rework: How many rounds of work may follow a BLOCKED.
        max_progress: How many progress reports a hand-over may be preceded by in one round.
        inputs: Whether a named input that does not exist is a warning or an error.
        unchanged: Whether a hand-over of an unchanged tree is an error or a warning.
        fingerprints: Digests of the configuration, the roster, the gates and the grammar.
        reserve: Whether the run holds leases on its task's scope.
        look_seconds: How long a page is watched after it has loaded.
        limits: What all roles together may spend in the whole run.
        commands: argv by name: what agents may have run.
        seals: How each sealed gate of the task is sealed, by gate id.
        sealing: What was frozen for them when the run was made; empty where nothing was.
        notify: The `[notify]` table: how people are notified of the run.
        commit: The commit that was checked out when the run began; empty where there was none.
        tree: The name of the run's own tree; empty for a run that works in the checkout.
        outside: Whether a hand-over that changed files outside the scope is refused.
        sandbox: Whether programs of agents run in a sandbox of their own.
        tickets: The texts of the tickets among the task's inputs, by the files that agents read them in.
        note: What the builders read beside the task, such as what the work conflicted with.
        files: The git tree whose files lie over those of the commit before anybody works; empty for none.
        quiet_minutes: After so many minutes without a change in the scope, it is said that an agent changes nothing.
    """

    protocol: Protocol
    agents: Mapping[str, AgentSetting]
    max_reasks: int = 2
    max_rework: int = 3
    max_progress: int = 5
    inputs: Literal["warn", "must-exist"] = "must-exist"
    unchanged: Literal["error", "warn"] = "error"
    fingerprints: Mapping[str, str] = field(default_factory=dict[str, str])
    reserve: bool = True
    look_seconds: float = 3.0
    limits: Limits = field(default_factory=Limits)
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    seals: Mapping[str, Seal] = field(default_factory=dict[str, Seal])
    sealing: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notify: Mapping[str, Any] = field(default_factory=dict[str, Any])
    commit: str = ""
    tree: str = ""
    outside: Literal["refuse", "report"] = "report"
    sandbox: bool = False
    tickets: Mapping[str, str] = field(default_factory=dict[str, str])
    note: str = ""
    files: str = ""
    quiet_minutes: float = 10

    def to_json(self) -> dict[str, Any]:
        """Return the policy as JSON values."""
        return _adapter().dump_python(self, mode="json")

    @classmethod
    def from_json(cls, data: object) -> "Policy":
        """Read back what `to_json` wrote.

        Raises:
            ValidationError: The data is not a policy.
        """
        return _adapter().validate_python(data)

    def recursion_limit(self, roles: int) -> int:
        """Return a bound on the graph's supersteps that no run within its budgets can reach."""
        # A superstep of the graph is at most one ask of a role; the constants leave room for the steps between.
        asks = 1 + self.max_reasks
        build_steps = (roles + self.max_progress) * (asks + 1)
        round_steps = build_steps + 2 * asks + 10
        return 10 + (1 + self.max_rework) * round_steps


@cache
def _adapter() -> TypeAdapter[Policy]:
    return TypeAdapter(Policy)


def make_policy(task: Task, config: Config, root: Path, *, roles: tuple[str, ...] = ()) -> Policy:
    """Read the present policy of a task.

    The task's own settings come first; the caller brings runners for `roles`.
    """
    whole = build_protocol(config)
    given = {name: AgentSetting(dict(settings), str(root), config.path) for name, settings in config.agents.items()}
    # Each setting keeps the folder of its own file, since paths in it (`prompt`) are relative to that.
    given |= {name: AgentSetting(dict(settings), task.base, "task file") for name, settings in task.agents.items()}
    agents = {name: AgentSetting({}, str(root)) for name in roles} | given
    roster = roster_of(task, config, whole, given, roles)
    protocol = Protocol(roles=roster, gates=whole.gates)
    page = task.page is not None
    agents = {name: _frozen(roster[name], row, page=page) if name in roster else row for name, row in agents.items()}
    run = config.run
    sealed = {
        name: seal
        for name, seal in seals(config, whole, in_git=top_of(root.resolve()) is not None).items()
        if name in task.gates_required
    }
    return Policy(
        protocol=protocol,
        agents=agents,
        inputs=config.envelope.inputs,
        unchanged=run.unchanged,
        reserve=run.reserve,
        look_seconds=config.evidence.look_seconds,
        quiet_minutes=run.quiet_minutes,
        seals=sealed,
        commands={**config.commands, **task.commands},
        prices={name: Price(row.input, row.output, row.cached_input) for name, row in config.prices.items()},
        notify=config.notify,
        limits=Table(_limits(config, task), "task file", "budget").read(Limits),
        fingerprints={
            "config": config.fingerprint(),
            "roster": fingerprint([asdict(role) for role in roster.values()]),
            "gates": fingerprint(
                [
                    asdict(whole.gate(name)) | {"seal": asdict(sealed[name]) if name in sealed else None}
                    for name in task.gates_required
                ]
            ),
            "grammar": grammar_fingerprint(),
        },
        max_reasks=task.run.get("max_reasks", run.max_reasks),
        max_rework=task.run.get("max_rework", run.max_rework),
        max_progress=task.run.get("max_progress", run.max_progress),
    )


def key_variables(policy: Policy) -> tuple[str, ...]:
    """Return the names of the variables that hold the keys of models, as the settings of the agents name them."""
    names = (row.settings.get("api_key_env") for row in policy.agents.values())
    return tuple(name for name in names if isinstance(name, str))


def _limits(config: Config, task: Task) -> dict[str, Any]:
    given = asdict(config.budget) | dict(task.budget)
    return {name: value for name, value in given.items() if value}


def _frozen(role: Role, row: AgentSetting, *, page: bool) -> AgentSetting:
    system = role_text(role, page=page, prompt=prompt_path(row.settings, row.base))
    limits = Table(row.settings, row.source, f"agents.{role.name}").table("budget").read(Limits)
    return replace(row, system=system, limits=limits)


def grammar_fingerprint() -> str:
    """Return the digest of the grammar that this version of Interlock reads answers with."""
    return fingerprint(files("interlock.envelope").joinpath("envelope.lark").read_text("utf-8"))


def left_for(policy: Policy, spent: Mapping[str, Mapping[str, Any]], role: str) -> Limits:
    """Return what a role may spend on its next answer: what is left of its own limits and of those of the task."""
    own = policy.agents[role].limits if role in policy.agents else Limits()
    return own.after(_of(spent, role)).within(policy.limits.after(_all(spent)))


def spent_by(policy: Policy, spent: Mapping[str, Mapping[str, Any]], role: str) -> str:
    """Return which budget is used up, so that a role is not asked any more; empty when something is left of each.

    Roles that are asked side by side do not see what the others spend meanwhile.
    """
    own = policy.agents[role].limits if role in policy.agents else Limits()
    if found := own.spent(_of(spent, role)):
        return f"the budget of {role} is used up: {found}"
    if found := policy.limits.spent(_all(spent)):
        return f"the budget of the task is used up: {found}"
    return ""


def _of(spent: Mapping[str, Mapping[str, Any]], role: str) -> Usage:
    return Usage.from_json(spent.get(role, {}))


def _all(spent: Mapping[str, Mapping[str, Any]]) -> Usage:
    return total(Usage.from_json(row) for row in spent.values())
