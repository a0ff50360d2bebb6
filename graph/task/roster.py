"""Who takes part in a task: its roster, the roles that nobody runs, and the models that a person gives them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from interlock.agents.ask import AgentConfigError
from interlock.agents.model_spec import FORMS, OPTION, agent_table, split_role
from interlock.core.text import closest
from interlock.envelope.protocol import Protocol, Role
from interlock.gates.config import Config
from interlock.gates.registry import build_protocol, hands_over_alone
from interlock.graph.task.task import Task


def roster_of(
    task: Task, config: Config, whole: Protocol, given: Collection[str], brought: Collection[str] = ()
) -> dict[str, Role]:
    """Return the roles that take part in a task, in the order of the project's roster.

    These are the orchestrator and every role with settings. Where a command decides a required gate, a QA or review
    role that the project's configuration alone names takes part only when its gate is required. Where no role hands
    over, the one new build role that says nothing about it does.
    """
    unneeded = set(unneeded_roles(task, config, whole)) - {*task.agents, *brought}
    roster = {
        name: role
        for name, role in whole.roles.items()
        if role.kind == "orchestrator" or (name in {*given, *brought} and name not in unneeded)
    }
    # Without this, a project with one builder would have to say `hands_over` of a role that has no choice.
    if not any(role.hands_over for role in roster.values()):
        open_roles = [role for role in roster.values() if hands_over_alone(role, config)]
        if len(open_roles) == 1:
            roster[open_roles[0].name] = replace(open_roles[0], hands_over=True)
    return roster


def unneeded_roles(task: Task, config: Config, whole: Protocol) -> Iterator[str]:
    """Yield the QA and review roles of `[agents]` that a task with a command gate does without: no gate needs them."""
    if not any(whole.gate(gate_id).by_command for gate_id in task.gates_required):
        return
    for name in config.agents:
        role = whole.roles.get(name)
        if role is not None and role.kind in ("qa", "review") and not judges_gate(role, task, whole):
            yield name


def judges_gate(role: Role, task: Task, whole: Protocol) -> bool:
    """Return whether a required gate names a role as its certifier, or a role names a required gate as its own."""
    certifiers = {whole.gate(gate_id).certifier for gate_id in task.gates_required}
    return role.name in certifiers or role.certifies in task.gates_required


_PATHS: Final = ("prompt",)
"""The settings that are paths, relative to the file that holds them."""


def vacant_roles(task: Task, config: Config) -> tuple[str, ...]:
    """Return the roles of a task for which neither file names a runner, in the order of the roster.

    A task needs the build role that hands over, who certifies its gates, and every role of its roster.

    Raises:
        ConfigError: Roles and gates of the project do not fit together.
    """
    protocol, tables = build_protocol(config), _tables(task, config)
    roster = roster_of(task, config, protocol, tables)
    own = [role for role in protocol.roles.values() if task.page is None and hands_over_alone(role, config)]
    shipped = (role for role in protocol.roles.values() if role.hands_over)
    handing = next(
        (role for role in roster.values() if role.hands_over), own[0] if len(own) == 1 else next(shipped, None)
    )
    return tuple(
        name
        for name, role in protocol.roles.items()
        if role.kind != "orchestrator"
        and (name in roster or role is handing or judges_gate(role, task, protocol))
        and "runner" not in tables.get(name, {})
    )


def staffed(task: Task, config: Config, root: Path, models: Iterable[str]) -> Task:
    """Return the task with the models that were named for it.

    A `SPEC` goes to every vacant role, whose other settings stay. A `ROLE=SPEC` replaces the runner of that role; its
    prompt and its budget stay. `models` has `SPEC` at most once, and `ROLE=SPEC` at most once for each role.

    Raises:
        AgentConfigError: One of them is ill-formed, is given twice, names no role, or finds no role to take.
        ConfigError: Roles and gates of the project do not fit together.
    """
    chosen = _by_role(models)
    if not chosen:
        return task
    known = [row.name for row in build_protocol(config).roles.values() if row.kind != "orchestrator"]
    for role in filter(None, chosen):
        if role not in known:
            near = closest(role, known)
            hint = f"Did you mean `{near}`? " if near else ""
            fix = f"{hint}The roles are {', '.join(known)}."
            raise AgentConfigError(OPTION, f"{role}={chosen[role]}", f"there is no role `{role}`", fix)
    specs = {role: spec for role, spec in chosen.items() if role}
    if "" in chosen:
        vacant = [role for role in vacant_roles(task, config) if role not in specs]
        if not vacant:
            fix = f"Name the role that it is for: `{OPTION} {known[0]}={chosen['']}`."
            raise AgentConfigError(OPTION, chosen[""], "every role of this task has its runner already", fix)
        specs |= dict.fromkeys(vacant, chosen[""])
    agents = dict(task.agents)
    for role, spec in specs.items():
        agents[role] = _kept(role, task, config, root) | agent_table(spec)
    return replace(task, agents=agents)


def _by_role(models: Iterable[str]) -> dict[str, str]:
    """Return the specs by role; the one for roles without a runner is under the empty name."""
    chosen: dict[str, str] = {}
    for text in models:
        role, spec = split_role(text)
        if not role and text.startswith("="):
            raise AgentConfigError(OPTION, text, "no role is named before `=`", f"Write ROLE=SPEC; SPEC is {FORMS}.")
        agent_table(spec)
        if role in chosen:
            what = f"{role} is given two models" if role else "two models are given to the same roles"
            raise AgentConfigError(OPTION, text, what, f"Give one, or name roles: `{OPTION} ROLE=SPEC`.")
        chosen[role] = spec
    return chosen


def _tables(task: Task, config: Config) -> Mapping[str, Mapping[str, Any]]:
    return {**config.agents, **task.agents}


def _kept(role: str, task: Task, config: Config, root: Path) -> dict[str, Any]:
    """Return what stays of a role's table beside a new runner; its prompt is found from the table's own file."""
    table = _tables(task, config).get(role, {})
    # The other settings are those of the runner that goes (a model, a script), and mean nothing to the new one.
    names = ("prompt", "budget") if "runner" in table else tuple(table)
    kept = {name: table[name] for name in names if name in table}
    # The table moves from the configuration into the task, whose paths begin at another folder.
    if role not in task.agents:
        kept |= {name: str(root / path) for name in _PATHS if isinstance(path := kept.get(name), str)}
    return kept
