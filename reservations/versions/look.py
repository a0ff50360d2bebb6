"""One look: which files are held, by whom, and which of them are not as they were at the last one.

Answers T1. A file costs one `lstat`; its content is read only where that differs, or where it was changed so shortly
before the last look that a second change would have the same time. No git process runs, but for a lease on a folder or
with wildcards: there git lists what differs from its last commit, is new or ignored, since only that is unsaved.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from interlock.core import git
from interlock.core.patterns import Pattern, canonical, matches
from interlock.core.record import Record
from interlock.reservations import place
from interlock.reservations.errors import ReservationError
from interlock.reservations.store.records import Lease, key_of, replace
from interlock.reservations.versions.store import MAX_FILE_BYTES, Seen, VersionRows, over_bound

GONE: Final = Seen("gone")
MAX_LISTED: Final = 5000
"""At most this many unsaved files under one pattern are kept."""
_RACE_NS: Final = 50_000_000


class Held(Record):
    """A held file, by the checkout that its holders work in, and who they are."""

    root: str
    path: str
    holders: tuple[str, ...]

    @property
    def place(self) -> str:
        """Its absolute path."""
        return os.path.join(self.root, self.path)


def held_files(
    leases: Iterable[tuple[place.Place, Lease]], known: Iterable[tuple[str, str]], me: str
) -> dict[tuple[str, str], Held]:
    """Return the files under leases, by checkout and path; `known` are those of the last look.

    A file that was looked at stays so for as long as a lease of its project covers it, wherever its holder works now.

    Args:
        me: The key of who looks: what is over the bound stops others, and never its holder.
    """
    found: dict[tuple[str, str], dict[str, None]] = {}
    rows = [(project, lease, canonical(lease.pattern)) for project, lease in leases]
    for project, lease, pattern in rows:
        root = lease.root or project.root
        names: Iterable[str] = ()
        if isinstance(pattern, Pattern):
            names = _named(root, pattern) if pattern.literal else _listed(root, project, pattern)
        try:
            for name in names:
                found.setdefault((root, name), {})[lease.agent] = None
        except ReservationError:
            if key_of(lease.agent) != me:
                raise
    for root, name in {*known} - found.keys():
        for project, lease, pattern in rows:
            is_there = lease.root == root or _is_of(project, root)
            if is_there and isinstance(pattern, Pattern) and matches(pattern, name):
                found.setdefault((root, name), {})[lease.agent] = None
    return {key: Held(*key, tuple(sorted(holders))) for key, holders in found.items()}


def _is_of(project: place.Place, root: str) -> bool:
    """Return whether a checkout is one of a project; one that is gone counts as that above it."""
    if os.path.isdir(root):
        return place.at(root).store_path == project.store_path
    return place.inside(project.root, root)


def _named(root: str, pattern: Pattern) -> Iterator[str]:
    name = pattern.path
    if not os.path.isdir(os.path.join(root, name)) or os.path.islink(os.path.join(root, name)):
        yield name


def _listed(root: str, project: place.Place, pattern: Pattern) -> Iterator[str]:
    """Yield what is unsaved under a pattern; nothing outside of git, and where the checkout is gone."""
    if not project.common or not place.head(root):
        return
    prefix = pattern.prefix
    arguments = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored=traditional"]
    done = git.run(root, ["--literal-pathspecs", *arguments, *(["--", prefix] if prefix else [])], "listing")
    if done.status != 0:
        message = f"What is unsaved under {pattern.text} is not known: git {done.why or 'did not answer'}."
        raise over_bound(message, "Run `git status` by hand, and repair what it says.")
    paths = [name[3:] for name in os.fsdecode(done.output).split("\0") if name]
    # Ignored folders are there with a slash at their end: what is built and installed is nobody's work.
    rows = [path for path in paths if not path.endswith("/") and matches(pattern, path)]
    if len(rows) > MAX_LISTED:
        raise over_bound(
            f"{len(rows)} unsaved files are held as {pattern.text}, and at most {MAX_LISTED} are kept.",
            "Let the holder reserve the files that it edits in place of the folder, or commit them.",
        )
    yield from rows


def changed(
    held: Mapping[tuple[str, str], Held],
    known: Mapping[tuple[str, str], tuple[Seen, tuple[str, ...]]],
    tx: VersionRows,
    since: float,
    me: str,
) -> Iterator[tuple[Held, Seen, Seen | None]]:
    """Yield each held file that is not as it was: what it is now, and what it was, None for one that is held anew.

    What is there now is kept. `since` is when the last look was; `me`: see `held_files`.
    """
    for key, file in held.items():
        before, holders = known.get(key, (None, ()))
        try:
            now = see(file.place, tx, before, since)
        except ReservationError:
            if me not in map(key_of, file.holders):
                raise
            continue
        if before is None or holders != file.holders:
            yield file, now, None
        elif not now.is_same(before):
            yield file, now, before
        elif now.mark != before.mark:
            tx.put_file(*key, now, file.holders)


def see(path: str, tx: VersionRows, before: Seen | None = None, since: float = 0.0) -> Seen:
    """Return what is at a path now, and keep its content.

    Raises:
        ReservationError: It is too large to be kept.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    mark = f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_mode}"
    is_old = found.st_ctime_ns + _RACE_NS < since * 1e9
    if before is not None and before.mark == mark and is_old:
        return before
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return Seen("link", tx.keep(os.fsencode(os.readlink(path))), 0o777, found.st_mtime_ns, mark)
    if not stat.S_ISREG(found.st_mode):
        return Seen("other", "", mode, found.st_mtime_ns, mark)
    if found.st_size > MAX_FILE_BYTES:
        raise over_bound(
            f"{path} is held and has {found.st_size} bytes; at most {MAX_FILE_BYTES} are kept.",
            "Let its holder commit and release it, or keep it outside of the checkout.",
        )
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except PermissionError:
        # Its owner may have taken the right to read away; the content is still known.
        return replace(before, mode=mode, mark=mark) if before is not None else Seen("other", "", mode, 0, mark)
    except FileNotFoundError:
        return GONE
    return Seen("file", tx.keep(data), mode, found.st_mtime_ns, mark)
