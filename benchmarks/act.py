"""Measures what the accessibility gate finds: the W3C's test pages for ACT rules, judged as a run judges a page.

    python -m benchmarks.act DIR                 # or INTERLOCK_ACT=DIR; the approved rules
    python -m benchmarks.act DIR --all           # the proposed rules too
    python -m benchmarks.act DIR --rules RULE …  # only these
    python -m benchmarks.act DIR --json

DIR is a checkout of w3c/wcag-act-rules. A page says whether it fails, passes, or has nothing to do with one rule. Found
is a failing page for which a rule of an engine that its makers map to this ACT rule fails the gate; a false alarm is
any other page for which one does. Violations of other rules are not counted: many test pages have no title. Published
are the results that the makers of four engines handed in, each judged by its own maker. Pages are looked at in one view
(1280 px) and for a moment. It never fails by what it finds; without DIR it says so and ends.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interlock.gates import EvidenceFile
from interlock.gates.checks import Subject
from interlock.gates.checks.a11y import check_a11y
from interlock.gates.collect import a11y, find_browser
from interlock.gates.collect.browser import Browser
from interlock.gates.collect.cdp import CdpError, Connection
from interlock.gates.collect.engines import load_engines
from interlock.gates.collect.look import watch
from interlock.gates.collect.page import Page
from interlock.gates.collect.site import ORIGIN, Target
from interlock.gates.errors import CollectorError

VARIABLE: Final = "INTERLOCK_ACT"
ASSETS: Final = "content-assets/wcag-act-rules"
RESULTS: Final = "_data/wcag-act-rules/implementations"
PREFIX: Final = "/WAI/"
"""Where the pages expect `content-assets`."""

ABOVE_AA: Final = frozenset({"09o5cg"})
"""Rules about level AAA alone, which the gate does not ask for."""

LOOK_SECONDS: Final = 0.1
MAPPINGS: Final = (
    "[...axe.getRules().map((rule) => ['axe-core', rule.ruleId, rule.actIds ?? []]),"
    " ...AccessLint.rules.map((rule) => ['accesslint', rule.id, rule.actRuleIds ?? []])]"
)


@dataclass(frozen=True, slots=True)
class Served(Target):
    """A test page, with the folder of the W3C's site that it expects."""

    def serve(self, url: str) -> tuple[int, str, bytes]:
        """Answer a request from disk."""
        return Target.serve(self, url.replace(f"{ORIGIN}{PREFIX}", f"{ORIGIN}/", 1))


@dataclass(slots=True)
class Row:
    """What became of the pages of one rule.

    Args:
        name: What the rule says.
        expected: How many pages fail, and how many do not.
        found: Failing pages that were found.
        alarms: The titles of pages that were failed wrongly.
        missed: The titles of failing pages that were not found.
        refused: The titles of pages of which no evidence was made, and the code.
        published: By engine: found and false alarms among the same pages, or None where it handed nothing in.
    """

    name: str
    expected: Counter[str] = field(default_factory=Counter[str])
    found: int = 0
    alarms: list[str] = field(default_factory=list[str])
    missed: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    published: dict[str, tuple[int, int] | None] = field(default_factory=dict[str, "tuple[int, int] | None"])


class Judge:
    """A browser that is used for all pages, and the judgement of a run.

    Args:
        folder: A checkout of the test pages.
        profile: An empty folder for the browser's profile.
    """

    def __init__(self, folder: Path, profile: Path) -> None:
        self._folder = folder
        self._engines = load_engines()
        self._mapped: dict[tuple[str, str], set[str]] = {}
        profile.mkdir()
        self._browser = Browser(find_browser(), profile, None, sys.stderr.buffer)
        self._connection = Connection(self._browser.read_fd, self._browser.write_fd, time.monotonic() + 24 * 3600)
        wait = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        self._connection.call("Target.setAutoAttach", wait)

    def violates(self, case: dict[str, Any]) -> bool:
        """Say whether the gate fails the page by a rule that is mapped to the case's.

        Raises:
            CollectorError: No evidence was made of the page.
        """
        path = case["relativePath"]
        target = Served(path, f"{ORIGIN}{PREFIX}{ASSETS}/{path}", str(self._folder))
        page = Page(self._connection, target, 1280)
        try:
            watch(self._connection, [page], LOOK_SECONDS)
            audits = a11y.audit([page], self._engines)
            if not self._mapped:
                rows = page.evaluate(page.frames()[0], self._with_engines(MAPPINGS))
                self._mapped = {(engine, rule): set(ids) for engine, rule, ids in rows}
        finally:
            page.close()
        report = a11y.merge(target, self._engines, audits)
        report["violations"] = [
            rule for rule in report["violations"] if case["ruleId"] in self._mapped[rule["engine"], rule["id"]]
        ]
        data = json.dumps(report).encode()
        file = EvidenceFile(path=path, data=data, sha256="", size_bytes=len(data))
        findings = check_a11y("", [Subject(file, "a11y")], in_run=True)
        codes = {finding.code for finding in findings if finding.level == "error"}
        if broken := codes & {"EVD531"}:
            raise CollectorError(min(broken), "the report is not whole", "Have the page judged by a person.")
        return "EVD543" in codes

    def _with_engines(self, expression: str) -> str:
        return "\n".join((*(engine.source for engine in self._engines), f";{expression}"))

    def close(self) -> None:
        """End the browser."""
        self._browser.close()


