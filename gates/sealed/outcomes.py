"""What a run of tests came to: one record for each test, and what was observed of the run itself."""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.gates.sealed.against_base import Result

Outcome: TypeAlias = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""What a test came to. `xpassed` passed although it was expected to fail, and its runner does not mind."""

Ran: TypeAlias = Literal["", "begun", "ended"]
"""Whether the code of the test function was seen to begin, and to return; empty: it was not seen, or nobody looks."""

GOOD: Final = ("passed", "xpassed")
SKIPPED: Final = ("skipped", "xfailed")
BAD: Final = ("failed", "error")

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
MESSAGE_CHARACTERS: Final = 2000
"""No message of a test is longer."""


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test.

    Args:
        id: As the runner writes it.
        outcome: What the runner says and the observer saw; where the two differ, the worse of them.
        seconds: How long it took, set-up included.
        message: Why it failed or was skipped, bounded.
        file: The file that it was collected from, relative to the root; empty when it is not known.
        ran: What was seen of the code of its function.
        when: The phase in which it was skipped: `setup`, by a mark or a fixture, or `call`.
    """

    __test__ = False

    id: str
    outcome: Outcome
    seconds: float = 0.0
    message: str = ""
    file: str = ""
    ran: Ran = ""
    when: str = ""


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run of a test command.

    Args:
        runner: `pytest`, `unittest`, `node`, `vitest`, `jest`, `go`, `nextest`, `junit`; `sarif`: a checker; `exit`:
            nobody observed it.
        cases: The tests that came to an outcome, each id once.
        collected: The ids that were found, where the runner says so before it runs them.
        running: The ids that had begun and came to no outcome.
        broken: Files that could not be collected: path and message.
        skipped_files: Files that were skipped as a whole: path and reason.
        deselected: The ids that were found and left out by an option.
        complete: Every session said that it was finished.
        exit_status: Of the command; None when it was stopped.
        sessions: How many runners were observed.
        judge: Empty, or what shows that the runner is not what it was.
        loaded: Modules that were loaded: name, and real path as seen inside.
        frozen: Absolute paths of what decided the run: tests, conftest files, plugins, settings.
        early: Real paths of modules that were loaded before the runner was.
        roots: Folders of the import path below the root, absolute.
        changed: Functions of the runner that have other code than before the product was imported.
        equals: Classes of the product whose values are equal to anything.
        written: Files of the export, relative to the top, whose content is another one after the run.
        results: The findings of a report in SARIF.
        problem: Empty, or why the outcomes could not be read.
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
    sessions: int = 0
    judge: str = ""
    loaded: tuple[tuple[str, str], ...] = ()
    frozen: tuple[str, ...] = ()
    early: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    equals: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    problem: str = ""

    @property
    def parsed(self) -> bool:
        """Return whether the outcome of each test is known."""
        return self.runner != "exit"

    @property
    def succeeded(self) -> bool:
        """Return whether the command ended as one that did its work; a checker ends with 1 where it found something."""
        return self.exit_status == 0 or (self.runner == "sarif" and self.exit_status == 1)

    @property
    def passes(self) -> bool:
        """Return whether all of it passed, and nothing was skipped; of a checker, whether it did its work."""
        whole = self.complete and self.succeeded and not self.problem and not self.broken
        return whole and not self.skipped_files and all(case.outcome in GOOD for case in self.cases)


def bounded(text: str) -> str:
    """Return the text without colours, its middle left out where it is too long."""
    text = _COLOURS.sub("", text)
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    # Five are the mark between the halves, with its line ends.
    half = (MESSAGE_CHARACTERS - 5) // 2
    return f"{text[:half]}\n[…]\n{text[-half:]}"
