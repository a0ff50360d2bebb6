"""JUnit XML, for the test reports of CI services."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from interlock.core.text import visible

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.core.render import Checked

_TAGS: Final = {"failed": "failure", "error": "error", "skipped": "skipped"}
_COUNTS: Final = {"failed": "failures", "error": "errors", "skipped": "skipped"}


class Case(NamedTuple):
    """One test of a report.

    Args:
        suite: What it belongs to, such as a gate.
        name: What it is called.
        outcome: What came of it.
        file: Where it is, relative to the root; empty when that is not known.
        line: 1-based, or 0.
        message: Why it is no success, or what is to be said of a success.
        seconds: How long it took.
    """

    suite: str
    name: str
    outcome: Literal["passed", "failed", "error", "skipped"]
    file: str = ""
    line: int = 0
    message: str = ""
    seconds: float = 0.0


def render_junit(files: "Sequence[Checked]", tool: str) -> str:
    """Return each finding as a test: one that refuses is a failure, any other a success with a text."""
    return render_cases([_case(tool, file.path, finding) for file in files for finding in file.findings])


def render_cases(cases: Sequence[Case]) -> str:
    """Return tests as one report, a suite for each name that they have."""
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.suite, []).append(case)
    top = ET.Element("testsuites", _counts(cases))
    for name, rows in suites.items():
        suite = ET.SubElement(top, "testsuite", {"name": visible(name), **_counts(rows)})
        for case in rows:
            place = {"file": visible(case.file)} if case.file else {}
            place |= {"line": str(case.line)} if case.line else {}
            named = {"classname": visible(case.file or name), "name": visible(case.name)}
            node = ET.SubElement(suite, "testcase", {**named, "time": f"{case.seconds:.3f}", **place})
            if case.outcome != "passed" or case.message:
                # XML has no place for control characters, not even escaped.
                text = visible(case.message, keep="\n")
                first = {"message": text.partition("\n")[0]} if case.outcome != "passed" else {}
                ET.SubElement(node, _TAGS.get(case.outcome, "system-out"), first).text = text
    ET.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(top, encoding="unicode")}\n'


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    found = {name: sum(case.outcome == outcome for case in cases) for outcome, name in _COUNTS.items()}
    seconds = sum(case.seconds for case in cases)
    return {"tests": str(len(cases)), **{name: str(number) for name, number in found.items()}, "time": f"{seconds:.3f}"}


def _case(tool: str, path: str, finding: "Finding") -> Case:
    parts = {"found": finding.found, "expected": finding.expected, "fix": finding.fix}
    text = "\n".join((finding.message, *(f"{name}: {part}" for name, part in parts.items() if part)))
    name = " ".join(filter(None, (finding.code, finding.field)))
    return Case(tool, name, "failed" if finding.refuses else "passed", path, finding.line, text)
