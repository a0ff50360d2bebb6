"""The verification of a journal file: every line that is not what was written, and every run that lost its end."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from interlock.core.finding import Finding
from interlock.journal import files
from interlock.journal.chain import Chain
from interlock.journal.errors import JournalRefused, flaw
from interlock.journal.line import MAX_LINE_BYTES, Head

MAX_PROBLEMS: Final = 1000
"""Reading stops after so many problems: the file is no journal then."""


def verify(
    path: str | os.PathLike[str], heads: Mapping[str, Head], *, exact: bool | Collection[str] = True
) -> list[Finding]:
    """Read a whole journal and name everything that is wrong with it, in the order of the file.

    Every line is read in full, its form included. The lines alone prove that nothing in the middle of a run was
    changed, dropped, repeated or moved. That its end is still there, and that the run was not written anew, only a
    head kept elsewhere can prove. The order of lines of different runs is not part of the promise.

    Args:
        path: The journal.
        heads: The known end of each run, kept outside the journal.
        exact: Whether no run may go further than its head, or the names of those that may not. One that is still going
            on may.

    Returns:
        The problems, about a thousand at most; empty when the file is exactly what was written. What the file
        contains never raises.
    """
    path = Path(path)
    chain = Chain()
    try:
        problems, passed, edited = _read(path, chain, heads)
    except FileNotFoundError:
        return [flaw("JRN721", "there is no journal", "no file", str(path))]
    except JournalRefused as error:
        return [flaw("JRN721", error.message, str(path), "a regular file")]
    if len(problems) >= MAX_PROBLEMS:
        return problems
    for run, head in heads.items():
        is_exact = exact if isinstance(exact, bool) else run in exact
        problems += _head_problems(
            run, head, chain.heads.get(run), passed.get(run), exact=is_exact, edited=edited.get(run, 0)
        )
    return problems


def _read(path: Path, chain: Chain, heads: Mapping[str, Head]) -> tuple[list[Finding], dict[str, str], dict[str, int]]:
    """Check each line; also give the hash at the number of each head, and how many edited lines end each run."""
    problems: list[Finding] = []
    passed: dict[str, str] = {}
    edited: dict[str, int] = {}
    with files.open_for_reading(path) as (fd, size):
        for offset, raw in files.read_lines(fd, 0, size):
            if not raw.endswith(b"\n") and len(raw) <= MAX_LINE_BYTES:
                found = f"{len(raw)} bytes without a newline"
                message, line = "the last line is not whole", chain.lines + 1
                problems.append(flaw("JRN707", message, found, "a newline", line=line))
                break
            entry, flaws = chain.check(raw)
            problems += flaws
            chain.adopt(entry, offset)
            if entry is not None:
                edited.pop(entry.run, None)
            for row in flaws if entry is None else ():
                edited[row.field] = edited.get(row.field, 0) + (row.code == "JRN703")
            if len(problems) >= MAX_PROBLEMS:
                break
            if entry is not None and entry.run in heads and entry.seq == heads[entry.run].seq:
                passed[entry.run] = entry.hash
    return problems, passed, edited


def _head_problems(
    run: str, head: Head, last: Head | None, at_head: str | None, *, exact: bool, edited: int
) -> list[Finding]:
    if edited and (last.seq if last else 0) + edited >= head.seq > (last.seq if last else 0):
        return []  # the line at the head is there, and was edited; that is reported of the line
    if last is None:
        return [flaw("JRN711", "the run is not in the journal", "no line", f"{head.seq} lines", run)]
    if last.seq < head.seq or at_head is None:
        message = "the run is shorter than its head"
        return [flaw("JRN712", message, f"ends at seq {last.seq}", f"seq {head.seq}", run)]
    if at_head != head.hash:
        return [flaw("JRN713", f"seq {head.seq} is not the run's head", at_head, head.hash, run)]
    if exact and last != head:
        message = "the run goes on after its head"
        return [flaw("JRN714", message, f"ends at seq {last.seq}", f"seq {head.seq}", run)]
    return []
