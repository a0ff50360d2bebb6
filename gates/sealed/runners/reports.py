"""Runners whose outcomes are in a report: vitest, jest, go test, cargo nextest, and JUnit XML of any other.

The process that writes the report runs the tests, or gets their results from the one that does. These runs have no
canaries: what the tested code writes into the report is believed.
"""

import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from interlock.gates.sealed.outcomes import Outcome, TestCase, TestRun, bounded
from interlock.gates.sealed.runners.base import PROBES, Launch, Plan, ReportFrom, without_debugger

ReportKind: TypeAlias = Literal["vitest", "jest", "go", "nextest", "junit", "exit"]
"""`exit` is a command of which nothing is known but its exit status."""

_OUTCOMES: Final[Mapping[str, Outcome]] = {
    "passed": "passed", "failed": "failed", "pending": "skipped", "skipped": "skipped", "todo": "skipped",
    "disabled": "skipped", "pass": "passed", "fail": "failed", "skip": "skipped", "ok": "passed", "ignored": "skipped",
}  # fmt: skip
_GO_BROKEN: Final = re.compile(rb"^FAIL\t(\S+) \[(?:build|setup) failed\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReportRunner:
    """A command that writes a report.

    Args:
        argv: The program by absolute path, and the arguments as they are given.
        env: Variables that the command itself sets.
        path: Of the report, relative to the root; for `junit`.
        note: Why the tests are not watched, or not even parsed.
    """

    name: ReportKind
    argv: tuple[str, ...]
    env: Mapping[str, str]
    path: str = ""
    note: str = "No canaries: the report is written by the process that runs the tests, and is believed."
    collects: bool = False
    selects: bool = False

    def launch(self, plan: Plan) -> Launch:
        """Return the command with the options that make it write its report."""
        env = without_debugger({**plan.env, **self.env})
        source: ReportFrom = "file"
        path, argv = plan.report_path, list(self.argv)
        match self.name:
            case "vitest":
                argv += ["--reporter=default", "--reporter=json", f"--outputFile.json={path}"]
            case "jest":
                argv += ["--json", f"--outputFile={path}"]
            case "go":
                at = argv.index("test") + 1
                own = any(word.lstrip("-").startswith("exec") for word in argv[at:] if word.startswith("-"))
                argv[at:at] = ["-json"] if own else ["-json", f"-exec=/bin/sh '{PROBES / 'unreadable.sh'}'"]
                source, path = "stdout", ""
            case "nextest":
                place = argv.index("run") + 1
                argv[place:place] = ["--message-format", "libtest-json"]
                env["NEXTEST_EXPERIMENTAL_LIBTEST_JSON"] = "1"
                source, path = "stdout", ""
            case "junit":
                path = self.path
            case "exit":
                source, path = "", ""
        return Launch(tuple(argv), env, report=source, report_file=path, root=plan.root)

    def read(self, launch: Launch, stream: bytes, report: bytes, *, exit_status: int | None) -> TestRun:
        """Return what the report says; a report that is missing, empty or not one is a problem."""
        del stream
        run = TestRun(self.name, complete=exit_status is not None, exit_status=exit_status)
        if self.name == "exit":
            return run
        where = launch.report_file or "its output"
        if not report.strip():
            return replace(run, problem=f"{self.name} left no report in {where}")
        try:
            cases, broken = _READERS[self.name](report)
        except (KeyError, TypeError, ValueError, ET.ParseError, RecursionError) as error:
            return replace(run, problem=f"{where} is no report of {self.name}: {type(error).__name__}: {error}")
        return _relative_to(replace(run, cases=tuple(_unique(cases)), broken=tuple(broken)), launch.root)


def _relative_to(run: TestRun, root: str) -> TestRun:
    """Return the run with the paths of files relative to a root."""

    def short(path: str) -> str:
        return os.path.relpath(path, root) if path.startswith(root + os.sep) else path

    prefix = root + os.sep
    cases = tuple(replace(case, id=case.id.replace(prefix, "", 1), file=short(case.file)) for case in run.cases)
    return replace(run, cases=cases, broken=tuple((short(path), message) for path, message in run.broken))


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


def _read_jest(report: bytes) -> _Read:
    cases: list[TestCase] = []
    broken: list[tuple[str, str]] = []
    for suite in json.loads(report)["testResults"]:
        file = str(suite["name"])
        tests = suite["assertionResults"]
        if not tests and suite["status"] == "failed":
            broken.append((file, bounded(str(suite.get("message") or "no test in this file"))))
        for test in tests:
            name = " > ".join((file, *test["ancestorTitles"], test["title"]))
            outcome = _OUTCOMES[test["status"]]
            message = "\n".join(test.get("failureMessages") or ())
            seconds = float(test.get("duration") or 0) / 1000
            cases.append(TestCase(name, outcome, seconds, bounded(message), file))
    return cases, broken


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
            cases.append(TestCase(name, outcome, float(row.get("Elapsed", 0.0)), words))
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
    for node in root.iter("testcase"):
        bad = next((child for child in node if child.tag in ("failure", "error", "skipped")), None)
        tags: Mapping[str, Outcome] = {"failure": "failed", "error": "error", "skipped": "skipped"}
        outcome: Outcome = "passed" if bad is None else tags[bad.tag]
        words = "" if bad is None else bounded("\n".join(filter(None, (bad.get("message"), bad.text))))
        name = "::".join(filter(None, (node.get("file"), node.get("classname"), node.get("name"))))
        seconds = float(node.get("time") or 0)
        cases.append(TestCase(name, outcome, seconds, words, node.get("file") or ""))
    if not cases:
        raise ValueError("it has no test case")
    return cases, []


_READERS: Final[Mapping[str, Callable[[bytes], _Read]]] = {
    "vitest": _read_jest,
    "jest": _read_jest,
    "go": _read_go,
    "nextest": _read_nextest,
    "junit": _read_junit,
}
