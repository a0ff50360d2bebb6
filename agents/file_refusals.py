"""Refusals of the tools, and the arguments that they are made of: the rules are a table."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from interlock.agents.ask import AgentsError, RunnerError
from interlock.core.finding import Finding
from interlock.core.rule import rules
from interlock.reservations.rules import shown

Answer: TypeAlias = dict[str, Any]

MAX_FILE_BYTES: Final = 1024 * 1024
"""A larger file is neither read nor written as text."""

RULES: Final = rules({
    "AGT911": (
        "A path is a plain path below the root, relative to it.",
        "Write it like `src/app.py`: not absolute, without `..`, a drive or blanks at its ends.",
    ),
    "AGT912": (
        "Git's folder, `.interlock`, `artifacts` and `interlock.toml` are not an agent's to read or write here.",
        "They decide what is judged, and hold what was. Work on the files of the task; leave these to a person.",
    ),
    "AGT913": (
        "A path lies in the scope of the task.",
        "The scope is what the task asks for and what is reserved. Edit inside it; name in the answer what it lacks.",
    ),
    "AGT914": (
        "A path names a plain file, reached through plain folders.",
        "A link could lead outside of the project, and a pipe hangs. Name a file of the tree itself.",
    ),
    "AGT915": (
        "A file is UTF-8 text of a bounded size.",
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
        "Find out what it waits for or prints; where a program is missing, work without it and say so in the answer.",
    ),
    "AGT921": (
        "A picture decodes, and is of a size that a model takes.",
        "Make it a PNG or JPEG of the size that the message names, or describe what is to be seen.",
    ),
}, "Interlock: an agent touches what its task is about, and what it does can be looked up")  # fmt: skip
"""Code to rule of what is refused here; refusals for want of a lease have the codes of the reservations, `RSV…`."""


class RefusedError(AgentsError):
    """Ends a call with its refusals, at least one."""

    def __init__(self, *errors: Mapping[str, Any]) -> None:
        super().__init__(str(errors[0]["message"]), str(errors[0]["fix"]))
        self.errors = list(errors)


@contextmanager
def answering(answer: Answer) -> Generator[Answer]:
    """Fill in an answer; what is refused becomes its `errors`."""
    answer["errors"] = []
    try:
        yield answer
    except RefusedError as refused:
        answer["errors"] = refused.errors


def refusal_row(code: str, message: str, *, place: str, found: object, expected: str, fix: str) -> dict[str, str]:
    """Return one refusal; place and what was found are cut to one short line."""
    assert code in RULES, code
    return Finding(code, "error", shown(place), message, shown(found), expected, fix).to_refusal()


def refusal(code: str, message: str, *, place: str, found: object, expected: str, fix: str) -> RefusedError:
    """Return what ends a call that broke a rule; see `refusal_row`."""
    return RefusedError(refusal_row(code, message, place=place, found=found, expected=expected, fix=fix))


def unusable(path: str, error: RunnerError) -> RefusedError:
    """Return what ends a call whose file is no plain one, or cannot be used."""
    return refusal(
        "AGT914", f"{error.message[:1].upper()}{error.message[1:]}.", place=path, found=error.message,
        expected="a plain file in plain folders", fix=error.fix,
    )  # fmt: skip


def bad_argument(name: str, found: object, expected: str) -> RefusedError:
    """Return what ends a call with a wrong argument."""
    return refusal(
        "AGT917", f"`{name}` is not what it has to be.", place=name, found=found, expected=expected,
        fix=f"Give {expected}.",
    )  # fmt: skip


def text_of(name: str, value: object) -> str:
    """Return an argument that must be a text."""
    if not isinstance(value, str):
        raise bad_argument(name, value, "a text")
    return value


def number_of(name: str, value: object, low: int, high: int) -> int:
    """Return an argument that must be a whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise bad_argument(name, value, f"a whole number from {low} to {high}")
    return value


def encoded(text: str, path: str) -> bytes:
    """Return a text as the bytes of a file."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        data, found = b"", "half of a surrogate pair"
    else:
        found = f"{len(data)} bytes" if len(data) > MAX_FILE_BYTES else ""
    if found:
        raise refusal(
            "AGT915", "The text cannot be written.", place=path, found=found,
            expected=f"UTF-8, at most {MAX_FILE_BYTES} bytes", fix="Write a smaller text of whole characters.",
        )  # fmt: skip
    return data
