"""What can be wrong with a run of tests, and how it is said."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from interlock.core.finding import Finding

FaultKind: TypeAlias = Literal[
    "unread",
    "incomplete",
    "judge",
    "nothing_ran",
    "failed",
    "still_failing",
    "missing",
    "deselected",
    "skipped",
    "xfailed",
    "unproven",
    "accepts",
    "not_collected",
    "no_test_in_file",
    "exit_status",
    "prepare",
    "heldout",
    "shadowed",
    "rewritten",
    "planted",
    "apart",
    "unjudged",
]
"""What can be wrong with a run of tests; each is a row of `_TEXTS`."""


def make_fault(kind: FaultKind, test: str, message: str, found: str, expected: str, fix: str) -> Finding:
    """Return one reason why the tests do not pass.

    Args:
        kind: What is wrong; the code of the finding.
        test: The id of the test, or the file; empty when the whole run is meant.
        message: One sentence.
        found: What the run came to, bounded.
        expected: What it has to come to.
        fix: What to do, in the imperative, for the agent whose work is judged.
    """
    return Finding(kind, "error", test, message, found, expected, fix)


def fault_of(kind: FaultKind, test: str, found: str) -> Finding:
    """Return the fault of a kind in the words of its row."""
    message, expected, fix = _TEXTS[kind]
    return make_fault(kind, test, message.format(test=test), found, expected, fix.format(test=test))


def fault_json(row: Finding) -> dict[str, str]:
    """Return a fault as it is kept in the evidence."""
    return {
        "kind": row.code, "test": row.field, "message": row.message, "found": row.found, "expected": row.expected,
        "fix": row.fix,
    }  # fmt: skip


_TEXTS: Final[Mapping[FaultKind, tuple[str, str, str]]] = {
    "unread": (
        "The results of the tests cannot be read.",
        "a report of the tests that ran",
        "Let the command write its report to the end; look at the log for the error that stopped it.",
    ),
    "incomplete": (
        "The test run did not finish.",
        "the test runner reports that it is finished",
        "Remove what ends or blocks the process: an exit at import or in a test, an endless loop, a deadlock.",
    ),
    "judge": (
        "The tested code changed the test runner, so this run proves nothing.",
        "added tests that must fail fail, one that must pass passes, and the runner's reports match what was observed",
        "Remove the code that changes the test runner, its reports, built-in functions or comparisons.",
    ),
    "nothing_ran": (
        "No test passed.",
        "at least one test runs and passes",
        "Make the code importable, so that its tests can be collected and run.",
    ),
    "failed": (
        "{test} passed on the base and fails now, or is new and fails.",
        "passed",
        "Correct the code until this test passes; the test itself stays as it is on the base.",
    ),
    "still_failing": (
        "{test} fails, as it did on the base.",
        "passed",
        "Correct the code until this test passes; only a name in `allow_failing` of the gate may fail.",
    ),
    "missing": (
        "{test} is a test of the base and did not run.",
        "every test of the base runs",
        "Restore what {test} needs to be collected; only tests of files in `may_change` may disappear.",
    ),
    "deselected": (
        "{test} is a test of the base and was deselected.",
        "every test of the base runs",
        "Remove the option, marker or hook that leaves {test} out.",
    ),
    "skipped": (
        "{test} is skipped, and was not on the base.",
        "passed",
        "Remove the reason for the skip: code under test must not skip tests or lack what they ask for.",
    ),
    "xfailed": (
        "{test} is an expected failure, and was not on the base.",
        "passed",
        "Remove what marks {test} as expected to fail, and make it pass.",
    ),
    "unproven": (
        "{test} is reported as passed, but its assertions were not all passed.",
        "the body of the test runs to its end in the process of the test runner",
        "Remove the code that ends, replaces or skips the body of {test}.",
    ),
    "accepts": (
        "{test} passed only because its result equals more than one expected value.",
        "a result that equals the expected value and no other, whatever the test expects",
        "Compute the result from the input; remove an `__eq__` that always holds, or what reads the test's values.",
    ),
    "not_collected": (
        "{test} cannot be collected.",
        "the file is imported without an error, and at least one of its tests runs",
        "Correct the error that its import raises.",
    ),
    "no_test_in_file": (
        "{test} could not be collected on the base, and still runs no test that passes.",
        "the file is imported without an error, and at least one of its tests passes",
        "Write the code that {test} imports, and make its tests pass.",
    ),
    "shadowed": (
        "The new file {test} is imported in place of another module.",
        "a module with the name of one that was there comes from where it was",
        "Give {test} another name: it hides a module of the same name that tests or libraries import.",
    ),
    "rewritten": (
        "{test} was written or moved while the tests ran.",
        "tests, their data and what decides a gate stay as they were when the run began",
        "Leave {test} alone: what the code writes belongs into a temporary folder.",
    ),
    "planted": (
        "{test} was made while the tests ran, and may be loaded in place of another file.",
        "no new code appears beside the tests, nor settings of programs, while they run",
        "Write code that is made into a temporary folder.",
    ),
    "apart": (
        "{test} did not run as its file has it.",
        "the code in the file, in the working directory that it has on the base",
        "Remove the code that changes the source or the code of tests, or the working directory before they begin.",
    ),
    "unjudged": (
        "{test} changed and is what a command of the gate reads: the content of the base was judged in its place.",
        "the work is judged",
        "Restore {test}; if the task is to change it, have the owner list it in `may_change` of the task.",
    ),
    "exit_status": (
        "The command ended with a failure that no test explains.",
        "exit status 0",
        "Read the end of the log: a coverage threshold, a plugin or a step after the tests failed.",
    ),
}
