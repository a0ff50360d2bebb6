"""What other agents hold, and the refusal of what would touch it: shared by the commit, git's hooks and the guard."""

import os
import os.path
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from interlock.core.project import PROJECT
from interlock.reservations.answers import Conflict
from interlock.reservations.leases.runtime import Caller, Context, Runtime
from interlock.reservations.leases.views import Holder, conflict_of, lasting, seen
from interlock.reservations.patterns import as_prefix, quote
from interlock.reservations.patterns.prefix_index import Near
from interlock.reservations.rules import RULES, shown
from interlock.reservations.store.records import Lease, replace

if TYPE_CHECKING:
    from interlock.reservations import place

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


def opened(found: "place.Place", client: str, env: Mapping[str, str]) -> Context | None:
    """Return what a guard works with; None where nothing was ever reserved, so that there is nothing to guard."""
    from interlock.reservations import identity, process, settings  # noqa: PLC0415 - not for a quick yes
    from interlock.reservations.store.sqlite import SqliteStore  # noqa: PLC0415
    from interlock.reservations.versions import flight  # noqa: PLC0415

    if not os.path.lexists(found.store_path):
        return None
    runtime = Runtime(SqliteStore(found.store_path), settings.read(found.root), is_running=process.is_running)
    known = identity.who(env, runtime.store, via=client)
    name = flight.acting(found, known.name)
    caller = Caller(name, known.kind, found.root, client, process.host(), known.pid, known.started)
    return Context(runtime, caller)


def project(start: str, env: Mapping[str, str], git_dir: str = "") -> "place.Place | None":
    """Return the project whose leases count in a folder; None for a folder that is not in the one that is named.

    Where the environment names a project around it, a repository is judged from its own top all the same: what is held
    in the project that is named counts as that of any other around it (`holdings`), and no name makes leases go away.
    `git_dir` is the repository, where git was given another one than that around the folder.
    """
    from interlock.reservations import place  # noqa: PLC0415 - not for a quick yes
    from interlock.reservations.git import commands  # noqa: PLC0415 - not for a quick yes

    named = bool(env.get(PROJECT))
    if not git_dir and not named:
        return place.find(start)
    own = None
    if git_dir:
        own = place.of_git(os.path.join(start, git_dir), start)
    else:
        with suppress(commands.GitError):
            said = os.fsdecode(commands.ask(start, ["rev-parse", "--absolute-git-dir", "--show-toplevel"])).split("\n")
            own = place.of_git(said[0], said[1] or start)
    if own is not None or not named:
        return own
    found = place.find(start)
    return found if place.inside(found.root, os.path.realpath(start)) else None


def foreign(ctx: Context) -> Held:
    """Return the leases of others that have not ended, each with the state of its holder; dead holders too.

    A dead holder's unsaved work is still there: an agent that needs it reserves it, which takes it over and reports it.
    """
    from interlock.reservations.leases import calls, liveness, subagents  # noqa: PLC0415 - not for a quick yes

    with calls.entered(ctx) as entry:
        me = ctx.caller.name
        others = [lease for lease in entry.tx.leases() if not subagents.is_own(entry.tx, me, lease.agent)]
        agents = {name: entry.tx.agent(name) for name in {lease.agent for lease in others}}
        found = {
            name: Holder(liveness.state(entry, name), agent.last_seen if agent else 0.0, entry.now)
            for name, agent in agents.items()
        }
    return _near(Hold(lease.pattern, lease.prefix, lease, found[lease.agent]) for lease in others)


def _near(rows: Iterable[Hold]) -> Held:
    return Near((row.pattern, row.prefix, row) for row in rows)


def holdings(
    found: "place.Place", client: str, env: Mapping[str, str], known: Mapping[str, Context] = MappingProxyType({})
) -> tuple[Context | None, Held]:
    """Return a project's store and what others hold there, with what they hold of it in projects around it.

    A submodule, or a repository inside another one, has leases of its own; those of the outer one count as well. Where
    only an outer project has a store, that one is returned.
    """
    from interlock.reservations import place  # noqa: PLC0415 - not for a quick yes

    first = known.get(found.store_path) or opened(found, client, env)
    held = [] if first is None else foreign(first).meeting("**")
    for outer in place.around(os.path.join(found.root, "file"), found):
        if outer.store_path == found.store_path or (above := opened(outer, client, env)) is None:
            continue
        folder = os.path.relpath(found.root, outer.root)
        held += [_inside(row, folder) for row in foreign(above).meeting(f"{quote(folder)}/**")]
        first = first or above
    return first, _near(held)


def _inside(row: Hold, folder: str) -> Hold:
    """Return a lease that has paths in a folder as it is seen from there."""
    text, prefix = f"{quote(folder)}/", f"{as_prefix(folder)}/"
    if row.pattern.startswith(text) and row.prefix.startswith(prefix):
        return replace(row, pattern=row.pattern[len(text) :], prefix=row.prefix[len(prefix) :])
    # A pattern with wildcards above the folder may mean anything in it.
    return replace(row, pattern="**", prefix="")


def touched(held: Held, paths: Iterable[str]) -> list[Hit]:
    """Return the given paths that somebody holds, each once."""
    return [(path, found[0].conflict) for path in dict.fromkeys(paths) if (found := held.covering(path))]


def overlapping(held: Held, *patterns: str) -> list[Hit]:
    """Return what is held and may have a path in common with one of some patterns; the whole tree is `**`.

    A pattern that cannot be read overlaps everything: what is not understood is not let through.
    """
    met = {id(row): row for pattern in patterns for row in held.meeting(pattern)}
    return [(row.pattern, row.conflict) for row in met.values()]


def explain(action: str, hits: Sequence[Hit], fix: str, *, why: str = "", asks: bool = True) -> str:
    """Return the refusal as text: the rule, the action, each path with its holder, and the way that is safe.

    `why` it is refused though nothing of theirs has changed; `asks` where having these paths would let it pass.
    """
    lines = [f"interlock RSV207: {action} what other agents hold."]
    lines += [f"  why: {why}"] if why else []
    lines += [f"  {_line(path, conflict)}" for path, conflict in hits[:MAX_LISTED]]
    lines += [f"  and {len(hits) - MAX_LISTED} more"] if len(hits) > MAX_LISTED else []
    lines += [f"  expected: {RULES['RSV207']}", f"  fix: {fix}"]
    if not asks:
        return "\n".join(lines)
    dead = sorted({hit["holder"] for _, hit in hits if hit["holder_state"] != "alive"})
    if dead:
        lines.append(
            f"  {', '.join(map(shown, dead))} may be dead: `interlock reserve PATH` takes over from a dead holder."
        )
    elif hits:
        it, file = ("it", f"'{shown(hits[0][0])}'") if len(hits) == 1 else ("one of them", "FILE")
        lines.append(f"  to get {it}: `interlock negotiate {file} --reason WHY` (tool: negotiate_release).")
    return "\n".join(lines)


def note(ctx: Context, via: str, action: str, hits: Sequence[Hit]) -> None:
    """Add the refusal to the events of the store: what was tried and whose paths it met; never the whole command."""
    import json  # noqa: PLC0415 - only a refusal writes

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
