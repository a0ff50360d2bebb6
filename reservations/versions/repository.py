"""What a command did to the index, the stash and HEAD of a checkout in which others hold files.

Answers T1. Entries of held paths go back into the index, and an entry of the stash that was another agent's is stored
again; what the command's own agent staged stays staged. HEAD and branches are never moved back, for that would undo the
other's work: holders are told. Git's files are compared as they are; git itself runs only where one differs.
"""

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from zlib import crc32

from interlock.core import git
from interlock.reservations import place
from interlock.reservations.rules import shown, some
from interlock.reservations.store.records import key_of
from interlock.reservations.versions.look import Held
from interlock.reservations.versions.store import Call, VersionRows
from interlock.reservations.versions.verdict import Verdict

Notice = tuple[Sequence[str], str]
"""Names of agents, and what each of them is told."""
WhoseChange = Callable[[Sequence[str], float], Verdict]
"""Whose a change at a time is, for some holders: `back`, that of others; `both`, not known; `keep`, their own."""

_MAX_NAMED: Final = 8
_QUIETLY: Final = ("-c", f"core.hooksPath={os.devnull}")
"""Our own hooks of git would wait for the very look that calls git here."""


def compare(
    tx: VersionRows,
    folder: str,
    root: str,
    held: Sequence[Held],
    calls: Sequence[Call],
    whose: WhoseChange,
    now: float,
) -> list[Notice]:
    """Compare a checkout with what it was at the last look, undo what can be undone, and return what holders are told.

    Args:
        folder: Where the index of the last look is kept.
        held: The files of this checkout that are held as at the last look.
        calls: Those in flight since the last look.
    """
    git_dir = place.git_dir_of(root)
    known: Mapping[str, Any] = json.loads(tx.value(f"git {root}") or "{}")
    seen = {"head": place.head(root), "commit": place.commit_at(root), "index": _mark(f"{git_dir}/index")}
    saved = os.path.join(folder, "index", f"{crc32(os.fsencode(root)):08x}")
    notices: list[Notice] = []
    if known and known != seen:
        changed_at = _changed_at(f"{git_dir}/index", now)
        # Of holders without hooks it is not known, and their own staging must not be undone.
        theirs = [file for file in held if whose(file.holders, changed_at) == "back"]
        has_moved = (known["head"], known["commit"]) != (seen["head"], seen["commit"])
        if has_moved:
            notices += _moved(root, known, seen, theirs)
        if known["index"] != seen["index"] and calls:
            commits = (known["commit"], seen["commit"]) if has_moved else ()
            notices += _entries_changed(root, saved, theirs, calls, commits)
            seen["index"] = _mark(f"{git_dir}/index")
    if known.get("index") != seen["index"]:
        _save(f"{git_dir}/index", saved)
    if seen != known:
        tx.put_value(f"git {root}", json.dumps(seen))
    return notices


def has_switched(tx: VersionRows, root: str) -> bool:
    """Return whether HEAD is another branch than at the last look."""
    known: Mapping[str, Any] = json.loads(tx.value(f"git {root}") or "{}")
    return bool(known) and known["head"] != place.head(root)


def _changed_at(path: str, now: float) -> float:
    try:
        return os.stat(path).st_ctime
    except OSError:
        return now


