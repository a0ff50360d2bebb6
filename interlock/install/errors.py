"""Why nothing was installed: one problem for each file, each with its place and what to do."""

from dataclasses import dataclass
from typing import Final

from interlock.core.errors import InterlockError
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


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that cannot be changed.

    Args:
        code: Stable code: `INI101` the file cannot be edited safely, `INI102` what stands there is not ours to change,
            `INI103` the file is not what was written, `INI104` the file system refuses,
            `INI105` the file of a template is there.
        path: The file, relative to the root, with the line where there is one: `.mcp.json:3:5`.
        message: What is wrong, one sentence.
        found: What stands there.
        expected: What should.
        fix: What to do, in the imperative; may hold the text to paste by hand.
    """

    code: str
    path: str
    message: str
    found: str
    expected: str
    fix: str

    def __str__(self) -> str:
        """Return place, message and fix on one line."""
        return f"{self.path}: {self.message} {self.fix}"


class InstallError(InterlockError):
    """Nothing was written.

    Args:
        problems: Every problem found, at least one.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        super().__init__(first.message, first.fix, first.code)
        self.problems = problems
        self.path = first.path


class EditError(Exception):
    """A text cannot be edited; the caller knows the file.

    Args:
        code: As in `Problem`.
        message: What is wrong, one sentence.
        found: What stands there.
        expected: What should.
        line: The line, from 1; 0 for the whole text.
        column: The column, from 1.
    """

    def __init__(self, code: str, message: str, found: str, expected: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.found = found
        self.expected = expected
        self.line = line
        self.column = column
