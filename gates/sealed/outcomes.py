"""What a run of tests came to: one record for each test, and what was observed of the runner itself."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Outcome: TypeAlias = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""What a test came to. `xpassed` passed although it was expected to fail, and its runner does not mind."""

Proof: TypeAlias = Literal["", "body", "reached", "open", "ended"]
"""What the body of a test itself recorded, apart from what the runner says of it.

`""` nothing is recorded in it, `body` it is recorded and did not run in the process that the probe watches, `reached`
it ran and at least one of its own statements of interest was reached, `open` it ran and reached none of its assertions,
which are all below conditions or in loops, `ended` all those that it cannot end without were passed.
"""

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
MESSAGE_CHARACTERS: Final = 2000
"""No message of a test is longer."""


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test.

    Args:
        id: As the runner writes it.
        outcome: What the runner says and the probe saw; where the two differ, the worse of them.
        seconds: How long it took, set-up included.
        message: Why it failed or was skipped, bounded.
        file: The file that defines it, relative to the root; empty when it is not known.
        proof: What its body recorded.
        skips: How many of its subtests were skipped, or expected to fail.
        accepts: Empty, or which of its comparisons also held for a value that it must not hold for.
        apart: Empty, or what was not as its file has it when it ran: the code of its module, the working directory.
        mover: The file of the tree that changed the working directory, relative to the root; empty: not known.
    """

    __test__ = False

    id: str
    outcome: Outcome
    seconds: float = 0.0
    message: str = ""
    file: str = ""
    proof: Proof = ""
    accepts: str = ""
    skips: int = 0
    apart: str = ""
    mover: str = ""


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of a test command.

    Args:
        runner: `pytest`, `unittest`, `node`, `vitest`, `jest`, `go`, `nextest`, `junit`; `exit`: tests are not parsed.
        cases: The tests that came to an outcome, each id once.
        collected: The ids that were found, where the runner says so before it runs them; a run that hangs keeps them.
        running: The ids that had begun and came to no outcome.
        broken: Files that could not be collected: path and message.
        skipped_files: Files that were skipped as a whole: path and reason.
        deselected: The ids that were found and left out by an option.
        complete: The runner said that it was finished.
        exit_status: Of the command; None when it was stopped.
        judge: Empty when every canary came out as it must, or there are none; else what was wrong.
        canaries: How many there were.
        loaded: Absolute paths of the code that was loaded, to see that it comes from the export.
        proves: The bodies of its tests record what they reach.
        shadows: Files of the tree that were imported by a name that another file has too: relative path, other path.
        sources: Files of the tree whose text was compiled: relative path, SHA-256 of the text.
        touched: Files of the export, relative to its top, that were written, replaced or removed since it was made,
            and folders that were moved.
        problem: Empty, or why the outcomes could not be read: a report that is missing, empty or not one.
    """

    __test__ = False

    runner: str
    cases: tuple[TestCase, ...] = ()
    collected: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
    skipped_files: tuple[tuple[str, str], ...] = ()
    deselected: tuple[str, ...] = ()
    complete: bool = True
    exit_status: int | None = 0
    judge: str = ""
    canaries: int = 0
    loaded: tuple[str, ...] = ()
    proves: bool = False
    shadows: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    touched: tuple[str, ...] = ()
    problem: str = ""

    @property
    def parsed(self) -> bool:
        """Return whether the outcome of each test is known."""
        return self.runner != "exit"

    def count(self, *outcomes: Outcome) -> int:
        """Return how many tests came to one of some outcomes."""
        return sum(case.outcome in outcomes for case in self.cases)


def bounded(text: str, limit: int = MESSAGE_CHARACTERS) -> str:
    """Return the text without colours, its middle left out where it is too long."""
    text = _COLOURS.sub("", text)
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]}\n[…]\n{text[-half:]}"


def run_from_json(data: Mapping[str, Any]) -> TestRun:
    """Return the run that `asdict` made plain data of, or raise KeyError, TypeError or ValueError."""
    fields = dict(data)
    fields["cases"] = tuple(TestCase(**case) for case in fields["cases"])
    for name in ("broken", "skipped_files", "shadows", "sources"):
        fields[name] = tuple((str(path), str(message)) for path, message in fields[name])
    for name in ("collected", "running", "deselected", "loaded", "touched"):
        fields[name] = tuple(str(value) for value in fields[name])
    return TestRun(**fields)
