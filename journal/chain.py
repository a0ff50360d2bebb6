"""The chain of every run: what may follow what, checked one line at a time."""

from dataclasses import dataclass, field

from interlock.core.finding import Finding
from interlock.journal.errors import flaw
from interlock.journal.line import START, Entry, Head, Link, decode


@dataclass(slots=True)
class Chain:
    """Everything that must be remembered of the lines read so far.

    Runs come in order of first appearance; `offsets` has the byte offset of the line of each key, by run.
    """

    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    offsets: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    lines: int = 0

    def check(self, raw: bytes) -> tuple[Entry | None, list[Finding]]:
        """Read the next line and return everything that is wrong with it there; changes nothing.

        The entry is None when the bytes are no entry at all.
        """
        line = self.lines + 1
        entry = decode(raw)
        if isinstance(entry, Finding):
            return None, [entry._replace(line=line)]
        head, run = self.heads.get(entry.run, START), entry.run
        problems: list[Finding] = []
        if entry.seq != head.seq + 1:
            found, expected = f"seq {entry.seq}", f"seq {head.seq + 1}"
            problems.append(flaw("JRN704", "the run's numbers have a break", found, expected, run, line))
        if entry.prev != head.hash:
            message = "the line does not follow the run's line before"
            problems.append(flaw("JRN705", message, entry.prev, head.hash, run, line))
        if entry.key in self.offsets.get(run, ()):
            message = "the key is in the run twice"
            problems.append(flaw("JRN706", message, repr(entry.key), "a key of its own", run, line))
        return entry, problems

    def fits(self, line: Entry | Link) -> bool:
        """Return whether `check` would accept the line at its place in the run; its form is another matter."""
        head = self.heads.get(line.run, START)
        return (line.seq, line.prev) == (head.seq + 1, head.hash) and line.key not in self.offsets.get(line.run, ())

    def adopt(self, entry: Entry | Link | None, offset: int) -> None:
        """Go on from this line, which began at byte `offset`; None counts a line that is no entry."""
        self.lines += 1
        if entry is not None:
            self.heads[entry.run] = Head(entry.seq, entry.hash)
            self.offsets.setdefault(entry.run, {}).setdefault(entry.key, offset)
