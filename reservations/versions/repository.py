"""What a command did to the index, the stash and HEAD of a checkout in which others hold files.

Answers T1. Entries of held paths go back into the index, and an entry of the stash that was another agent's is stored
again; what the command's own agent staged stays staged. HEAD and branches are never moved back, for that would undo the
other's work: holders are told. Git's files are compared as they are; git itself runs only where one differs.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from zlib import crc32

from interlock.core import git
from interlock.reservations import place
from interlock.reservations.rules import shown, some
from interlock.reservations.store.records import key_of
from interlock.reservations.versions.look import Held
from interlock.reservations.versions.store import Call, VersionRows

Notice = tuple[Sequence[str], str]
"""Names of agents, and what each of them is told."""
WhoseChange = Callable[[Sequence[str], float], bool]
"""Whether a change at a time is that of others than some holders."""

_MAX_NAMED: Final = 8
_QUIETLY: Final = ("-c", f"core.hooksPath={os.devnull}")
"""Our own hooks of git would wait for the very look that calls git here."""


def compare(
    tx: VersionRows,
    folder: str,
    root: str,
    held: Sequence[Held],
    calls: Sequence[Call],
    is_theirs: WhoseChange,
    now: float,
) -> list[Notice]:
    """Compare a checkout with what it was at the last look, undo what can be undone, and return what holders are told.

    Args:
        folder: Where the index of the last look is kept.
        held: The held files of this checkout.
        calls: Those in flight since the last look.
    """
    git_dir = place.git_dir_of(root)
    known: Mapping[str, Any] = json.loads(tx.value(f"git {root}") or "{}")
    seen = {"head": place.head(root), "commit": place.commit_at(root), "index": _mark(f"{git_dir}/index")}
    saved = os.path.join(folder, "index", f"{crc32(os.fsencode(root)):08x}")
    notices: list[Notice] = []
    if known:
        theirs = [file for file in held if is_theirs(file.holders, _changed_at(f"{git_dir}/index", now))]
        has_moved = (known["head"], known["commit"]) != (seen["head"], seen["commit"])
        if has_moved:
            notices += _moved(root, known, seen, theirs)
        if known["index"] != seen["index"] and theirs and calls:
            notices += _put_entries_back(root, saved, theirs, calls, known["commit"] if has_moved else "")
            seen["index"] = _mark(f"{git_dir}/index")
    if known.get("index") != seen["index"] and held:
        _save(f"{git_dir}/index", saved)
    if seen != known:
        tx.put_value(f"git {root}", json.dumps(seen))
    return notices + _stash(tx, root, calls, now)


def has_moved(tx: VersionRows, root: str) -> bool:
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


def _put_entries_back(root: str, saved: str, held: Sequence[Held], calls: Sequence[Call], head: str) -> list[Notice]:
    """Put entries of held paths back; where HEAD was this commit and is another one, only what was staged."""
    paths = [file.path for file in held]
    before, after = _entries(root, paths, saved), _entries(root, paths)
    if before is None or after is None or before == after:
        return []
    changed = [path for path in paths if before.get(path) != after.get(path)]
    if head:
        clean = _committed(root, head, paths)
        changed = [path for path in changed if before.get(path) != clean.get(path)]
    if not changed:
        return []
    rows = [f"0 {'0' * 40}\t{path}" for path in changed]
    rows += [f"{entry}\t{path}" for path in changed for entry in before.get(path, ())]
    data = os.fsencode("".join(f"{row}\0" for row in rows))
    done = git.run(root, [*_QUIETLY, "update-index", "-z", "--index-info"], "listing", data=data)
    how = "and were put back" if done.status == 0 else f"and git cannot put them back ({shown(done.why)})"
    notices: list[Notice] = []
    for holder, names in _by_holder(held, changed).items():
        named = some(names, _MAX_NAMED)
        notices.append(([holder], f"Entries of the index that are yours changed, {how}: {named}."))
        authors = [call.agent for call in calls if not call.paths and key_of(call.agent) != key_of(holder)]
        text = f"Your command changed entries of the index that {shown(holder)} holds, {how}: {named}."
        notices.append(([*dict.fromkeys(authors)], text))
    return notices


def _committed(root: str, commit: str, paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the entries that some paths have in a commit, as the index has them."""
    done = git.run(root, ["--literal-pathspecs", "ls-tree", "-r", "-z", commit, "--", *paths], "listing")
    rows = (row.partition("\t") for row in os.fsdecode(done.output).split("\0") if row)
    return {path: [f"{facts.split(' ')[0]} {facts.split(' ')[2]} 0"] for facts, _, path in rows}


