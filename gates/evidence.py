"""Reading and writing evidence files: one way in, one way out, both by file descriptor and inside `artifacts/`.

A path is only a way to find a file once. `read_evidence` walks it step by step without following a link, reads the
bytes of the descriptor that it checked, and hashes those bytes; from then on the digest counts.

Layout: `artifacts/<key>/<TASK_ID>/<attempt>/<name>`, with the four EVIDENCE keys as `<key>`.
"""

import errno
import hashlib
import os
import stat
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.core.files import opened_beneath, write_in
from interlock.core.finding import Finding, FindingError
from interlock.gates import rules
from interlock.redaction import redactor_for

MAX_EVIDENCE_BYTES: Final = 64 * 1024 * 1024
"""No evidence file may be larger, unless the caller says so."""

FOLDER: Final = "artifacts"
PARTS: Final = "**/.*.part"
"""Evidence that is being written: it may be gone with the next look."""

_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a character device"),
)


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """One evidence file as it was read: its path as cited, and the hex digest and length of the bytes."""

    path: str
    sha256: str
    size_bytes: int
    data: bytes


def path_finding(path: str) -> Finding | None:
    """Return what is wrong with the spelling of an evidence path; None when it may be looked up.

    Pure: the file system is not asked. Source: Strict Envelope §3 EVIDENCE ("a valid relative file path"), §3 of the
    layout for the characters.
    """
    shown = rules.quote(path)
    odd = next((c for c in path if not (" " < c <= "~")), None)
    if odd is not None:
        name = rules.name_character(odd)
        return rules.finding("EVD506", f"The evidence path {shown} holds {name}.", found=name)
    parts, inside = path.split("/"), path.find(f"/{FOLDER}/") + 1
    rows = (
        ("EVD505", "\\" in path, "holds a backslash", path.replace("\\", "/")),
        ("EVD501", path.startswith(("/", "~")) or ":/" in path, "is absolute", path[inside:] if inside else ""),
        ("EVD502", ".." in parts, "has a `..` step", ""),
        ("EVD503", "." in parts, "has a `.` step", "/".join(part for part in parts if part != ".")),
        ("EVD504", "" in parts, "has an empty step", "/".join(part for part in parts if part)),
        ("EVD507", parts[0] != FOLDER or len(parts) < 2, "lies outside `artifacts/`", ""),
    )
    return next((_spelling(code, path, found, better) for code, wrong, found, better in rows if wrong), None)


def outside_evidence(path: str) -> Finding:
    """Refuse a path that lies in none of the folders of evidence."""
    return _spelling("EVD507", path, "lies in no folder of evidence")


