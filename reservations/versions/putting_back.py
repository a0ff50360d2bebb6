"""Puts a held file back as its holder left it: its content, its kind, its permissions and the time of its last change.

Answers T1. By a new file beside it that is renamed, so that nobody reads half of it and a kill in the middle leaves the
one or the other. A further name of the file (a hard link) keeps what was written. What stands in the way (a folder
where the file was, a file or link where its folder was) is moved into `aside`, and nothing is removed.
"""

import os
from contextlib import suppress

from interlock.reservations.versions.store import Seen, VersionRows


def put_back(root: str, path: str, good: Seen, tx: VersionRows, aside: str) -> None:
    """Make a path, below the top of its checkout, what it was.

    Raises:
        OSError: It cannot be done: the disk is full, or the folder is not ours to write.
    """
    if good.kind == "gone":
        _away(path, aside)
    if good.kind not in ("file", "link"):
        # Of a folder, a pipe or a device nothing is kept, so nothing is touched.
        return
    _clear_way(root, path, aside)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(path) and not os.path.islink(path):
        _away(path, aside)
    data = tx.content(good.digest)
    if good.kind == "link":
        with suppress(FileNotFoundError):
            os.unlink(path)
        os.symlink(os.fsdecode(data), path)
        return
    from interlock.core.files import write_atomically  # noqa: PLC0415 - few hooks put anything back

    write_atomically(path, data, chmod=good.mode, durable=False)
    os.utime(path, ns=(good.mtime_ns, good.mtime_ns))


def _clear_way(root: str, path: str, aside: str) -> None:
    """Move away the outermost thing above a path that is no folder: held paths have no link among their folders."""
    above = root
    for part in os.path.relpath(os.path.dirname(path), root).split("/"):
        above = os.path.normpath(os.path.join(above, part))
        if above != root and os.path.lexists(above) and (os.path.islink(above) or not os.path.isdir(above)):
            _away(above, aside)
            return


def _away(path: str, aside: str) -> None:
    if not os.path.lexists(path):
        return
    import shutil  # noqa: PLC0415 - only what stands in the way is moved

    os.makedirs(aside, mode=0o700, exist_ok=True)
    number = 0
    while os.path.lexists(target := os.path.join(aside, f"{os.path.basename(path)}-{number}")):
        number += 1
    shutil.move(path, target)
