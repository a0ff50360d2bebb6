"""Runners whose outcomes stand in what they print or write: `go test`, cargo nextest, and JUnit XML of any other.

Nobody observes these runs: what the tested code writes into the report is believed.
"""

import json
import os
import re
import xml.etree.ElementTree as ET
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
}  # fmt: skip
_GO_BROKEN: Final = re.compile(rb"^FAIL\t(\S+) \[(?:build|setup) failed\]$", re.MULTILINE)


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


_Read: TypeAlias = tuple[list[TestCase], list[tuple[str, str]]]


def _unique(cases: Iterable[TestCase]) -> Iterator[TestCase]:
    """Yield the cases, a number added to an id that was there before."""
    seen: dict[str, int] = {}
    for case in cases:
        number = seen[case.id] = seen.get(case.id, 0) + 1
        yield case if number == 1 else replace(case, id=f"{case.id} ({number})")


def _lines(report: bytes) -> Iterator[dict[str, Any]]:
    for line in report.splitlines():
        if line.startswith(b"{"):
            with suppress(ValueError):
                yield json.loads(line)


def _read_go(report: bytes) -> _Read:
    cases: list[TestCase] = []
    broken: list[tuple[str, str]] = []
    output: dict[str, list[str]] = {}
    failed: set[str] = set()
    packages = 0
    for row in _lines(report):
        package, test, action = str(row.get("Package", "")), str(row.get("Test", "")), row.get("Action")
        name = f"{package}.{test}" if test else package or str(row.get("ImportPath", ""))
        if action in ("output", "build-output"):
            output.setdefault(name, []).append(str(row.get("Output", "")))
        elif action in ("pass", "fail", "skip") and test:
            outcome = _OUTCOMES[str(action)]
            words = bounded("".join(output.get(name, ()))) if outcome != "passed" else ""
            cases.append(TestCase(name, outcome, float(row.get("Elapsed", 0.0)), words, package))
            failed |= {package} if outcome == "failed" else set()
        elif action in ("pass", "fail", "skip"):
            packages += 1
            if action == "fail" and package not in failed:
                built = str(row.get("FailedBuild", ""))
                broken.append((package, bounded("".join(output.get(built, ()) or output.get(package, ())))))
    # Before Go 1.24 a package that cannot be built is a line of text, and what the compiler printed comes before it.
    known = {path for path, _ in broken}
    for found in _GO_BROKEN.finditer(report):
        packages += 1
        if (package := found[1].decode("utf-8", "replace")) not in known:
            words = b"\n".join(line for line in report[: found.end()].splitlines() if not line.startswith(b"{"))
            broken.append((package, bounded(words.decode("utf-8", "replace"))))
    if not packages:
        raise ValueError("no package ended")
    return cases, broken


def _read_nextest(report: bytes) -> _Read:
    cases: list[TestCase] = []
    suites = 0
    for row in _lines(report):
        event = str(row.get("event", ""))
        if row.get("type") == "suite":
            suites += event in ("ok", "failed")
        elif row.get("type") == "test" and event in _OUTCOMES:
            words = bounded(str(row.get("stdout", ""))) if event == "failed" else ""
            cases.append(TestCase(str(row["name"]), _OUTCOMES[event], float(row.get("exec_time", 0.0)), words))
    if not suites:
        raise ValueError("no suite ended")
    return cases, []


def _read_junit(report: bytes) -> _Read:
    if b"<!DOCTYPE" in report or b"<!ENTITY" in report:
        raise ValueError("it declares entities")
    root = ET.fromstring(report)  # noqa: S314  (entities are refused above)
    if root.tag not in ("testsuites", "testsuite"):
        raise ValueError(f"its root is <{root.tag}>")
    cases: list[TestCase] = []
    tags: Mapping[str, Outcome] = {"failure": "failed", "error": "error", "skipped": "skipped"}
    for node in root.iter("testcase"):
        bad = next((child for child in node if child.tag in tags), None)
        outcome: Outcome = "passed" if bad is None else tags[bad.tag]
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
