"""What can be wrong with a journal: the codes, what is found in a file, and the error that a caller may catch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding
from interlock.core.rule import rules

RULES: Final = rules(
    {
        "JRN701": (
            "A line of the journal is as it was written: one entry, with its hash.",
            "The file was changed afterwards. Restore it from a copy, or move it aside and treat the run as unproven.",
        ),
        "JRN704": (
            "The lines of a run follow each other, numbered without a gap, each under a key of its own.",
            "Lines were removed, repeated or moved. Restore the file from a copy; only Journal.append may write it.",
        ),
        "JRN707": (
            "The last line of the journal is whole.",
            "After a killed writer the next append cuts the fragment off; otherwise restore the file from a copy.",
        ),
        "JRN712": (
            "A run holds the head that was kept of it.",
            "The run lost its end or was rewritten. Check the path, then restore the file from a copy.",
        ),
        "JRN714": (
            "A run ends with the head that was kept of it.",
            "Compare with the head that the run has now, if it went on since; else restore the file from a copy.",
        ),
        "JRN721": (
            "The journal is a regular file that can be opened and locked.",
            "Check the path. The journal must be a regular file, and no symbolic link.",
        ),
        "JRN722": (
            "The journal is what was written to it.",
            "Stop every writer, then restore the file from a copy, or move it aside and start a new one.",
        ),
        "JRN723": (
            "A position in the journal is where a line of it ends.",
            "Read the journal from its beginning: it is shorter than it was, or the position is of another file.",
        ),
        "JRN731": (
            "A key of a run belongs to one event.",
            "Give the new event a key of its own. A key belongs to one event of its run, for ever.",
        ),
        "JRN732": (
            "An event has a name, a key and data that the journal can keep.",
            "Correct the arguments. Put large content in a file and its digest in the event.",
        ),
        "JRN733": (
            "The journal can be written.",
            "Free some space or repair the disk, then repeat the append: nothing was acknowledged.",
        ),
        "JRN741": (
            "A copy of the journal is what the database has.",
            "Before the project moves: `interlock migrate --to ADDRESS`. Else move the file aside: it is copied anew.",
        ),
        "JRN742": (
            "A journal is put into a database that has no other lines.",
            "Name an empty database; or move the file aside, if the lines of the database are the right ones.",
        ),
    }
)
"""What must hold and what to do, for each code."""

# Not in this table are the codes of damage: they end with REFUSED.
_EXITS: Final[Mapping[str, Exit]] = {
    "JRN721": Exit.SYSTEM,
    "JRN733": Exit.SYSTEM,
    "JRN731": Exit.CONFLICT,
    "JRN723": Exit.USAGE,
    "JRN732": Exit.USAGE,
}
"""What a command exits with where the file is not found to be damaged."""


def flaw(code: str, message: str, found: str, expected: str, run: str = "", line: int = 0) -> Finding:
    """Return one thing that is wrong with a journal file; its field is the run, empty when the line does not say.

    Line 0 is the whole file, or the end of a run.
    """
    return Finding(code, "error", run, message, found, expected, RULES[code].remedy, line)


class JournalError(InterlockError):
    """The journal cannot be read or written, or is not what was written to it; its code says why."""

    def __init__(self, code: str, message: str, *, path: Path, line: int = 0) -> None:
        super().__init__(message, RULES[code].remedy, code)
        self.exit_code = _EXITS.get(code, Exit.REFUSED)
        self.path = path
        self.line = line

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{self.code} {place}: {self.message}\n  fix: {self.fix}"
