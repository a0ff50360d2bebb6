"""What the header of a sealed gate's log says: one finding for each fault, and what a reviewer has to know."""

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
    "unproven": ("EVD580", "{test} is reported as passed, but its assertions were not all passed."),
    "accepts": ("EVD581", "{test} passed only because its result equals more than one expected value."),
    "not_collected": ("EVD582", "{test} cannot be collected."),
    "no_test_in_file": ("EVD583", "{test} could not be collected on the base, and still runs no test that passes."),
    "exit_status": ("EVD584", "The command ended with a failure that no test explains."),
    "prepare": ("EVD585", "A command of `prepare` failed."),
    "heldout": ("EVD586", "Held-out checks failed."),
    "shadowed": ("EVD587", "The new file {test} is imported in place of another module."),
    "rewritten": ("EVD588", "{test} was written or moved while the tests ran."),
    "planted": ("EVD588", "{test} was made while the tests ran, and may be loaded in place of another file."),
    "apart": ("EVD589", "{test} did not run as its file has it."),
    "unjudged": (
        "EVD594", "{test} changed and is what a command of the gate reads: the content of the base was judged instead."
    ),
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
            expected="tests, and what decides a gate, as they were when the run began",
            fix="Leave these files as they were; where a task is to change them, its owner lists them in `may_change`. "
            "New tests are welcome: they run once the tests of the base pass without them.",
        )  # fmt: skip
    if rows and outside:
        yield subject.finding(
            "EVD591", gate, f"{_named(outside)} changed outside the scope; the gate judged the content of the base.",
            found=", ".join(outside[:_PATHS]), expected="changes inside the scope of the task",
            fix="Do the work inside the scope; a file outside it has no say in this gate.",
        )  # fmt: skip
    if not parsed:
        yield subject.finding(
            "EVD592", gate, "the exit status of a sealed run decided; its tests were not parsed.",
            found=f"a command that Interlock does not recognise: {rules.quote(str(sealed.get('runner', '')))}",
            expected="a test runner that is recognised, or a JUnit report",
            fix='Give the gate the plain command of the test runner, or `tests = "junit"` and the path of its report.',
        )  # fmt: skip
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
