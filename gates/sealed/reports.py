"""Runners whose outcomes stand in what they print or write: `go test`, cargo nextest, and JUnit XML of any other.

Nobody observes these runs: what the tested code writes into the report is believed.
"""

import json
import os
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from interlock.gates.sealed.outcomes import Outcome, TestCase, TestRun, bounded
from interlock.gates.sealed.settings import Seal

Kind: TypeAlias = Literal["go", "nextest", "junit", "exit"]
"""`exit` is a command of which nothing is known but its exit status."""

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "pass": "passed", "fail": "failed", "skip": "skipped", "ok": "passed", "failed": "failed", "ignored": "skipped",
    "failure": "failed", "error": "error", "skipped": "skipped",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """How the outcomes of a command are read.

    Args:
        kind: What writes them.
        argv: The command, with the options that make it write them.
        env: Variables that it needs for that.
        path: Of the report, relative to where the command runs; empty: they stand in its output.
    """

    kind: Kind
    argv: tuple[str, ...]
    env: Mapping[str, str]
    path: str = ""


def report_of(argv: Sequence[str], seal: Seal) -> Report:
    """Return how the outcomes of a command are read where no runner is observed."""
    words, name = list(argv), os.path.basename(argv[0])
    if seal.junit:
        return Report("junit", tuple(words), {}, seal.junit)
    if name == "go" and words[1:2] == ["test"] and not {"-json", "-c"} & set(words):
        return Report("go", (words[0], "test", "-json", *words[2:]), {})
    if name == "cargo" and words[1:3] == ["nextest", "run"] and not any("--message-format" in word for word in words):
        options = ("--message-format", "libtest-json")
        return Report("nextest", (*words[:3], *options, *words[3:]), {"NEXTEST_EXPERIMENTAL_LIBTEST_JSON": "1"})
    return Report("exit", tuple(words), {})


def read_report(report: Report, data: bytes, exit_status: int | None) -> TestRun:
    """Return what a report says; one that is missing, empty or not one is a problem."""
    run = TestRun(report.kind, complete=exit_status is not None, exit_status=exit_status)
    if report.kind == "exit":
        return run
    where = report.path or "its output"
    if not data.strip():
        return replace(run, problem=f"{report.kind} left no report in {where}")
    try:
        cases, broken = _READERS[report.kind](data)
    except (KeyError, TypeError, ValueError, ET.ParseError, RecursionError) as error:
        return replace(run, problem=f"{where} is no report of {report.kind}: {type(error).__name__}: {error}")
    return replace(run, cases=tuple(_unique(cases)), broken=tuple(broken))


def _unique(cases: Iterable[TestCase]) -> Iterator[TestCase]:
    """Yield the cases, a number added to an id that was there before."""
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case.id] += 1
        yield case if seen[case.id] == 1 else replace(case, id=f"{case.id} ({seen[case.id]})")


_Read: TypeAlias = tuple[list[TestCase], list[tuple[str, str]]]
"""The tests, and packages without: path and message."""


def _lines(report: bytes) -> Iterator[dict[str, Any]]:
    for line in report.splitlines():
        if line.startswith(b"{"):
            with suppress(ValueError):
                yield json.loads(line)


def _read_go(report: bytes) -> _Read:
    cases: list[TestCase] = []
    broken: dict[str, str] = {}
    packages = 0
    output: defaultdict[str, str] = defaultdict(str)
    for row in _lines(report):
        package, test, action = (str(row.get(key, "")) for key in ("Package", "Test", "Action"))
        name = f"{package}.{test}" if test else package or str(row.get("ImportPath", ""))
        output[name] += str(row.get("Output", ""))
        if action in _OUTCOMES and test:
            words = bounded(output[name]) if action != "pass" else ""
            cases.append(TestCase(name, _OUTCOMES[action], float(row.get("Elapsed", 0.0)), words, package))
        elif action in _OUTCOMES:
            packages += 1
            if action == "fail":
                broken[package] = bounded(output[str(row.get("FailedBuild", ""))] or output[package])
    if not packages:
        raise ValueError("no package ended")
    failed = {case.file for case in cases if case.outcome == "failed"}
    return cases, [row for row in broken.items() if row[0] not in failed]


def _read_nextest(report: bytes) -> _Read:
    rows = [(row, str(row.get("event", ""))) for row in _lines(report)]
    if not any(row.get("type") == "suite" and event in _OUTCOMES for row, event in rows):
        raise ValueError("no suite ended")
    cases: list[TestCase] = []
    for row, event in rows:
        if row.get("type") == "test" and event in _OUTCOMES:
            words = bounded(str(row.get("stdout", "")))
            cases.append(TestCase(str(row["name"]), _OUTCOMES[event], float(row.get("exec_time", 0.0)), words))
    return cases, []


def _read_junit(report: bytes) -> _Read:
    cases: list[TestCase] = []
    for node in ET.fromstring(report).iter("testcase"):  # noqa: S314  (expat itself refuses entities that grow)
        bad = next((child for child in node if child.tag in _OUTCOMES), None)
        outcome: Outcome = "passed" if bad is None else _OUTCOMES[bad.tag]
        words = "" if bad is None else bounded("\n".join(filter(None, (bad.get("message"), bad.text))))
        name = "::".join(filter(None, (node.get("file"), node.get("classname"), node.get("name"))))
        cases.append(TestCase(name, outcome, float(node.get("time") or 0), words, node.get("file") or ""))
    if not cases:
        raise ValueError("it has no test case")
    return cases, []


_READERS: Final[Mapping[str, Callable[[bytes], _Read]]] = {
    "go": _read_go,
    "nextest": _read_nextest,
    "junit": _read_junit,
}
