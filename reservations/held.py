"""What other agents hold, and the refusal of what would touch it: shared by the commit, git's hooks and the guard."""

import os
import os.path
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from interlock.reservations.answers import Conflict
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.patterns import FOLD_CASE, Pattern, PatternProblem, canonical, matches, overlaps
from interlock.reservations.records import key_of
from interlock.reservations.rules import RULES, shown

if TYPE_CHECKING:
    from interlock.reservations import place

MAX_LISTED: Final = 8
"""So many paths are named in one refusal."""

Hit: TypeAlias = tuple[str, Conflict]
"""A path or pattern that would be touched, and who holds it."""


def open_guard(start: str, client: str, env: Mapping[str, str]) -> tuple[Desk, Caller] | None:
    """Return what a guard works with; None where nothing was ever reserved, so that there is nothing to guard.

    Args:
        start: A folder of the project.
        client: The door, for the record.
        env: Where the identity is read from.

    Raises:
        ReservationError: The project, the settings or the store cannot be read.
    """
    from interlock.reservations import identity, place, process, settings  # noqa: PLC0415 - not for a quick yes
    from interlock.reservations.sqlite import SqliteStore  # noqa: PLC0415

    found = place.find(start)
    if not os.path.lexists(found.store_path) or (env.get(place.PROJECT) and not _belongs(found, start)):
        return None
    desk = Desk(SqliteStore(found.store_path), settings.read(found.root), is_running=process.is_running)
    known = identity.who(env, desk.store)
    return desk, Caller(known.name, known.kind, found.root, client, process.host(), known.pid, known.started)


def foreign(desk: Desk, caller: Caller) -> list[Conflict]:
    """Return the leases of others that have not ended, each with the state of its holder; dead holders too.

    A dead holder's unsaved work is still there: who wants to touch it reserves it, which takes it over and says so.

    Raises:
        ReservationError: The store cannot be used.
    """
    from interlock.reservations import leases, views  # noqa: PLC0415 - not for a quick yes

    with leases.entered(desk, caller) as entry:
        others = [lease for lease in entry.tx.leases() if key_of(lease.agent) != key_of(caller.name)]
        return [views.conflict_info(entry, lease.pattern, lease, lease.pattern) for lease in others]


def touched(held: Sequence[Conflict], paths: Iterable[str]) -> list[Hit]:
    """Return the given paths that somebody holds, each once."""
    rows = [(pattern, conflict) for conflict in held if (pattern := _pattern(conflict["held_pattern"])) is not None]
    literal = {pattern.path: conflict for pattern, conflict in rows if pattern.literal}
    wide = [(pattern, conflict) for pattern, conflict in rows if not pattern.literal]
    hits: list[Hit] = []
    for path in dict.fromkeys(paths):
        # Most names are spelled in one way only; for these, thousands of paths and leases are a look into a table.
        plain = path.isascii() and not FOLD_CASE
        near = [row for row in wide if path.startswith(row[0].prefix)] if plain else rows
        conflict = literal.get(path) if plain else None
        conflict = conflict or next((row for pattern, row in near if matches(pattern, path)), None)
        hits += [] if conflict is None else [(path, conflict)]
    return hits


def overlapping(held: Sequence[Conflict], pattern: str) -> list[Hit]:
    """Return what is held and may have a path in common with a pattern; the whole tree is `**`.

    A pattern that cannot be read overlaps everything: what is not understood is not let through.
    """
    wanted = _pattern(pattern)
    return [
        (conflict["held_pattern"], conflict)
        for conflict in held
        if wanted is None or (other := _pattern(conflict["held_pattern"])) is None or overlaps(wanted, other)
    ]


def explain(action: str, hits: Sequence[Hit], fix: str, *, place: str = "") -> str:
    """Return the refusal as text: the rule, the action, each path with its holder, and the way that is safe.

    Args:
        action: What would happen, such as ``this commit carries``.
        hits: What it would touch.
        fix: What to do.
        place: The command or the ref, as far as it helps.
    """
    lines = [f"interlock RSV207: {action} what other agents hold{f' ({shown(place)})' if place else ''}."]
    lines += [f"  {_line(path, conflict)}" for path, conflict in hits[:MAX_LISTED]]
    lines += [f"  and {len(hits) - MAX_LISTED} more"] if len(hits) > MAX_LISTED else []
    lines += [f"  expected: {RULES['RSV207']}", f"  fix: {fix}"]
    dead = sorted({hit["holder"] for _, hit in hits if hit["holder_state"] != "alive"})
    if dead:
        lines.append(
            f"  {', '.join(map(shown, dead))} may be dead: `interlock reserve PATH` takes over from a dead holder."
        )
    else:
        file, reason = shown(hits[0][0]), "--reason WHY"
        lines.append(f"  to get it: `interlock negotiate '{file}' {reason}` (tool: negotiate_release).")
    return "\n".join(lines)


def note(desk: Desk, caller: Caller, door: str, action: str, hits: Sequence[Hit]) -> None:
    """Add the refusal to the events of the store: what was tried and whose paths it met; never the whole command.

    Raises:
        ReservationError: The store cannot be used.
    """
    import json  # noqa: PLC0415 - only a refusal writes

    data = {
        "agent": caller.name,
        "door": door,
        "action": action,
        "paths": [shown(path) for path, _ in hits[:MAX_LISTED]],
        "holders": sorted({conflict["holder"] for _, conflict in hits}),
    }
    with desk.store.transaction() as tx:
        tx.add_event(caller.root, "guard_refused", json.dumps(data, sort_keys=True), desk.clock())


def _belongs(found: "place.Place", start: str) -> bool:
    """Say whether a folder is part of the project that the environment names, and not of another repository."""
    from interlock.reservations import git, place  # noqa: PLC0415 - only where a project is named

    try:
        common = os.fsdecode(git.ask(start, ["rev-parse", "--git-common-dir"])).removesuffix("\n")
    except git.GitFailed:
        return place.inside(found.root, os.path.realpath(start))
    real = os.path.realpath(os.path.join(start, common))
    return real == found.common if found.common else place.inside(found.root, os.path.realpath(start))


def _line(path: str, conflict: Conflict) -> str:
    """Describe one held path."""
    state = {"alive": "alive", "silent": "silent", "gone": "gone: its process has ended"}[conflict["holder_state"]]
    within = "" if conflict["held_pattern"] == path else f" as {shown(conflict['held_pattern'])}"
    reason = f": {shown(conflict['reason'])}" if conflict["reason"] else ""
    seen, left = conflict["last_seen_seconds"], -(-conflict["expires_in_seconds"] // 60)
    times = f"last seen {seen} s ago, lease ends in {left} min"
    return f"{shown(path)}{within} is held by {shown(conflict['holder'])} ({state}, {times}){reason}"


def _pattern(text: str) -> Pattern | None:
    """Return a pattern that can be compared."""
    found = canonical(text)
    return None if isinstance(found, PatternProblem) else found
