"""The one base of every error that leaves a package, and what a command exits with."""

from enum import IntEnum
from typing import Any, Final


class Exit(IntEnum):
    """Exit codes of every command."""

    GOOD = 0
    REFUSED = 1
    USAGE = 2
    WAITING = 3
    CONFLICT = 5
    # 70 and 74 are those of `sysexits.h`: a fault of the software, and of input or output.
    INTERNAL = 70
    SYSTEM = 74


MEANINGS: Final = {
    Exit.GOOD: "The command did what it was asked; a run is APPROVED, an answer valid, a check passed.",
    Exit.REFUSED: "A rule refused it; a run is BLOCKED, an answer not valid, a gate not passed.",
    Exit.USAGE: "The call, the task or the configuration is wrong, or an agent could not be asked.",
    Exit.WAITING: "A run waits for an answer.",
    Exit.CONFLICT: "Another agent is in the way, or another process drives the run.",
    Exit.INTERNAL: "A defect of Interlock.",
    Exit.SYSTEM: "The system refused: the disk is full, a permission is missing, the database cannot be used.",
    # A shell reports 128 and the number of the signal: SIGINT is 2, SIGPIPE 13.
    130: "Stopped by Ctrl-C; a run is kept.",
    141: "Stopped because nobody reads the output; a run is kept.",
}
"""What each exit code of a command means."""


class InterlockError(Exception):
    """An error that says what to do about it.

    Args:
        message: What is wrong, in one sentence, with the place.
        fix: What to do, in the imperative.
        code: Stable code; by default that of the class.

    Attributes:
        exit_code: What a command that ends with this error exits with. The agent's text and a conflict of agents have
            their own; the user's call or configuration is `Exit.USAGE`, the disk or a database `Exit.SYSTEM`, a defect
            of Interlock `Exit.INTERNAL`.
        problems: Everything that was found, where there is more than the message: findings, or texts.
    """

    code: str = "INT900"
    exit_code: Exit = Exit.USAGE
    problems: tuple[Any, ...] = ()

    def __init__(self, message: str, fix: str, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        if code:
            self.code = code
