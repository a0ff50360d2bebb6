"""What other agents hold, and the refusal of what would touch it: shared by the commit, git's hooks and the guard."""

import os
import os.path
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from interlock.reservations.answers import Conflict
from interlock.reservations.desk import Caller, Desk
from interlock.reservations.patterns import FOLD_CASE, Pattern, PatternProblem, canonical, matches, overlaps, quote
from interlock.reservations.records import key_of
from interlock.reservations.rules import RULES, shown

if TYPE_CHECKING:
    from interlock.reservations import place

MAX_LISTED: Final = 8
"""So many paths are named in one refusal."""

Hit: TypeAlias = tuple[str, Conflict]
"""A path or pattern that would be touched, and who holds it."""


def opened(found: "place.Place", client: str, env: Mapping[str, str]) -> tuple[Desk, Caller] | None:
    """Return what a guard works with; None where nothing was ever reserved, so that there is nothing to guard.

    Args:
        found: The project.
        client: The door, for the record.
        env: Where the identity is read from.

    Raises:
        ReservationError: The settings or the store cannot be read.
    """
    from interlock.reservations import identity, process, settings  # noqa: PLC0415 - not for a quick yes
    from interlock.reservations.sqlite import SqliteStore  # noqa: PLC0415

    if not os.path.lexists(found.store_path):
        return None
    desk = Desk(SqliteStore(found.store_path), settings.read(found.root), is_running=process.is_running)
    known = identity.who(env, desk.store, door=client)
    return desk, Caller(known.name, known.kind, found.root, client, process.host(), known.pid, known.started)


def project(start: str, env: Mapping[str, str], git_dir: str = "") -> "place.Place | None":
    """Return the project whose leases count in a folder; None for a folder that is not in the one that is named.

    Where the environment names a project around it, a repository is judged from its own top all the same: what is held
    in the project that is named counts as that of any other around it (`holdings`), and no name makes leases go away.

    Args:
        start: A folder.
        env: Where the project may be named.
        git_dir: The repository, where git was told of another one than that around the folder.
    """
    from interlock.reservations import git, place  # noqa: PLC0415 - not for a quick yes

    named = bool(env.get(place.PROJECT))
    if not git_dir and not named:
        return place.find(start)
    own = None
    if git_dir:
        own = place_of(os.path.join(start, git_dir), start)
    else:
        with suppress(git.GitFailed):
            told = os.fsdecode(git.ask(start, ["rev-parse", "--absolute-git-dir", "--show-toplevel"])).split("\n")
            own = place_of(told[0], told[1] or start)
    if own is not None or not named:
        return own
    found = place.find(start)
    return found if place.inside(found.root, os.path.realpath(start)) else None


def place_of(git_dir: str, root: str) -> "place.Place":
    """Return the project of a repository that git was told of by its folder, with the files in another one."""
    from interlock.reservations import place  # noqa: PLC0415

    common = git_dir
    pointer = os.path.join(git_dir, "commondir")
    if os.path.isfile(pointer):
        with open(pointer, encoding="utf-8", errors="surrogateescape") as file:
            common = os.path.join(git_dir, file.readline().rstrip("\n"))
    common = os.path.realpath(common)
    return place.Place(os.path.realpath(root), common, os.path.join(common, "interlock", place.STORE))


def git_dir_of(root: str) -> str:
    """Return the folder of git's that belongs to the top of a checkout, linked worktrees and submodules included."""
    path = os.path.join(root, ".git")
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            path = os.path.join(root, file.readline().rstrip("\n").removeprefix("gitdir:").strip())
    return os.path.realpath(path)


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


def holdings(
    found: "place.Place", client: str, env: Mapping[str, str]
) -> tuple[tuple[Desk, Caller] | None, list[Conflict]]:
    """Return a project's store and what others hold there, with what they hold of it in projects around it.

    A submodule, or a repository inside another one, has leases of its own; those of the outer one count as well. Where
    only an outer project has a store, that one is returned.

    Args:
        found: The project.
        client: The door, for the record.
        env: Where the identity is read from.

    Raises:
        ReservationError: A store cannot be read.
    """
    from interlock.reservations import place  # noqa: PLC0415 - not for a quick yes

    first = opened(found, client, env)
    held = [] if first is None else foreign(*first)
    for outer in place.around(os.path.join(found.root, "file"), found):
        if outer.store_path == found.store_path or (above := opened(outer, client, env)) is None:
            continue
        held += [
            row for conflict in foreign(*above) for row in _inside(conflict, os.path.relpath(found.root, outer.root))
        ]
        first = first or above
    return first, held


def _inside(conflict: Conflict, folder: str) -> list[Conflict]:
    """Return a lease as it is seen from a folder below its root; nothing when it has no path there."""
    text = conflict["held_pattern"]
    if text.startswith(f"{quote(folder)}/"):
        return [{**conflict, "held_pattern": text[len(quote(folder)) + 1 :]}]
    # A pattern with wildcards above the folder may mean anything in it.
    return [{**conflict, "held_pattern": "**"}] if overlapping([conflict], f"{quote(folder)}/**") else []


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
    elif hits:
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
