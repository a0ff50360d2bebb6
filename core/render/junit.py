"""JUnit XML, for the test reports of CI services."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final

from interlock.core.render import Case
from interlock.core.text import visible

_TAGS: Final = {"failed": "failure", "error": "error", "skipped": "skipped"}
_COUNTS: Final = {"failed": "failures", "error": "errors", "skipped": "skipped"}


def render_junit(cases: Sequence[Case]) -> str:
    """Return tests as one report, a suite for each name that they have."""
    suites: dict[str, list[Case]] = {}
    for case in cases:
        suites.setdefault(case.suite, []).append(case)
    top = ET.Element("testsuites", _counts(cases))
    for name, rows in suites.items():
        suite = ET.SubElement(top, "testsuite", {"name": visible(name), **_counts(rows)})
        for case in rows:
            place = {"file": visible(case.file)} if case.file else {}
            named = {"classname": visible(case.file or name), "name": visible(case.name)}
            node = ET.SubElement(suite, "testcase", {**named, "time": f"{case.seconds:.3f}", **place})
            if case.outcome != "passed":
                # XML has no place for control characters, not even escaped.
                text = visible(case.message, keep="\n")
                ET.SubElement(node, _TAGS[case.outcome], {"message": text.partition("\n")[0]}).text = text
    ET.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(top, encoding="unicode")}\n'


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    found = {name: str(sum(case.outcome == outcome for case in cases)) for outcome, name in _COUNTS.items()}
    return {"tests": str(len(cases)), **found, "time": f"{sum(case.seconds for case in cases):.3f}"}
