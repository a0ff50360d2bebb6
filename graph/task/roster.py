"""The roster of one task: the roles of the project that take part in it, and the build role that hands over."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from interlock.envelope.protocol import Protocol, Role
from interlock.gates.config import Config
from interlock.gates.registry import hands_over_alone
from interlock.graph.task.task import Task


def roster_of(
    task: Task, config: Config, whole: Protocol, given: Collection[str], brought: Collection[str] = ()
) -> dict[str, Role]:
    """Return the roles that take part in a task, in the order of the project's roster.

    These are the orchestrator and every role with settings. Where a command decides a required gate, a QA or review
    role that the project's configuration alone names takes part only when its gate is required. Where no role hands
    over, the one new build role that says nothing about it does.
    """
    spared = set(spared_roles(task, config, whole)) - {*task.agents, *brought}
    roster = {
        name: role
        for name, role in whole.roles.items()
        if role.kind == "orchestrator" or (name in {*given, *brought} and name not in spared)
    }
    if not any(role.hands_over for role in roster.values()):
        open_roles = [role for role in roster.values() if hands_over_alone(role, config)]
        if len(open_roles) == 1:
            roster[open_roles[0].name] = replace(open_roles[0], hands_over=True)
    return roster


def spared_roles(task: Task, config: Config, whole: Protocol) -> Iterator[str]:
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
