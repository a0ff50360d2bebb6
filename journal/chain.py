"""The chain of every run: what may follow what, checked one line at a time."""

from dataclasses import dataclass, field

from interlock.core.finding import Finding
from interlock.journal.errors import flaw
from interlock.journal.line import START, Entry, Head


@dataclass(slots=True)
class Chain:
    """What must be remembered of the lines read so far.

    Runs come in order of first appearance; `offsets` has the byte offset of the line of each key, by run.
    """

    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    offsets: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    def problem(self, entry: Entry, line: int = 0) -> Finding | None:
        """Return what is wrong with the place of an entry in its run; None where it follows what was read."""
        # The number is hashed too, but a gap is named more plainly by it than by two hashes that differ.
        head = self.heads.get(entry.run, START)
        found, expected = f"seq {entry.seq} after {entry.prev}", f"seq {head.seq + 1} after {head.hash}"
        if found != expected:
            message = "the line does not follow the run's line before"
            return flaw("JRN704", message, found, expected, entry.run, line)
        # Two lines under one key would let a step that runs again choose its facts.
        if entry.key in self.offsets.get(entry.run, ()):
            message = "the key is in the run twice"
            return flaw("JRN704", message, repr(entry.key), "a key of its own", entry.run, line)
        return None

    def adopt(self, entry: Entry, offset: int) -> None:
        """Go on from this line, which began at byte `offset`."""
        self.heads[entry.run] = Head(entry.seq, entry.hash)
        self.offsets.setdefault(entry.run, {}).setdefault(entry.key, offset)
