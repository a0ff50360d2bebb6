"""The chain of every run: what may follow what, checked one line at a time."""

from dataclasses import dataclass, field

from interlock.journal.errors import Problem
from interlock.journal.line import START, Entry, Flaw, Head, Link, decode


@dataclass(slots=True)
class Chain:
    """Everything that must be remembered of the lines read so far.

    Runs come in order of first appearance; `places` has the byte offset of the line of each key, by run.
    """

    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    places: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    lines: int = 0

    def check(self, raw: bytes) -> tuple[Entry | None, list[Problem]]:
        """Read the next line and say everything that is wrong with it there; changes nothing.

        The entry is None when the bytes are no entry at all.
        """
        line = self.lines + 1
        entry = decode(raw)
        if isinstance(entry, Flaw):
            return None, [Problem(line, entry.run, entry.code, entry.message, entry.found, entry.expected)]
        head, run = self.heads.get(entry.run, START), entry.run
        problems: list[Problem] = []
        if entry.seq != head.seq + 1:
            found, expected = f"seq {entry.seq}", f"seq {head.seq + 1}"
            problems.append(Problem(line, run, "JRN704", "the run's numbers have a break", found, expected))
        if entry.prev != head.hash:
            message = "the line does not follow the run's line before"
            problems.append(Problem(line, run, "JRN705", message, entry.prev, head.hash))
        if entry.key in self.places.get(run, ()):
            message = "the key stands in the run twice"
            problems.append(Problem(line, run, "JRN706", message, repr(entry.key), "a key of its own"))
        return entry, problems

    def fits(self, line: Entry | Link) -> bool:
        """Tell whether `check` would have nothing against the place of the line; its form is another matter."""
        head = self.heads.get(line.run, START)
        return (line.seq, line.prev) == (head.seq + 1, head.hash) and line.key not in self.places.get(line.run, ())

    def adopt(self, entry: Entry | Link | None, offset: int) -> None:
        """Go on from this line, which began at byte `offset`; None counts a line that is no entry."""
        self.lines += 1
        if entry is not None:
            self.heads[entry.run] = Head(entry.seq, entry.hash)
            self.places.setdefault(entry.run, {}).setdefault(entry.key, offset)
