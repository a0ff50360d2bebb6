"""Why nothing was installed: one problem for each file, each with its place and what to do."""

from dataclasses import dataclass

from interlock.core.errors import InterlockError


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
