"""The export: a folder that holds exactly the base with the files in scope laid over it.

A plan says what the folder has to hold; `write_export` makes it so. Every file is hashed when it is written, and files
that are there already are read and hashed again, unless this process wrote them and their stamps are the same as then:
what the tested code leaves behind in an export never reaches the next gate.
"""

import os
import shutil
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.gates.patterns import compile_scope
from interlock.gates.sealed.base import FILE, LINK, PROGRAM, Base, Entry, is_entry, read_entry
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.inotify import mmap_sets_ctime
from interlock.gates.sealed.listing import Stamp, stamp_of
from interlock.gates.sealed.programs import settle
from interlock.gates.sealed.protect import Protection, above
from interlock.gates.sealed.store import Store
from interlock.gates.tree import left_out

BASE_TIME_NS: Final = 1_600_000_000 * 10**9
"""The time of change of every base file: no bytecode or build product can pass for that of a file laid over it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an export holds.

    Args:
        files: Path relative to the top to its entry.
        laid_over: Paths whose content comes from the checkout.
        removed: Base files in scope that the work removed.
        held_back: Files in scope, relative to the root, that the work changed, added or removed, and that keep their
            base content all the same.
        added: Files in scope that the base lacks, relative to the root.
    """

    base: Base
    files: Mapping[str, Entry]
    laid_over: frozenset[str]
    removed: tuple[str, ...]
    held_back: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def scope_digest(self) -> str:
        """`sha256:…` over what was laid over the base: paths, modes and contents."""
        digest = sha256(b"interlock.scope/1\0")
        for path in sorted(self.laid_over | set(self.removed)):
            entry = self.files.get(path, Entry("", ""))
            digest.update(f"{path}\0{entry.mode} {entry.sha256}\0".encode())
        return f"sha256:{digest.hexdigest()}"

    def without(self, added: Collection[str]) -> "Plan":
        """Return the plan without some of the added files, by their paths relative to the root."""
        inside = {self.base.inside(path) for path in added}
        files = {path: entry for path, entry in self.files.items() if path not in inside}
        kept = tuple(path for path in self.added if path not in added)
        return replace(self, files=files, laid_over=self.laid_over - inside, added=kept)


def plan_of(base: Base, present: Mapping[str, str], scope: Iterable[str], protection: Protection) -> Plan:
    """Return what the export of the present work holds; `present` is as `gates.tree.tree_files` lists the scope.

    `SEAL120` is raised where a file in scope lies where the base has a protected folder, or the other way round.
    """
    files, patterns = dict(base.files), compile_scope(scope)
    laid_over, removed, held_back, added = set[str](), list[str](), list[str](), list[str]()
    for path, value in present.items():
        mode, _, digest = value.partition(" ")
        inside = base.inside(path)
        before, now = base.files.get(inside), Entry(mode, digest)
        if not digest or before == now:
            continue
        if protection.holds(path, in_base=before is not None):
            held_back.append(path)
            continue
        files[inside] = now
        laid_over.add(inside)
        if before is None:
            added.append(path)
    for inside in base.files:
        path = base.outside(inside)
        if path is None or path in present or left_out(path) or not patterns.matches(path):
            continue
        if protection.holds(path, in_base=True):
            held_back.append(path)
        else:
            del files[inside]
            removed.append(inside)
    _no_shadow(files)
    return Plan(base, files, frozenset(laid_over), tuple(removed), tuple(sorted(held_back)), tuple(added))


_written: dict[str, dict[str, tuple[Stamp, Entry]]] = {}
"""By folder, what this process wrote or verified there: path to stamp and entry."""


def write_export(plan: Plan, folder: Path) -> None:
    """Make a folder hold exactly what a plan says, and nothing else.

    Raises:
        SealError: `SEAL110` the store was changed, `SEAL121` a file in scope changed meanwhile, `SEAL122` the folder
            cannot be written.
    """
    top = os.fspath(folder)
    try:
        known, store = _written.setdefault(top, {}), plan.base.store
        if os.path.islink(top):
            os.unlink(top)
        os.makedirs(top, mode=0o700, exist_ok=True)
        os.chmod(top, 0o700)
        folders = {parent for path in plan.files for parent in above(path)}
        there = _clear(plan, top, folders, known)
        for path in sorted(folders - there.keys(), key=len):
            os.mkdir(f"{top}/{path}", 0o755)
        for path, entry in plan.files.items():
            if path not in there:
                known[path] = (_write(plan, store, top, path, entry), entry)
    except OSError as error:
        message = f"The export {folder} cannot be written: {error.strerror}."
        raise SealError("SEAL122", message, "Free some disk space, and let nothing else write there.") from error


def add_to_export(plan: Plan, folder: Path, files: Mapping[str, tuple[bytes, bool]]) -> Plan:
    """Write more files into an export, in the place of whatever is in their way, and return the plan with them.

    `files`: path relative to the top, to content and whether it is a program.
    """
    entries = dict(plan.files)
    for path, (content, executable) in files.items():
        target = folder / path
        _clear_way(target)
        target.write_bytes(content)
        target.chmod(0o755 if executable else 0o644)
        if executable:
            settle(str(target))
        entries[path] = Entry(PROGRAM if executable else FILE, sha256(content).hexdigest())
        _written.setdefault(os.fspath(folder), {})[path] = (stamp_of(os.lstat(target)), entries[path])
    return replace(plan, files=entries)


