"""Reading and writing evidence files: one way in, one way out, both by file descriptor and inside `artifacts/`.

A path is only a way to find a file once. `read_evidence` follows no link, reads the descriptor that it checked, and
hashes those bytes; from then on the digest counts, so nothing that happens to the file later changes the verdict.

Layout: `artifacts/<key>/<TASK_ID>/<attempt>/<name>`, with the four EVIDENCE keys as `<key>`.
"""

import errno
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interlock.core.files import opened_beneath, read_beneath, write_in
from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.redaction import redactor_for

MAX_EVIDENCE_BYTES: Final = 64 * 1024 * 1024
"""So many bytes of evidence are read, of one file and of all that one answer cites."""

FOLDER: Final = "artifacts"


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """One evidence file as it was read: its path as cited, and the hex digest and length of the bytes."""

    path: str
    sha256: str
    size_bytes: int
    data: bytes


def path_finding(path: str) -> Finding | None:
    """Return what is wrong with the spelling of an evidence path; None when it may be looked up.

    Pure: the file system is not asked. Source: Strict Envelope §3 EVIDENCE ("a valid relative file path"). One file has
    one spelling, in characters of which none looks like another.
    """
    odd = next((char for char in path if not " " < char <= "~" or char == "\\"), None)
    if odd is not None:
        return _misspelt(path, f"holds the character U+{ord(odd):04X}")
    steps = path.split("/")
    if {"", ".", ".."}.isdisjoint(steps) and steps[0] == FOLDER and len(steps) > 1:
        return None
    return _misspelt(path, "is no plain path below `artifacts/`")


def outside_evidence(path: str) -> Finding:
    """Refuse a path that lies in none of the folders of evidence."""
    return _misspelt(path, "lies in no folder of evidence")


def read_evidence(root: str | Path, path: str) -> EvidenceFile | Finding:
    """Read one evidence file once, or return why it is refused: a finding without a place.

    Raises:
        NotADirectoryError, FileNotFoundError, PermissionError: The root itself cannot be opened.
    """
    refused = path_finding(path)
    if refused is not None:
        return refused
    # A root that is not there is the caller's fault and raises; below it, each error is a finding about the file.
    os.close(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        data = read_beneath(root, path, MAX_EVIDENCE_BYTES)
    except OSError as error:
        return _refusal(path, error)
    if not data:
        return rules.finding("EVD508", f"The evidence file {rules.quote(path)} is empty.", found="0 bytes")
    return EvidenceFile(path, hashlib.sha256(data).hexdigest(), len(data), data)


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


def _misspelt(path: str, what: str) -> Finding:
    shown = rules.quote(path)
    return rules.finding("EVD501", f"The evidence path {shown} {what}.", found=shown)


def _refusal(path: str, error: OSError) -> Finding:
    """Turn the reason why a file was not read into the finding that fits it."""
    shown, reason = rules.quote(path), error.strerror or str(error)
    match error.errno:
        case errno.ENOENT:
            return rules.finding("EVD508", f"The evidence file {shown} does not exist.", found="no such file")
        # `read_beneath` raises it for a file beyond the bound.
        case errno.EFBIG:
            expected = f"at most {MAX_EVIDENCE_BYTES} bytes"
            return rules.finding("EVD513", f"The evidence file {shown} is too large.", found=reason, expected=expected)
        case _:
            message = f"The evidence path {shown} leads to no plain file that can be read, or over a link."
            return rules.finding("EVD509", message, found=reason)
