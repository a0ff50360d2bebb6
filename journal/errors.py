"""What can be wrong with a journal: the codes, what is found in a file, and the errors that a caller may catch."""

from pathlib import Path
from typing import Final

from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding
from interlock.core.rule import rules

_ALTERED: Final = (
    "The file was changed after it was written. Restore it from a copy, or move it aside and treat the run as unproven."
)
_DO_NOT_EDIT: Final = (
    "Lines were removed, repeated or moved. Restore the file from a copy; nothing but Journal.append may write it."
)

RULES: Final = rules({
    "JRN701": ("A line of the journal is canonical JSON.", _ALTERED),
    "JRN702": ("A line of the journal has the fields of an entry, each of its type.", _ALTERED),
    "JRN703": ("The hash of a line belongs to it.", _ALTERED),
    "JRN704": ("The lines of a run are numbered without a gap.", _DO_NOT_EDIT),
    "JRN705": ("A line follows the one before it in its run.", _DO_NOT_EDIT),
    "JRN706": ("A key is in a run once.", _DO_NOT_EDIT),
    "JRN707": (
        "The last line of the journal is whole.",
        ("If a writer was killed here, its next append moves the fragment to the .torn file beside the journal; "
        "otherwise the end was cut off: restore the file from a copy."),
    ),
    "JRN708": ("A line of the journal has a bounded length.", _ALTERED),
    "JRN711": (
        "A run whose head was kept is in the journal.",
        "The run was removed, or this is another journal. Check the path, then restore the file from a copy.",
    ),
    "JRN712": (
        "A run reaches the head that was kept of it.",
        "The end of the run was cut off. Restore the file from a copy.",
    ),
    "JRN713": (
        "A run holds the head that was kept of it.",
        "The run was rewritten after its head was taken. Restore the file from a copy.",
    ),
    "JRN714": (
        "A run ends with the head that was kept of it.",
        ("Lines were added after the head was taken. If the run went on since, or was taken up again, compare with the "
        "head that it has now; else somebody added them: restore the file from a copy."),
    ),
    "JRN721": (
        "The journal is a regular file that can be opened and locked.",
        "Check the path. The journal must be a regular file in a real folder, neither of them a symbolic link.",
    ),
    "JRN722": (
        "The journal is what was written to it.",
        "Stop every writer, then restore the file from a copy, or move it aside and start a new one.",
    ),
    "JRN723": (
        "A position in the journal is where a line of it ends.",
        "Read the journal from its beginning: it is shorter than it was, another file, or the position is of another.",
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
})  # fmt: skip
"""What must hold and what to do, for each code."""


def flaw(code: str, message: str, found: str, expected: str, run: str = "", line: int = 0) -> Finding:
    """Return one thing that is wrong with a journal file; its field is the run, empty when the line does not say.

    Line 0 is the whole file, or the end of a run.
    """
    return Finding(code, "error", run, message, found, expected, RULES[code].remedy, line)


class JournalError(InterlockError):
    """Base of what this package raises."""

    def __init__(self, code: str, message: str, *, path: Path, line: int = 0) -> None:
        super().__init__(message, RULES[code].remedy, code)
        if code == "JRN721":  # the system refused the path, not this package its arguments
            self.exit_code = Exit.SYSTEM
        self.path = path
        self.line = line

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{self.code} {place}: {self.message}\n  fix: {self.fix}"


class JournalConflict(JournalError):  # noqa: N818 - users see these names, as `kind` of an error
    """The key already belongs to another event of this run."""

    exit_code = Exit.CONFLICT


class JournalDamaged(JournalError):  # noqa: N818
    """The file is not what was written to it; nothing is appended to it any more."""

    exit_code = Exit.REFUSED


class JournalPositionLost(JournalError):  # noqa: N818
    """No line of the file ends at the position from which it was to be read on."""


class JournalRefused(JournalError):  # noqa: N818
    """The arguments or the path cannot be accepted; nothing was written."""


class JournalUnwritten(JournalError):  # noqa: N818
    """The operating system could not store the line; nothing was acknowledged."""

    exit_code = Exit.SYSTEM
