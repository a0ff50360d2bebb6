"""Verifying the journal of a root against the heads that checkpoints keep and those that a person kept."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from interlock.graph.errors import GraphError
from interlock.graph.runs import known_heads
from interlock.graph.store import journal_path
from interlock.journal import FIXES, Head, Journal, JournalDamaged, Problem, verify


class HeadError(GraphError):
    """A head on the command line is not one."""

    code = "RUN606"


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification found.

    Args:
        path: The journal.
        problems: Everything wrong with it, in the order of the file.
        lines: How many lines it has.
        runs: How many runs it holds.
        heads: How many heads it was held against.
    """

    path: str
    problems: tuple[Problem, ...]
    lines: int
    runs: int
    heads: int

    def fix(self, problem: Problem) -> str:
        """Return what to do about a problem."""
        return FIXES[problem.code]

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        problems = [asdict(problem) | {"fix": self.fix(problem)} for problem in self.problems]
        return {
            "schema": "interlock.verification/1",
            "path": self.path,
            "ok": not problems,
            "lines": self.lines,
            "runs": self.runs,
            "heads": self.heads,
            "problems": problems,
        }


def parse_head(text: str) -> tuple[str, Head]:
    """Read `RUN:SEQ:HASH` as printed at the end of a run.

    Raises:
        HeadError: The text is not a head.
    """
    run, _, rest = text.partition(":")
    number, _, digest = rest.partition(":")
    if not run or not number.isdecimal() or len(digest) != 64:
        raise HeadError(f"`{text[:120]}` is not a head", "Give RUN:SEQ:HASH as the end of the run printed it.")
    return run, Head(int(number), digest)


def verify_journal(root: Path, heads: Iterable[tuple[str, Head]] = ()) -> Verification:
    """Check every line of the journal below a root.

    A finished or interrupted run may go on after the head of its checkpoint, so those heads pin what must be there;
    a head given by hand pins it too.
    """
    path = journal_path(root)
    kept = known_heads(root)
    given = dict(heads)
    problems = verify(path, {**kept, **given}, exact=False)
    if given and kept:
        problems += [item for item in verify(path, kept, exact=False) if item not in problems]
    journal = Journal(path)
    lines = runs = 0
    try:
        lines, runs = sum(1 for _ in journal.entries()), len(journal.runs())
    except JournalDamaged:
        lines = path.read_bytes().count(b"\n")
    return Verification(str(path), tuple(problems), lines, runs, len(kept | given))
