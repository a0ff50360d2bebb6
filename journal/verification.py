"""The verification of a journal file: every line that is not what was written, and every run that lost its end."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from interlock.core.finding import Finding
from interlock.journal import files
from interlock.journal.chain import Chain
from interlock.journal.errors import JournalError, flaw
from interlock.journal.line import Head, decode


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
        The problems; empty when the file is exactly what was written. What the file contains never raises.
    """
    path = Path(path)
    chain = Chain()
    problems: list[Finding] = []
    reached: dict[str, str] = {}
    """The hash of the line at the number of each head."""
    line = 0
    try:
        with files.open_for_reading(path) as (fd, size):
            end = files.whole(fd, size)
            for line, (offset, raw) in enumerate(files.read_lines(fd, 0, end), 1):
                entry = decode(raw)
                if isinstance(entry, Finding):
                    problems.append(entry._replace(line=line))
                    continue
                problem = chain.problem(entry, line)
                problems += [] if problem is None else [problem]
                # Also from a line that does not follow: what comes after is held to it, so that one cut is one problem.
                chain.adopt(entry, offset)
                if entry.run in heads and entry.seq == heads[entry.run].seq:
                    reached[entry.run] = entry.hash
            if end < size:
                found = f"{size - end} bytes without a newline"
                problems.append(flaw("JRN707", "the last line is not whole", found, "a newline", line=line + 1))
    except FileNotFoundError:
        return [flaw("JRN721", "there is no journal", "no file", str(path))]
    except JournalError as error:
        return [flaw("JRN721", error.message, str(path), "a regular file")]
    for run, head in heads.items():
        last = chain.heads.get(run, Head(0, ""))
        if reached.get(run) != head.hash:
            found = f"{last.seq} lines, with {reached.get(run, 'none')} at the head"
            problems.append(flaw("JRN712", "the run does not hold its head", found, f"seq {head.seq} {head.hash}", run))
        # That the head is in the run says that nothing before it changed; what may follow is for the caller to say.
        elif last.seq > head.seq and (exact if isinstance(exact, bool) else run in exact):
            found = f"ends at seq {last.seq}"
            problems.append(flaw("JRN714", "the run goes on after its head", found, f"seq {head.seq}", run))
    return problems
