"""The names that git's index holds, read from the file itself: formats 2, 3 and 4, SHA-1 and SHA-256, split or not.

Source: git's documentation, gitformat-index.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from interlock.gates.sealed.errors import SealError

_FIXED_BYTES: Final = 40
_FOLDER_MODE: Final = 0o040000
_MAX_BYTES: Final = 256 * 1024 * 1024


def tracked_names(worktree: Path) -> frozenset[str]:
    """Return the paths in the index of a worktree, relative to it; none without an index, `SEAL101` for a bad one."""
    folder = _git_folder(worktree)
    if folder is None:
        return frozenset()
    paths = [folder / "index", *sorted(folder.glob("sharedindex.*"))]
    return frozenset(name for path in paths if path.is_file() for name in _names(path))


def _git_folder(worktree: Path) -> Path | None:
    entry = worktree / ".git"
    try:
        if entry.is_dir():
            return entry
        text = entry.read_text("utf-8").strip()
    except (OSError, ValueError):
        return None
    return worktree / text.removeprefix("gitdir:").strip() if text.startswith("gitdir:") else None


def _names(path: Path) -> list[str]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError("it is larger than 256 MiB")  # noqa: TRY301 - reported below with the other reasons
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    for hash_bytes in (20, 32):
        try:
            return list(_entries(data, hash_bytes))
        except (ValueError, struct.error, IndexError):
            continue
    raise _damaged(path, "its format is unknown")


def _entries(data: bytes, hash_bytes: int) -> Iterator[str]:
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index of a known version")
    at, name = 12, b""
    for _ in range(count):
        start = at
        (mode,) = struct.unpack_from(">I", data, at + 24)
        (flags,) = struct.unpack_from(">H", data, at + _FIXED_BYTES + hash_bytes)
        at += _FIXED_BYTES + hash_bytes + (4 if flags & 0x4000 else 2)
        if version == 4:
            cut, at = _offset(data, at)
            end = data.index(b"\0", at)
            name = name[: len(name) - cut] + data[at:end]
            at = end + 1
        else:
            end = data.index(b"\0", at)
            name = data[at:end]
            at = start + (end - start + 8) // 8 * 8
        if mode & 0o170000 not in (0o100000, 0o120000, 0o160000, _FOLDER_MODE) or name.startswith(b"/"):
            raise ValueError("no entry of an index")
        if mode != _FOLDER_MODE:
            yield os.fsdecode(name)
    while at < len(data) - hash_bytes:  # the extensions
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    if at != len(data) - hash_bytes:
        raise ValueError("its hashes have another length")


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """Read the variable-width number of format 4; return it and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _damaged(path: Path, why: str) -> SealError:
    return SealError("SEAL101", f"The index {path} cannot be read: {why}.", "Run `git status` and repair it.")
