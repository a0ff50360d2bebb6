"""Why nothing was installed: one problem for each file, each with its place and what to do."""

from typing import Final

from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.core.rule import rules

CODES: Final = rules(
    {
        "INI101": (
            "A file that is changed is one of the project, and can be read and written safely.",
            "Fix the file or replace the link, and run it again, or add the text by hand.",
        ),
        "INI102": (
            "What is changed in a file is Interlock's own.",
            "Rename or remove the other entry, and run it again.",
        ),
        "INI103": ("A file is what was written to it.", "Look at what changed it, then change it by hand."),
        "INI105": ("A template overwrites no file.", "Move the file aside, or change it by hand."),
    }
)
"""What must hold for each code, and what to do."""


class InstallError(InterlockError):
    """Nothing was written.

    Attributes:
        problems: One for each file that cannot be changed; of a text, the caller adds the file and what to do.
    """

    def __init__(self, *problems: Finding) -> None:
        first = problems[0]
        super().__init__(first.message, first.fix, first.code)
        self.problems = problems
        self.path = first.location

    def about(self, path: str, fix: str) -> list[Finding]:
        """Return the problems of a file, with what to do."""
        return [each._replace(path=path, fix=fix) for each in self.problems]


def not_editable(code: str, message: str, found: str, expected: str, line: int = 0, column: int = 0) -> InstallError:
    """Return that a text cannot be edited. Line and column count from 1; line 0 is the whole text."""
    return InstallError(Finding(code, "error", "", message, found, expected, "", line, column))