def _clear_way(path: Path) -> None:
    for parent in reversed(path.parents):
        if parent.is_symlink() or parent.is_file():
            parent.unlink()
            break
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            os.unlink(path)


def folders_of(plan: Plan) -> set[str]:
    """Return the folders with files of a plan, and those around them up to the top, whose name is empty."""
    return {"", *(parent for path in plan.files for parent in above(path))} if plan.files else set()


def touched(plan: Plan, folder: Path, written: Collection[str] = ()) -> tuple[str, ...]:
    """Return the files of a plan that are not those that `write_export` wrote, also where the content is the same.

    What a process inside wrote has another time of change, which only the clock of the machine sets. Of `written` files
    the time says nothing: they are read, where the file system sets a time for most writes.
    """
    known, found = _written.get(os.fspath(folder), {}), list[str]()
    timed = mmap_sets_ctime(os.fspath(folder)) if written else True
    for path, entry in plan.files.items():
        stamp: Stamp | None = None
        with suppress(OSError):
            stamp = stamp_of(os.lstat(folder / path))
        same = path in known and known[path][0] == stamp
        if same and path in written:
            same = timed and is_entry(folder, path, entry)
        if not same:
            found.append(path)
    return tuple(found)


def forget(folder: Path, paths: Collection[str] | None = None) -> None:
    """Let files of a folder, or all in it, be read again before they count as what `write_export` wrote."""
    known = _written.get(os.fspath(folder), {})
    for path in [*known] if paths is None else paths:
        known.pop(path, None)


def unplanned(plan: Plan, folder: Path) -> list[str]:
    """Return the files in a folder that its plan does not have, sorted."""
    found = list[str]()
    for at, _, names in os.walk(folder):
        inside = os.path.relpath(at, folder)
        found += (path for name in names if (path := name if inside == "." else f"{inside}/{name}") not in plan.files)
    return sorted(found)


def _clear(plan: Plan, folder: str, folders: set[str], known: dict[str, tuple[Stamp, Entry]]) -> dict[str, bool]:
    """Remove what the plan does not name or what differs from it; return the paths that may stay."""
    there: dict[str, bool] = {}
    pending = [""]
    while pending:
        at = pending.pop()
        with os.scandir(f"{folder}/{at}") as entries:
            listed = list(entries)
        for item in listed:
            path = f"{at}{item.name}"
            if item.is_dir(follow_symlinks=False):
                if path in folders:
                    os.chmod(item.path, 0o755)  # noqa: S103 - an export is as readable as a checkout
                    there[path] = True
                    pending.append(f"{path}/")
                else:
                    remove_tree(item.path)
                continue
            entry = plan.files.get(path)
            if entry is not None and _holds(item, path, entry, known, base=path not in plan.laid_over):
                there[path] = True
            else:
                os.unlink(item.path)
                known.pop(path, None)
    return there


def _holds(
    item: os.DirEntry[str], path: str, entry: Entry, known: dict[str, tuple[Stamp, Entry]], *, base: bool
) -> bool:
    """Return whether a file of the export is what it has to be."""
    status = item.stat(follow_symlinks=False)
    stamp = stamp_of(status)
    if (status.st_mtime_ns == BASE_TIME_NS) != base and entry.mode != LINK:
        return False
    if known.get(path) == (stamp, entry):
        return True
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        return False
    if is_entry(Path(item.path).parent, item.name, entry):
        known[path] = (stamp, entry)
        return True
    return False


def _write(plan: Plan, store: Store, folder: str, path: str, entry: Entry) -> Stamp:
    base = path not in plan.laid_over
    data = store.object(entry.sha256) if base else _present(plan, path, entry)
    target = f"{folder}/{path}"
    if entry.mode == LINK:
        os.symlink(os.fsdecode(data), target)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(target, flags, 0o755 if entry.mode == PROGRAM else 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        if entry.mode == PROGRAM:
            settle(target)
        if base:
            os.utime(target, ns=(BASE_TIME_NS, BASE_TIME_NS))
    return stamp_of(os.lstat(target))


def _present(plan: Plan, path: str, entry: Entry) -> bytes:
    """Return the content of a file in scope, which must still be the one that was listed."""
    with suppress(SealError):
        found, data = read_entry(plan.base.top, path)
        if found == entry:
            return data
    raise SealError(
        "SEAL121",
        f"{path!r} changed while the gate ran.",
        "Let nothing change the files in scope until the gate has ended, and hand over again.",
    )


def _no_shadow(files: Mapping[str, Entry]) -> None:
    """Refuse a tree in which one path is both a file and a folder."""
    for path in files:
        for parent in above(path):
            if parent in files:
                raise SealError(
                    "SEAL120",
                    f"{parent!r} is a file now, and the gate needs the folder of {path!r}.",
                    f"Restore the folder {parent!r}, or list {path!r} in `may_change` of the task.",
                )


def remove_tree(path: str) -> None:
    """Remove a folder that tested code made, whatever modes it gave it."""
    os.chmod(path, 0o700)
    for folder, inside, _ in os.walk(path):
        for name in inside:
            if not os.path.islink(f"{folder}/{name}"):
                os.chmod(f"{folder}/{name}", 0o700)
    shutil.rmtree(path)