def published(folder: Path, cases: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, tuple[int, int] | None]]:
    """Yield engine, rule, and how many of the pages its makers say it finds and fails wrongly."""
    expected = {(case["ruleId"], case["testcaseId"]): case["expected"] for case in cases}
    for file in sorted((folder / RESULTS).glob("*.json")):
        for rule in json.loads(file.read_text())["actRuleMapping"]:
            counts: Counter[bool] = Counter()
            told = False
            for result in rule["testCaseResults"]:
                outcome = expected.get((rule["ruleId"], result["testcaseId"]))
                outcomes = [each for procedure in result["procedureResults"] for each in procedure["outcomes"]]
                told = told or any(each != "untested" for each in outcomes)
                if outcome is not None and "failed" in outcomes:
                    counts[outcome == "failed"] += 1
            yield file.stem, rule["ruleId"], (counts[True], counts[False]) if told else None


def measure(folder: Path, cases: Sequence[dict[str, Any]]) -> dict[str, Row]:
    """Judge every page and return what became of them by rule; progress goes to standard error."""
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as scratch:
        judge = Judge(folder, Path(scratch) / "profile")
        try:
            for number, case in enumerate(cases, 1):
                row = rows.setdefault(case["ruleId"], Row(case["ruleName"]))
                fails = case["expected"] == "failed"
                row.expected["failing" if fails else "other"] += 1
                try:
                    found = judge.violates(case)
                except CollectorError as error:
                    row.refused.append(f"{case['testcaseTitle']} ({error.code})")
                    found = False
                except CdpError as error:
                    row.refused.append(f"{case['testcaseTitle']} ({error})")
                    found = False
                if found and fails:
                    row.found += 1
                elif found != fails:
                    (row.missed if fails else row.alarms).append(case["testcaseTitle"])
                if number % 50 == 0:
                    print(f"{number} of {len(cases)}", file=sys.stderr)
        finally:
            judge.close()
    for engine, rule, counts in published(folder, cases):
        if rule in rows:
            rows[rule].published[engine] = counts
    return rows


def totals(rows: dict[str, Row], leave_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the sums over some rules: of this gate, and of each engine as published."""
    taken = [row for rule, row in rows.items() if rule not in leave_out]
    names = sorted({name for row in taken for name in row.published})
    told = {name: [row.published.get(name) or (0, 0) for row in taken] for name in names}
    return {
        "failing": sum(row.expected["failing"] for row in taken),
        "other": sum(row.expected["other"] for row in taken),
        "found": sum(row.found for row in taken),
        "alarms": sum(len(row.alarms) for row in taken),
        "refused": sum(len(row.refused) for row in taken),
        "published": {name: [sum(pair) for pair in zip(*pairs, strict=True)] for name, pairs in told.items()},
    }


def table(rows: dict[str, Row]) -> Iterator[str]:
    """Yield the lines of the report."""
    names = sorted({name for row in rows.values() for name in row.published})
    heads = "".join(f"{name[:15]:>17}" for name in names)
    yield f"{'rule':8}{'failing':>8}{'found':>7}{'others':>8}{'alarms':>8}{heads}  (published: found/alarms)"
    for rule, row in rows.items():
        cells = "".join(
            f"{'-' if (it := row.published.get(name)) is None else f'{it[0]}/{it[1]}':>17}" for name in names
        )
        numbers = f"{row.expected['failing']:>8}{row.found:>7}{row.expected['other']:>8}{len(row.alarms):>8}"
        yield f"{rule:8}{numbers}{cells}  {row.name}"
    for title, leave_out in (("all", frozenset[str]()), ("A and AA", ABOVE_AA)):
        told = totals(rows, leave_out)
        cells = "".join(f"{f'{found}/{alarms}':>17}" for found, alarms in told["published"].values())
        yield f"{title:8}{told['failing']:>8}{told['found']:>7}{told['other']:>8}{told['alarms']:>8}{cells}"
    for title, key in (("false alarm", "alarms"), ("missed", "missed"), ("no evidence", "refused")):
        for rule, row in rows.items():
            for name in getattr(row, key):
                yield f"{title}: {rule} {name}: {row.name}"


def main() -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=os.environ.get(VARIABLE), metavar="DIR")
    parser.add_argument("--all", action="store_true", help="the proposed rules too")
    parser.add_argument("--rules", nargs="+", default=[], metavar="RULE", help="only these")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    source = Path(options.folder or "") / ASSETS / "testcases.json"
    if not options.folder or not source.is_file():
        print(f"skipped: no test pages; name a checkout of w3c/wcag-act-rules, or set {VARIABLE}")
        return 0
    folder = Path(options.folder).resolve()
    cases = [
        case
        for case in json.loads(source.read_text())["testcases"]
        if (options.all or case.get("approved")) and (not options.rules or case["ruleId"] in options.rules)
    ]
    rows = measure(folder, cases)
    if options.json:
        figures = {"rules": {rule: {name: getattr(row, name) for name in Row.__slots__} for rule, row in rows.items()}}
        print(json.dumps({**figures, "all": totals(rows), "a_and_aa": totals(rows, ABOVE_AA)}, indent=1))
    else:
        print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