def read_evidence(root: str | Path, path: str, *, max_bytes: int = MAX_EVIDENCE_BYTES) -> EvidenceFile | Finding:
    """Read one evidence file once, or return why it is refused: a finding (`EVD501` to `EVD516`) without a place.

    Every step from the root, which may itself be a link, is opened relative to the step before it, without following
    links; kind, links and size are those of the open descriptor; the digest is of the bytes that were read.

    Raises:
        NotADirectoryError, FileNotFoundError, PermissionError: The root itself cannot be opened.
    """
    refused = path_finding(path)
    if refused is not None:
        return refused
    *folders, name = path.split("/")
    with ExitStack() as stack:
        try:
            at = _opened(stack, os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            for folder in folders:
                at = _opened(stack, _step(at, folder, path, _DIRECTORY_FLAGS))
            descriptor = _opened(stack, _step(at, name, path, _FILE_FLAGS))
            return _read(descriptor, path, max_bytes)
        except FindingError as refusal:
            return refusal.finding


def write_evidence(root: str | Path, path: str, data: bytes) -> EvidenceFile:
    """Write one evidence file whole or not at all, making its folders.

    Keys of the environment are taken out first: a page, a test or a collector may print them. Digest and data of the
    answer are those of what is kept.

    Raises:
        ValueError: The path is not one that `read_evidence` would accept.
        OSError: The file system refuses, a folder that is a link included.
    """
    refused = path_finding(path)
    if refused is not None:
        raise ValueError(refused.message)
    data = redactor_for(root).data(data)
    *folders, name = path.split("/")
    with opened_beneath(root, folders, make=True) as at:
        write_in(at, name, data)
    return EvidenceFile(path, hashlib.sha256(data).hexdigest(), len(data), data)


def _spelling(code: str, path: str, found: str, better: str = "") -> Finding:
    """Make the finding of a misspelt path, with the path that was probably meant where it is known."""
    shown = rules.quote(path)
    fix = (
        f"Cite a file that is there, by its path from `{FOLDER}/` on; one that lies elsewhere is copied first. "
        "Else take the entry out, and its gates out of GATES_PASSED."
    )
    fix = f"Cite it as {rules.quote(better)}." if better else fix
    return rules.finding(code, f"The evidence path {shown} {found}.", found=shown, fix=fix)


def _opened(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _step(at: int, name: str, path: str, flags: int) -> int:
    """Open one name below an open directory, or refuse with the reason that the file system shows."""
    _check_spelling_on_disk(at, name, path)
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        raise FindingError(_why_not_opened(at, name, path, error)) from error


def _check_spelling_on_disk(at: int, name: str, path: str) -> None:
    """Refuse a name whose directory holds it under another case or normal form, or under two of them.

    A file system that folds names opens `Shot.png` for `shot.png`; elsewhere they are two files. Either way a
    citation that means one file on one machine and another on the next is no evidence.
    """
    folded = name.casefold()
    try:
        entries = os.listdir(at)
    except OSError as error:
        raise FindingError(_unreadable(path, error)) from error
    twins = [entry for entry in entries if entry != name and _fold(entry) == folded]
    if twins:
        other = rules.quote(min(twins))
        both = name in entries
        raise FindingError(
            rules.finding(
                "EVD514",
                f"{rules.quote(name)} in {rules.quote(path)} differs from {other} only by case or Unicode form.",
                found=f"both {rules.quote(name)} and {other}" if both else other,
                expected="one name, spelt as the directory spells it",
                fix=f"Remove or rename {other}, then cite the file that is left." if both else f"Cite {other} instead.",
            )
        )


def _fold(entry: str) -> str:
    """Bring a directory entry to the form in which names are compared; ASCII needs no tables."""
    if entry.isascii():
        return entry.lower()
    import unicodedata  # noqa: PLC0415 - a megabyte of tables that ASCII names never need

    return unicodedata.normalize("NFKC", entry).casefold()


def _why_not_opened(at: int, name: str, path: str, error: OSError) -> Finding:
    """Turn the system's refusal into the finding that fits what is there."""
    shown = rules.quote(path)
    if error.errno == errno.ENOENT:
        message, found = f"The evidence file {shown} does not exist.", f"no entry {rules.quote(name)}"
        return rules.finding("EVD508", message, found=found)
    try:
        mode = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    except OSError:
        return _unreadable(path, error)
    if stat.S_ISLNK(mode):
        message = f"{rules.quote(name)} in {shown} is a symbolic link."
        return rules.finding("EVD509", message, found="a symbolic link")
    if error.errno in {errno.ENOTDIR, errno.ENXIO, errno.ENODEV}:
        return _wrong_kind(path, mode)
    return _unreadable(path, error)


def _wrong_kind(path: str, mode: int) -> Finding:
    """Refuse what is no regular file (or, on the way, no directory)."""
    kind = next((text for test, text in _KINDS if test(mode)), "a file where a folder should be")
    return rules.finding("EVD511", f"The evidence path {rules.quote(path)} leads to {kind}.", found=kind)


def _unreadable(path: str, error: OSError) -> Finding:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return rules.finding("EVD516", f"The evidence file {rules.quote(path)} cannot be read: {reason}.", found=reason)


def _read(descriptor: int, path: str, max_bytes: int) -> EvidenceFile | Finding:
    """Check the open file, read it, and make sure that it held still."""
    shown = rules.quote(path)
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        return _wrong_kind(path, before.st_mode)
    if before.st_nlink != 1:
        message = f"The evidence file {shown} has {before.st_nlink} names (hard links)."
        return rules.finding("EVD510", message, found=f"{before.st_nlink} links")
    if before.st_size == 0:
        return rules.finding("EVD512", f"The evidence file {shown} is empty.", found="0 bytes")
    if before.st_size > max_bytes:
        message = f"The evidence file {shown} is larger than {max_bytes} bytes."
        found = f"{before.st_size} bytes"
        return rules.finding("EVD513", message, found=found, expected=f"at most {max_bytes} bytes")
    try:
        data = os.read(descriptor, before.st_size + 1)  # a regular file comes whole, or it is refused below
    except OSError as error:
        return _unreadable(path, error)
    after = os.fstat(descriptor)
    if len(data) != before.st_size or _identity(before) != _identity(after):
        found = f"{before.st_size} bytes before, {after.st_size} bytes after, or a new change time"
        return rules.finding("EVD515", f"The evidence file {shown} changed while it was read.", found=found)
    return EvidenceFile(path, hashlib.sha256(data).hexdigest(), len(data), data)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """Return what must stay the same while a file is read."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink)