def _by_holder(held: Sequence[Held], paths: Iterable[str]) -> dict[str, list[str]]:
    wanted, found = {*paths}, dict[str, list[str]]()
    for file in held:
        for holder in file.holders if file.path in wanted else ():
            found.setdefault(holder, []).append(file.path)
    return found


def _moved(root: str, known: Mapping[str, str], seen: Mapping[str, str], held: Sequence[Held]) -> list[Notice]:
    """Return what holders are told of another branch, a HEAD that is no descendant, or a change to their paths."""
    if not held:
        return []
    was, now = (f"{each['head'].removeprefix('refs/heads/')} ({each['commit'][:9]})" for each in (known, seen))
    holders = list(dict.fromkeys(holder for file in held for holder in file.holders))
    where = f"in {shown(root)}, where you hold files"
    if known["head"] != seen["head"]:
        return [(holders, f"HEAD {where}, is {shown(now)} now; it was {shown(was)}. A commit goes there now.")]
    commits = [known["commit"], seen["commit"]]
    if not all(commits) or git.run(root, ["merge-base", "--is-ancestor", *commits], "listing").status != 0:
        return [(holders, f"The branch {where}, was moved to {shown(now)}, which does not come after {shown(was)}.")]
    paths = [file.path for file in held]
    done = git.run(root, ["--literal-pathspecs", "diff", "--name-only", "-z", *commits, "--", *paths], "listing")
    changed = [path for path in os.fsdecode(done.output).split("\0") if path]
    return [
        ([holder], f"Commits that arrived {where}, change what you hold: {some(names, _MAX_NAMED)}.")
        for holder, names in _by_holder(held, changed).items()
    ]


def stash_entries(common: str) -> dict[str, str]:
    """Return the entries of a repository's stash, the newest first: commit to message."""
    try:
        with open(os.path.join(common, "logs", "refs", "stash"), encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    rows = (line.partition("\t") for line in reversed(lines))
    return {facts.split(" ")[1]: message for facts, _, message in rows if facts.count(" ") >= 2}


def _stash(tx: VersionRows, root: str, calls: Sequence[Call], now: float) -> list[Notice]:
    """Note whose the new entries are, and store again those that were taken from another agent."""
    common = place.at(root).common
    seen, owners = stash_entries(common), tx.stash_owners(common)
    known: list[str] = json.loads(tx.value(f"stash {common}") or "null") or []
    if [*seen] == known:
        return []
    agents = {key_of(call.agent): call.agent for call in calls if not call.paths}
    for entry in seen.keys() - {*known}:
        if len(agents) == 1:
            tx.put_stash(common, entry, next(iter(agents.values())), seen[entry], now)
    notices: list[Notice] = []
    for entry in owners.keys() - seen.keys():
        owner, message = owners[entry], tx.stash_message(common, entry)
        if not agents or key_of(owner) in agents:
            tx.drop_stash(common, entry)
            continue
        done = git.run(root, [*_QUIETLY, "stash", "store", "-m", message, entry], "user")
        how = "and was stored again" if done.status == 0 else f"and cannot be stored again ({shown(done.why)})"
        notices.append(([owner, *agents.values()], f"A stash of {shown(owner)} was dropped, {how}: {shown(message)}."))
    tx.put_value(f"stash {common}", json.dumps([*stash_entries(common)]))
    return notices
