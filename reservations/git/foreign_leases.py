"""What other agents hold, and the refusal of what would touch it: shared by the commit, git's hooks and the guard."""

import json
import os
import os.path
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from interlock.core.finding import Finding
from interlock.core.patterns import canonical, overlaps, quote
from interlock.reservations import place, process, settings
from interlock.reservations.answers import Conflict
from interlock.reservations.git.near import Near
from interlock.reservations.leases.runtime import Caller, Context, Runtime
from interlock.reservations.leases.views import Holder, conflict_of, lasting, seen
from interlock.reservations.rules import RULES, shown
from interlock.reservations.store.records import Lease, replace

MAX_LISTED: Final = 8
"""At most this many paths are named in one refusal."""

Hit: TypeAlias = tuple[str, Conflict]
"""A path or pattern that would be touched, and who holds it."""


class Hold(NamedTuple):
    """A lease of another agent; `pattern` is as seen from the project that is looked at."""

    pattern: str
    prefix: str
    lease: Lease
    holder: Holder

    @property
    def conflict(self) -> Conflict:
        """The lease as callers see it."""
        return conflict_of(self.pattern, self.lease, self.pattern, self.holder)


Held: TypeAlias = Near[Hold]
"""What others hold in a project."""


def opened(found: place.Place, client: str, env: Mapping[str, str]) -> Context | None:
    """Return what a guard works with; None where nothing was ever reserved, so that there is nothing to guard."""
    from interlock.reservations import identity  # noqa: PLC0415 - not for a quick yes
    from interlock.reservations.store.choice import store_at  # noqa: PLC0415
    from interlock.reservations.versions import flight  # noqa: PLC0415

    if not place.is_used(found):
        return None
    runtime = Runtime(store_at(found), settings.read(found.root), is_running=process.is_running)
    known = identity.who(env, runtime.store, via=client)
    name = flight.acting(found, known.name)
    caller = Caller(name, known.kind, found.root, client, process.host(), known.pid, known.started)
    return Context(runtime, caller)


def project(start: str) -> place.Place:
    """Return the project whose leases count in a folder: of the innermost checkout, whatever the environment names.

    What is held in a project around it counts as well (`holdings`), so that no name makes leases go away.
    """
    return next(iter(place.upwards_of(os.path.realpath(start))), None) or place.find(start)


def foreign(ctx: Context, *, everywhere: bool = False) -> Held:
    """Return the leases of others that have not ended, each with the state of its holder; dead holders too.

    Those whose holders work on other machines are left out, or there as well, `everywhere`.
    A dead holder's unsaved work is still there: an agent that needs it reserves it, which takes it over and reports it.
    """
    from interlock.reservations.leases import calls, liveness, subagents  # noqa: PLC0415 - not for a quick yes
    from interlock.reservations.store.choice import leases_here  # noqa: PLC0415

    with calls.entered(ctx) as entry:
        me = ctx.caller.name
        found = entry.tx.leases() if everywhere else leases_here(ctx.runtime.store, entry.tx)
        others = [lease for lease in found if not subagents.is_own(entry.tx, me, lease.agent)]
        agents = {name: entry.tx.agent(name) for name in {lease.agent for lease in others}}
        holders = {
            name: Holder(liveness.state(entry, name), agent.last_seen if agent else 0.0, entry.now)
            for name, agent in agents.items()
        }
    return _near(Hold(lease.pattern, lease.prefix, lease, holders[lease.agent]) for lease in others)


def _near(rows: Iterable[Hold]) -> Held:
    return Near((row.pattern, row.prefix, row) for row in rows)


def holdings(
    found: place.Place,
    client: str,
    env: Mapping[str, str],
    known: Mapping[str, Context] = MappingProxyType({}),
    *,
    everywhere: bool = False,
) -> tuple[Context | None, Held]:
    """Return a project's store and what others hold there, with what they hold of it in projects around it.

    A submodule, or a repository inside another one, has leases of its own; those of the outer one count as well. Where
    only an outer project has a store, that one is returned. `everywhere`: see `foreign`.
    """
    first = known.get(found.store_path) or opened(found, client, env)
    held = [] if first is None else foreign(first, everywhere=everywhere).values
    for outer in place.around(os.path.join(found.root, "file"), found):
        if outer.store_path == found.store_path or (above := opened(outer, client, env)) is None:
            continue
        folder = os.path.relpath(found.root, outer.root)
        held += [
            inner for row in foreign(above, everywhere=everywhere).values if (inner := _inside(row, folder)) is not None
        ]
        first = first or above
    return first, _near(held)


def _inside(row: Hold, folder: str) -> Hold | None:
    """Return a lease as it is seen from a folder; None where it has no path in there."""
    text, prefix = f"{quote(folder)}/", f"{folder}/"
    if row.pattern.startswith(text) and row.prefix.startswith(prefix):
        return replace(row, pattern=row.pattern[len(text) :], prefix=row.prefix[len(prefix) :])
    held = canonical(row.pattern)
    if isinstance(held, Finding) or overlaps(held, f"{text}**"):
        return replace(row, pattern="**", prefix="")  # with wildcards above the folder it may mean anything there
    return None


def touched(held: Held, paths: Iterable[str]) -> list[Hit]:
    """Return the given paths that somebody holds, each once."""
    return [(path, found[0].conflict) for path in dict.fromkeys(paths) if (found := held.covering(path))]


def everything(held: Held) -> list[Hit]:
    """Return everything that is held."""
    return [(row.pattern, row.conflict) for row in held.values]


def explain(action: str, hits: Sequence[Hit], fix: str) -> str:
    """Return the refusal as text: the rule, the action, each path with its holder, and the way that is safe."""
    lines = [f"interlock RSV207: {action} what other agents hold."]
    lines += [f"  {_line(path, conflict)}" for path, conflict in hits[:MAX_LISTED]]
    lines += [f"  and {len(hits) - MAX_LISTED} more"] if len(hits) > MAX_LISTED else []
    ask = "`interlock negotiate FILE --reason WHY` (tool: negotiate_release)"
    lines += [f"  expected: {RULES['RSV207']}", f"  fix: {fix}", f"  to get a file: {ask}."]
    return "\n".join(lines)


def note(ctx: Context, via: str, action: str, hits: Sequence[Hit]) -> None:
    """Add the refusal to the events of the store: what was tried and whose paths it met; never the whole command."""
    data = {
        "agent": ctx.caller.name,
        "door": via,
        "action": action,
        "paths": [shown(path) for path, _ in hits[:MAX_LISTED]],
        "holders": sorted({conflict["holder"] for _, conflict in hits}),
    }
    with ctx.runtime.store.transaction() as tx:
        tx.add_event(ctx.caller.root, "guard_refused", json.dumps(data, sort_keys=True), ctx.runtime.clock())


def _line(path: str, conflict: Conflict) -> str:
    within = "" if conflict["held_pattern"] == path else f" as {shown(conflict['held_pattern'])}"
    reason = f": {shown(conflict['reason'])}" if conflict["reason"] else ""
    changed = ", with uncommitted changes" if conflict["dirty"] else ""
    holder = f"{shown(conflict['holder'])} ({seen(conflict)}, {lasting(conflict)}{changed})"
    return f"{shown(path)}{within} is held by {holder}{reason}"
