"""Refusals of the tools, and the arguments that they are made of: the rules are a table."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from interlock.agents.ask import RunnerError
from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.core.rule import rules
from interlock.core.text import shown

Answer: TypeAlias = dict[str, Any]

MAX_FILE_BYTES: Final = 1024 * 1024
"""A larger file is neither read nor written as text."""
TEXT_FILE: Final = f"UTF-8, at most {MAX_FILE_BYTES} bytes"

# The numbers have gaps: the code of a rule that went is never used again.
RULES: Final = rules(
    {
        "AGT911": (
            "A path leads to a plain file below the root, relative to it, through plain folders.",
            "Write it like `src/app.py`: not absolute, without `..`; no link, which could lead out of the project.",
        ),
        "AGT913": (
            "A path lies in the scope of the task; git's and Interlock's own files never do.",
            "The scope is what the task asks for and what is reserved. Work inside it; say what it lacks.",
        ),
        "AGT915": (
            "A file is UTF-8 text of a bounded size, or a PNG or JPEG that decodes.",
            "Read or write a smaller part; what is binary is made by a command.",
        ),
        "AGT916": (
            "The text to replace is in the file exactly once.",
            "Otherwise it would be a guess which place is meant. Read the file, and give more of the text around it.",
        ),
        "AGT917": (
            "An argument has its type and lies in its bounds.",
            "Send what the tool's schema says; the message names the argument and its bounds.",
        ),
        "AGT918": (
            "A report lies in the reports folder of the ask, under a name of its own that evidence can have.",
            "Reports of roles are kept apart. Write below the folder of the assignment, with letters, digits and `-`.",
        ),
        "AGT919": (
            "What is looked at is evidence of the task.",
            "Call `view_evidence` without a path for the list, and look at one of those.",
        ),
        "AGT920": (
            "A command can be started, ends in its time, and prints no flood.",
            "Find out what it waits for or prints; where a program is missing, work without it, and say so.",
        ),
        "AGT921": (
            "A file that no gate takes from the work keeps the content of the base: tests, and what decides a gate.",
            "Leave it as it is: a change would be put back. What the task needs, a person lists in `may_change`.",
        ),
        "AGT922": (
            "A command is one of those that the assignment lists, with exactly its arguments.",
            "Run one of those, by itself; read and edit files with your own tools.",
        ),
        "AGT923": (
            "An agent asks for what has a rule: to read or edit files that it names, a command, a tool of Interlock.",
            "Do without it, or say what the task lacks.",
        ),
    },
    "Interlock: an agent touches what its task is about, and what it does can be looked up",
)
"""Code to rule of what is refused here; refusals for want of a lease have the codes of the reservations, `RSV…`."""


class RefusedError(InterlockError):
    """Ends a call with its refusals, at least one."""

    def __init__(self, *errors: Mapping[str, Any]) -> None:
        super().__init__(str(errors[0]["message"]), str(errors[0]["fix"]), str(errors[0]["code"]))
        self.errors = list(errors)


@contextmanager
def answering(answer: Answer) -> Generator[Answer]:
    """Fill in an answer; what is refused becomes its `errors`."""
    answer["errors"] = []
    try:
        yield answer
    except RefusedError as refused:
        answer["errors"] = refused.errors


def refusal_row(code: str, place: str, found: object = None, *, expected: str = "", fix: str = "") -> dict[str, str]:
    """Return one refusal in the words of its rule, where there are no better ones; the place is what was found.

    Place and what was found are cut to one short line.
    """
    rule = RULES[code]
    found = place if found is None else found
    row = Finding(code, "error", shown(place), rule.title, shown(found), expected or rule.title, fix or rule.remedy)
    return row.to_refusal()


def refusal(code: str, place: str, found: object = None, *, expected: str = "", fix: str = "") -> RefusedError:
    """Return what ends a call that broke a rule; see `refusal_row`."""
    return RefusedError(refusal_row(code, place, found, expected=expected, fix=fix))


def unusable(path: str, error: RunnerError) -> RefusedError:
    """Return what ends a call whose file is no plain one, or cannot be used."""
    return refusal("AGT911", path, error.message, fix=error.fix)


def bad_argument(name: str, found: object, expected: str) -> RefusedError:
    """Return what ends a call with an argument out of its bounds."""
    return refusal("AGT917", name, found, expected=expected, fix=f"Give {expected}.")


def encoded(text: str, path: str) -> bytes:
    """Return a text as the bytes of a file."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise refusal("AGT915", path, "half of a surrogate pair") from None
    if len(data) > MAX_FILE_BYTES:
        raise refusal("AGT915", path, f"{len(data)} bytes", expected=TEXT_FILE)
    return data
