"""What the header of a sealed gate's log says: one finding for each fault, and what a reviewer has to know."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.shapes import MalformedError
from interlock.gates.checks.subject import Subject

FAULTS: Final[Mapping[str, tuple[str, str]]] = {
    "unread": ("EVD570", "The results of the tests cannot be read."),
    "incomplete": ("EVD571", "The test run did not finish."),
    "judge": ("EVD572", "The tested code changed the test runner, so this run proves nothing."),
    "nothing_ran": ("EVD573", "No test passed."),
    "failed": ("EVD574", "{test} passed on the base and fails now, or is new and fails."),
    "still_failing": ("EVD575", "{test} fails, as it did on the base."),
    "missing": ("EVD576", "{test} is a test of the base and did not run."),
    "deselected": ("EVD577", "{test} is a test of the base and was deselected."),
    "skipped": ("EVD578", "{test} is skipped, and was not on the base."),
    "xfailed": ("EVD579", "{test} is an expected failure, and was not on the base."),
    "unproven": ("EVD580", "{test} is reported as passed, but the code of its function did not run to its end."),
    "equals": ("EVD581", "{test} passed only because its result equals more than one expected value."),
    "not_collected": ("EVD582", "{test} cannot be collected."),
    "no_test_in_file": ("EVD583", "{test} could not be collected on the base, and still runs no test that passes."),
    "exit_status": ("EVD584", "The command ended with a failure that no test explains."),
    "prepare": ("EVD585", "A command of `prepare` failed."),
    "heldout": ("EVD586", "Held-out checks failed."),
    "rewritten": ("EVD588", "{test} keeps its base content, and the tests of the work wrote it."),
    "flaky": ("EVD595", "{test} fails; it passed in one of two runs of the base, and failed in the other."),
    "suppression": ("EVD596", "The work adds comments that silence a checker."),
    "idle": ("EVD597", "Nothing of the product differs from the base."),
}  # fmt: skip
"""What can be wrong with a sealed run, by the name that it has in the evidence: its rule, and its message."""

_SHOWN: Final = 20
_PATHS: Final = 10


def check_sealed(gate: str, subject: Subject, sealed: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what a sealed run found: its faults, then what was left out of it."""
    try:
        faults = cast("Sequence[Mapping[str, str]]", sealed["faults"])
        rows = [(FAULTS[row["kind"]][0], row) for row in faults]
        held_back, outside = list(map(str, sealed["held_back"])), list(map(str, sealed["outside"]))
        parsed, inline = bool(sealed["parsed"]), list(map(str, sealed["inline"]))
        observed, suppressions = bool(sealed["observed"]), list(map(str, sealed["suppressions"]))
        for code, row in rows[:_SHOWN]:
            found = row["found"]
            found = found if len(found) <= 600 else f"{found[:400]} […] {found[-190:]}"
            yield subject.finding(code, gate, row["message"], found=found, expected=row["expected"], fix=row["fix"])
    except (KeyError, TypeError, AttributeError) as error:
        raise MalformedError(f'"sealed" is not what a sealed gate writes: {error}') from error
    if rows and held_back:
        yield subject.finding(
            "EVD590", gate, f"{_named(held_back)} changed, and the gate judged the content of the base.",
            found=", ".join(held_back[:_PATHS]),
            expected="changes of the product alone: " + (", ".join(map(str, sealed["product"]))[:300] or "none"),
            fix="Leave these files as they were. Where a task is to change them, its owner lists them in `may_change`, "
            f'such as may_change = ["{held_back[0]}"]. New tests are welcome: they run once those of the base pass.',
        )  # fmt: skip
    if rows and outside:
        yield subject.finding(
            "EVD591", gate, f"{_named(outside)} changed outside the scope; the gate judged the content of the base.",
            found=", ".join(outside[:_PATHS]), expected="changes inside the scope of the task",
            fix="Do the work inside the scope; a file outside it has no say in this gate.",
        )  # fmt: skip
    if not parsed:
        yield subject.finding(
            "EVD592", gate, "the exit status of a sealed run decided; nobody observed its tests.",
            found="a command whose test runner nobody observes: one that ends with status 0 before a test runs passes",
            expected="a test runner that is observed, or a JUnit report",
            fix='Give the gate a command that runs pytest, unittest, node --test, vitest or jest, or `junit = "PATH"`.',
        )  # fmt: skip
    elif not observed:
        yield subject.finding(
            "EVD592", gate, "the tests of a sealed run are read from a report that the tested process writes.",
            found="a report, which is believed", expected="a test runner that is observed",
            fix="Nothing, where there is no other runner; held-out checks help.",
        )  # fmt: skip
    if suppressions and not rows:
        yield subject.finding(
            "EVD598", gate, f"the work adds comments that silence a checker: {_named(suppressions)}.",
            found="; ".join(suppressions[:_PATHS]), expected="no new suppressing comment",
            fix='Read them; forbid_new = ["suppressions"] in the gate\'s table refuses them.',
        )  # fmt: skip
    tests = {re.split("::| > ", str(name))[0] for name in sealed.get("new", ())}
    if beside := [] if rows else [path for path in map(str, sealed.get("added", ())) if path not in tests]:
        yield subject.finding(
            "EVD599",
            gate,
            f"new files beside the product stay in the checkout: {_named(beside)}.",
            found=", ".join(beside[:_PATHS]),
            expected="new tests, and what they need",
            fix="Read them: tests that are run there later see them, too.",
        )
    if inline:
        yield subject.finding(
            "EVD593", gate, f"tests inside the files that they test cannot be sealed: {_named(inline)}.",
            found=", ".join(inline[:_PATHS]), expected="tests in files of their own",
            fix="Read what changed in the tests of these files.",
        )  # fmt: skip


def fault_of(kind: str, test: str, found: str, message: str = "", fix: str = "") -> Finding:
    """Return one reason why tests do not pass, with its name in the evidence, one of `FAULTS`, as the code.

    `test` is the id of the test, or the file; empty when the whole run is meant. `found` is what the run came to,
    bounded; message and fix, one sentence each, are by default those of the kind and of its rule.
    """
    code, text = FAULTS[kind]
    rule = rules.BY_CODE[code]
    return Finding(kind, "error", test, message or text.format(test=test), found, rule.title, fix or rule.remedy)


def _named(paths: Sequence[str]) -> str:
    """Name a few files in a sentence."""
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(rules.quote(path) for path in paths[:3]) + more
