"""Puts a held file back as its holder left it: its content, its kind, its permissions and the time of its last change.

Answers T1. By a new file beside it that is renamed, so that nobody reads half of it and a kill in the middle leaves the
one or the other; only where the file has further names (hard links) is it written in place, since these would keep what
was written. What stands in the way (a folder where the file was, a file or link where its folder was) is moved into
`aside`, and nothing is removed.
"""

import os
import stat
from contextlib import suppress

from interlock.reservations.versions.store import Seen, VersionRows


def put_back(root: str, path: str, good: Seen, tx: VersionRows, aside: str) -> str:
    """Make a path, below the top of its checkout, what it was; return where what stood in the way was moved, if any.

    Raises:
        OSError: It cannot be done: the disk is full, or the folder is not ours to write.
    """
    if good.kind == "gone":
        return _away(path, aside)
    if good.kind == "other":
        # A folder, a pipe or a device: what it was is not kept, so nothing is touched.
        return ""
    moved = _clear_way(root, path, aside)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(path) and not os.path.islink(path):
        moved = _away(path, aside)
    data = tx.content(good.digest)
    if good.kind == "link":
        with suppress(FileNotFoundError):
            os.unlink(path)
        os.symlink(os.fsdecode(data), path)
        return moved
    if _is_still(path, good):
        with open(path, "r+b") as file:
            file.write(data)
            file.truncate()
        os.chmod(path, good.mode)
    else:
        from interlock.core.files import write_atomically  # noqa: PLC0415 - few hooks put anything back

        write_atomically(path, data, chmod=good.mode, durable=False)
    os.utime(path, ns=(good.mtime_ns, good.mtime_ns))
    return moved


def _is_still(path: str, good: Seen) -> bool:
    """Return whether a file that has further names is there, and is the one that it was."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    is_same = good.mark.startswith(f"{found.st_dev} {found.st_ino} ")
    return is_same and stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and os.access(path, os.W_OK)


def _clear_way(root: str, path: str, aside: str) -> str:
    """Move away the outermost thing above a path that is no folder: held paths have no link among their folders."""
    above = root
    for part in os.path.relpath(os.path.dirname(path), root).split("/"):
        above = os.path.normpath(os.path.join(above, part))
        if above != root and os.path.lexists(above) and (os.path.islink(above) or not os.path.isdir(above)):
            return _away(above, aside)
    return ""


def _away(path: str, aside: str) -> str:
    if not os.path.lexists(path):
        return ""
    import shutil  # noqa: PLC0415 - only what stands in the way is moved

    os.makedirs(aside, mode=0o700, exist_ok=True)
    number = 0
    while os.path.lexists(target := os.path.join(aside, f"{os.path.basename(path)}-{number}")):
        number += 1
    return str(shutil.move(path, target))
