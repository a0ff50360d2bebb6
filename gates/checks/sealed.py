"""What the header of a sealed gate's log says: one finding for each fault, and what a reviewer has to know."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel

from interlock.core.finding import Finding
from interlock.gates import rules
from interlock.gates.checks.subject import Subject

FAULTS: Final[Mapping[str, tuple[str, str]]] = {
    "unread": ("EVD571", "The results of the tests cannot be read."),
    "incomplete": ("EVD571", "The test run did not finish."),
    "judge": ("EVD572", "The tested code changed the test runner, so this run proves nothing."),
    "nothing_ran": ("EVD573", "No test passed."),
    "failed": ("EVD574", "{test} passed on the base and fails now, or is new and fails."),
    "still_failing": ("EVD574", "{test} fails, as it did on the base."),
    "missing": ("EVD576", "{test} is a test of the base and did not run."),
    "deselected": ("EVD576", "{test} is a test of the base and was deselected."),
    "skipped": ("EVD576", "{test} is skipped, and was not on the base."),
    "xfailed": ("EVD576", "{test} is an expected failure, and was not on the base."),
    "unproven": ("EVD572", "{test} is reported as passed, but the code of its function did not run to its end."),
    "equals": ("EVD572", "Values of {test}, a class of the product, are equal to anything."),
    "not_collected": ("EVD582", "{test} cannot be collected."),
    "no_test_in_file": ("EVD582", "{test} could not be collected on the base, and still runs no test that passes."),
    "finding": ("EVD600", "{test} has a finding of a checker."),
    "changed_lines": ("EVD601", "Too few of the changed lines ran."),
    "exit_status": ("EVD584", "The command ended with a failure that no test explains."),
    "prepare": ("EVD584", "A command of `prepare` failed."),
    "heldout": ("EVD586", "Held-out checks failed."),
    "rewritten": ("EVD588", "{test} keeps its base content, and the tests of the work wrote it."),
    "flaky": ("EVD595", "{test} fails; it passed in one of two runs of the base, and failed in the other."),
    "suppression": ("EVD596", "The work adds comments that silence a checker."),
    "idle": ("EVD597", "Nothing of the product differs from the base."),
}
"""What can be wrong with a sealed run, by the name that it has in the evidence: its rule, and its message."""

_SHOWN: Final = 20
_PATHS: Final = 10
# As the observers begin a message, and as most runners write a place into one.
_PLACE: Final = re.compile(
    r"(?:^|[\s(])((?:[\w@+-][\w@+.-]*/)*[\w@+-][\w@+.-]*\.\w+):(\d+)(?::(\d+))?(?=[\s:),]|$)", re.MULTILINE
)


def _whole(row: dict[str, str]) -> dict[str, str]:
    """Refuse a fault of no known kind, or without its words."""
    if row.get("kind") not in FAULTS or not {"message", "found", "expected", "fix"} <= row.keys():
        raise ValueError("no fault of a sealed run")
    return row


class Sealed(BaseModel):
    """What the header of a log says of a sealed run, as far as it is judged; `gates.sealed.gate` writes it."""

    faults: list[Annotated[dict[str, str], AfterValidator(_whole)]]
    held_back: list[str]
    outside: list[str]
    product: list[str]
    inline: list[str]
    suppressions: list[str]
    parsed: bool
    observed: bool
    runner: str = ""
    new: list[str] = []
    added: list[str] = []


def check_sealed(gate: str, subject: Subject, sealed: Sealed) -> Iterator[Finding]:
    """Yield what a sealed run found: its faults, then what was left out of it."""
    for row in sealed.faults[:_SHOWN]:
        found = row["found"] if len(row["found"]) <= 600 else f"{row['found'][:400]} […] {row['found'][-190:]}"
        code, _ = FAULTS[row["kind"]]
        yield subject.finding(code, gate, row["message"], found=found, expected=row["expected"], fix=row["fix"])

    def note(code: str, message: str, paths: Sequence[str], expected: str = "", fix: str = "") -> Finding:
        found = "; ".join(paths[:_PATHS])
        return subject.finding(code, gate, message, found=found, expected=expected, fix=fix)

    # Where the gate passed, what was held back made no difference, and a note about it would be noise.
    if sealed.faults and sealed.held_back:
        expected = "changes of the product alone: " + (", ".join(sealed.product)[:300] or "none")
        fix = f'Leave them as they were; a task that is to change them says may_change = ["{sealed.held_back[0]}"].'
        message = f"{_named(sealed.held_back)} changed, and the gate judged the content of the base."
        yield note("EVD590", message, sealed.held_back, expected, fix)
    if sealed.faults and sealed.outside:
        message = f"{_named(sealed.outside)} changed outside the scope; the gate judged the content of the base."
        yield note("EVD591", message, sealed.outside)
    if not sealed.parsed:
        message = "the exit status of a sealed run decided; nobody observed its tests."
        yield note("EVD592", message, ["whatever ends the command with status 0 passes"])
    elif not sealed.observed and sealed.runner != "sarif":
        message = "the tests of a sealed run are read from a report that the tested process writes."
        yield note("EVD592", message, ["a report, which is believed"], "", "Nothing, where there is no other runner.")
    if sealed.suppressions and not sealed.faults:
        message = f"the work adds comments that silence a checker: {_named(sealed.suppressions)}."
        yield note("EVD598", message, sealed.suppressions)
    tests = {re.split("::| > ", name)[0] for name in sealed.new}
    beside = [path for path in sealed.added if path not in tests]
    if beside and not sealed.faults:
        yield note("EVD599", f"new files beside the product stay in the checkout: {_named(beside)}.", beside)
    if sealed.inline:
        message = f"tests inside the files that they test cannot be sealed: {_named(sealed.inline)}."
        yield note("EVD593", message, sealed.inline)


def fault_of(kind: str, test: str, found: str, message: str = "", fix: str = "") -> Finding:
    """Return one reason why tests do not pass, with its name in the evidence, one of `FAULTS`, as the code.

    `test` is the id of the test, or the file; empty when the whole run is meant. `found` is what the run came to,
    bounded; message and fix, one sentence each, are by default those of the kind and of its rule.
    """
    code, text = FAULTS[kind]
    rule = rules.BY_CODE[code]
    return Finding(kind, "error", test, message or text.format(test=test), found, rule.title, fix or rule.remedy)


def located(finding: Finding, root: Path) -> Finding:
    """Return a finding about a test at the file, line and column where it failed, as far as what was found says so."""
    # pytest writes `file::test`, Node's runners `file > test`; Go `module/folder.Test`, with places below the folder.
    near = re.split("::| > ", finding.field)[0]
    parts = near.rpartition(".")[0].split("/")
    for path, line, column in _PLACE.findall(finding.found.replace(f"{root}/", "")):
        for candidate in (*("/".join((*parts[at:], path)) for at in range(len(parts))), path):
            if (root / candidate).is_file():
                return finding._replace(path=candidate, line=int(line), column=int(column or 0))
    return finding._replace(path=near if "::" in finding.field or (root / near).is_file() else finding.path)


def _named(paths: Sequence[str]) -> str:
    """Name a few files in a sentence."""
    return rules.listed([rules.quote(path) for path in paths], 3)
