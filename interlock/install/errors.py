"""Why nothing was installed: one problem for each file, each with its place and what to do."""

from typing import Final

from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.core.rule import rules

CODES: Final = rules({
    "INI101": ("A file that is changed can be read safely.", "Fix the file and run it again, or add the text by hand."),
    "INI102": ("What is changed in a file is Interlock's own.", "Rename or remove the other entry, and run it again."),
    "INI103": ("A file is what was written to it.", "Look at what changed it, then change it by hand."),
    "INI104": (
        "Files of the project are files of its own, and can be written.",
        "Replace the link, or make it writable.",
    ),
    "INI105": ("A template overwrites no file.", "Move the file aside, or change it by hand."),
})  # fmt: skip
"""What must hold for each code, and what to do."""


def file_problem(code: str, path: str, message: str, found: str, expected: str, fix: str) -> Finding:
    """Return one file that cannot be changed. Its fix may hold the text to paste by hand."""
    return Finding(code, "error", "", message, found, expected, fix, path=path)


class InstallError(InterlockError):
    """Nothing was written."""

    def __init__(self, problems: tuple[Finding, ...]) -> None:
        first = problems[0]
        super().__init__(first.message, first.fix, first.code)
        self.problems = problems
        self.path = first.location


class EditError(InterlockError):
    """A text cannot be edited; the caller knows the file.

    Attributes:
        finding: All of it.

    Line and column count from 1; line 0 is the whole text.
    """

    def __init__(self, code: str, message: str, found: str, expected: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message, "", code)
        self.finding = Finding(code, "error", "", message, found, expected, "", line, column)

    def of(self, path: str, fix: str) -> Finding:
        """Return the finding about a file, with what to do."""
        return self.finding._replace(path=path, fix=fix)