def _mark(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"


def _save(index: str, saved: str) -> None:
    """Keep an index: git replaces the file by another one, so a second name of it costs nothing."""
    os.makedirs(os.path.dirname(saved), mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        os.unlink(saved)
    with suppress(FileNotFoundError):
        try:
            os.link(index, saved)
        except OSError:
            import shutil  # noqa: PLC0415 - only where the state folder is on another disk

            shutil.copyfile(index, saved)


def _entries(root: str, paths: Sequence[str], index: str = "") -> dict[str, list[str]] | None:
    also = {"GIT_INDEX_FILE": index} if index else {}
    done = git.run(root, ["--literal-pathspecs", "ls-files", "-s", "-z", "--", *paths], "listing", also=also)
    if done.status != 0:
        return None
    found: dict[str, list[str]] = {}
    for row in os.fsdecode(done.output).split("\0"):
        entry, _, path = row.partition("\t")
        if path:
            found.setdefault(path, []).append(entry)
    return found


def _entries_changed(
    root: str, saved: str, held: Sequence[Held], calls: Sequence[Call], commits: Sequence[str]
) -> list[Notice]:
    """Say which entries of held paths changed, and put them back.

    Where HEAD moved, an entry that had no staged work is to be that of the new commit, or one of a conflict.

    Args:
        saved: The index of the last look.
        commits: Where HEAD was and where it is; empty where it did not move.
    """
    paths = [file.path for file in held]
    before, after = (_entries(root, paths, saved), _entries(root, paths)) if paths else (None, None)
    if before is None or after is None or before == after:
        return []
    wanted = before
    if commits:
        was, now = (_committed(root, commit, paths) for commit in commits)
        wanted = {path: now.get(path) if before.get(path) == was.get(path) else before.get(path) for path in paths}
    changed = [path for path in paths if wanted.get(path) != after.get(path)]
    if commits:
        changed = [path for path in changed if len(after.get(path, ())) < 2]
    if not changed:
        return []
    rows = [f"0 {'0' * 40}\t{path}" for path in changed]
    rows += [f"{entry}\t{path}" for path in changed for entry in wanted.get(path) or ()]
    data = os.fsencode("".join(f"{row}\0" for row in rows))
    done = git.run(root, [*_QUIETLY, "update-index", "-z", "--index-info"], "listing", data=data)
    how = "and were put back" if done.status == 0 else f"and git cannot put them back ({shown(done.why)})"
    holders, named = _holders(held, changed), some(changed, _MAX_NAMED)
    keys = {key_of(holder) for holder in holders}
    authors = [call.agent for call in calls if not call.paths and key_of(call.agent) not in keys]
    who = " and ".join(map(shown, holders))
    return [
        (holders, f"Entries of the index that are yours changed, {how}: {named}."),
        ([*dict.fromkeys(authors)], f"Your command changed entries of the index that {who} holds, {how}: {named}."),
    ]


def _committed(root: str, commit: str, paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the entries that some paths have in a commit, as the index has them."""
    done = git.run(root, ["--literal-pathspecs", "ls-tree", "-r", "-z", commit, "--", *paths], "listing")
    rows = (row.partition("\t") for row in os.fsdecode(done.output).split("\0") if row)
    return {path: [f"{facts.split(' ')[0]} {facts.split(' ')[2]} 0"] for facts, _, path in rows}


def _holders(held: Sequence[Held], paths: Collection[str]) -> list[str]:
    return list(dict.fromkeys(holder for file in held if file.path in paths for holder in file.holders))


def _moved(root: str, known: Mapping[str, str], seen: Mapping[str, str], held: Sequence[Held]) -> list[Notice]:
    """Return the messages to holders about another branch, or commits that change their paths."""
    if not held:
        return []
    where = f"in {shown(root)}, where you hold files"
    paths = [file.path for file in held]
    if known["head"] != seen["head"]:
        was, now = (shown(each["head"].removeprefix("refs/heads/")) for each in (known, seen))
        return [(_holders(held, paths), f"HEAD {where}, is {now} now; it was {was}. A commit goes there now.")]
    commits = [known["commit"], seen["commit"]]
    done = git.run(root, ["--literal-pathspecs", "diff", "--name-only", "-z", *commits, "--", *paths], "listing")
    changed = [path for path in os.fsdecode(done.output).split("\0") if path]
    text = f"The branch {where}, moved, which changes these there: {some(changed, _MAX_NAMED)}."
    return [(_holders(held, changed), text)] if changed else []


def stash_entries(common: str) -> dict[str, str]:
    """Return the entries of a repository's stash, the newest first: commit to message."""
    try:
        with open(os.path.join(common, "logs", "refs", "stash"), encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    rows = (line.partition("\t") for line in reversed(lines))
    return {facts.split(" ")[1]: message for facts, _, message in rows if facts.count(" ") >= 2}


def compare_stash(
    tx: VersionRows, root: str, common: str, calls: Sequence[Call], whose: WhoseChange, now: float
) -> list[Notice]:
    """Note whose the new entries are, and store again those that were taken from another agent.

    Nobody has to hold anything: an entry has its owner for as long as it is there.
    """
    seen, owned = stash_entries(common), tx.stash_entries(common)
    known: list[str] = json.loads(tx.value(f"stash {common}") or "null") or []
    if [*seen] == known:
        return []
    agents = {key_of(call.agent): call.agent for call in calls if not call.paths}
    for entry in seen.keys() - {*known}:
        if len(agents) == 1:
            tx.put_stash(common, entry, next(iter(agents.values())), seen[entry], now)
    notices: list[Notice] = []
    for entry in owned.keys() - seen.keys():
        owner, message = owned[entry]
        is_owners = key_of(owner) in agents and whose([owner], _changed_at(f"{common}/logs/refs/stash", now)) == "keep"
        if not agents or is_owners:
            tx.drop_stash(common, entry)
            continue
        done = git.run(root, [*_QUIETLY, "stash", "store", "-m", message, entry], "user")
        how = "and was stored again" if done.status == 0 else f"and cannot be stored again ({shown(done.why)})"
        notices.append(([owner, *agents.values()], f"A stash of {shown(owner)} was dropped, {how}: {shown(message)}."))
    tx.put_value(f"stash {common}", json.dumps([*stash_entries(common)]))
    return notices
