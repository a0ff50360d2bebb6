"""Which agents are alive: signs of life, and who counts as dead."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from interlock.reservations.leases.runtime import Caller, Entry, Runtime
from interlock.reservations.store.records import Agent, Lease, key_of, replace

if TYPE_CHECKING:
    from interlock.reservations.store.sqlite_rows import Transaction

HolderState: TypeAlias = Literal["alive", "silent", "gone"]

TOUCH_SECONDS = 1.0
"""A sign of life within this time after the last one is not written: it would cost every reader a disk write."""

BINDING = frozenset({"hook", "mcp"})
"""The entry points through which a client's process calls: from then on what it starts acts in the agent's name."""

LIVING = BINDING | {"run", "subagent"}
"""The entry points whose process is the agent's own. A shell or a script that makes a call may end at once."""


def touch(runtime: Runtime, tx: "Transaction", caller: Caller, now: float) -> tuple[Agent, Agent | None]:
    """Register the caller or move its `last_seen`, and bind its process to it; return it as it is now and as it was.

    An agent's process is the one it was first seen with for as long as that runs: a short-lived program that calls in
    its name must not make it look dead when it ends. A caller without a known process leaves one that runs in place and
    clears one that has ended.
    """
    known = tx.agent(caller.name)
    bound = "" if caller.pid is None else tx.agent_of_process(caller.host, caller.pid, caller.started)
    is_own = key_of(bound or "") == key_of(caller.name)
    if caller.client not in LIVING and not is_own:
        caller = replace(caller, pid=None, started="")
    if known is None:
        agent = Agent(caller.name, caller.kind, caller.host, caller.pid, caller.started, caller.client, now, now)
        tx.put_agent(agent)
    else:
        agent = replace(known, kind=caller.kind)
        if (known.host, known.pid, known.started) != (caller.host, caller.pid, caller.started) and not _runs(
            runtime, known
        ):
            agent = replace(agent, host=caller.host, pid=caller.pid, started=caller.started)
        if agent != known or abs(now - known.last_seen) >= TOUCH_SECONDS:
            agent = replace(agent, last_seen=now)
            tx.put_agent(agent)
    if caller.pid is not None and caller.client in BINDING and not is_own:
        tx.bind_process(caller.host, caller.pid, caller.started, agent.name, now)
    return agent, known


def state(entry: Entry, name: str) -> HolderState:
    """Return whether an agent still works.

    `gone`: its process on this machine has ended. `silent`: it was not seen for `dead_after_minutes`; a person is
    never silent, nor is a run that waits for one: no process represents it then. The caller itself is alive.
    """
    key = key_of(name)
    if key == key_of(entry.agent.name):
        return "alive"
    if key not in entry.states:
        entry.states[key] = state_of(entry.runtime, entry.tx.agent(name), entry.now)
    return entry.states[key]


def state_of(runtime: Runtime, agent: Agent | None, now: float) -> HolderState:
    """Return whether a registered agent still works; see `state`."""
    if agent is None or (agent.pid is not None and runtime.is_running(agent.host, agent.pid, agent.started) is False):
        return "gone"
    calls = agent.kind == "agent" and not (agent.client == "run" and agent.pid is None)
    silent = calls and now - agent.last_seen > runtime.settings.dead_after_minutes * 60
    return "silent" if silent else "alive"


def is_takeable(entry: Entry, lease: Lease) -> bool:
    """Return whether a lease may be taken: its holder is gone, or silent without a process that runs.

    One with a process, in a long test run for instance, keeps its leases until they end or a request takes them.
    """
    found = state(entry, lease.agent)
    if found != "silent" or is_protected(entry, lease):
        return found == "gone"
    agent = entry.tx.agent(lease.agent)
    return agent is None or not _runs(entry.runtime, agent)


def is_there(entry: Entry, name: str) -> bool:
    """Return whether an agent would notice that it gets something: it was seen lately, or its process runs."""
    found = state(entry, name)
    agent = entry.tx.agent(name)
    return found == "alive" or (found == "silent" and agent is not None and _runs(entry.runtime, agent))


def is_protected(entry: Entry, lease: Lease) -> bool:
    """Return whether a lease is kept from force: by `no_force`, or for as long as its holder acts under it."""
    return lease.no_force or lease.held_until > entry.now


def _runs(runtime: Runtime, agent: Agent) -> bool:
    return agent.pid is not None and runtime.is_running(agent.host, agent.pid, agent.started) is True
