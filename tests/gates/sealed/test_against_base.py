"""What is new against the base: planted findings of checkers, tests and lines, told apart; and real programs."""

import json
import random
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.gates.sealed.against_base import (
    Place,
    covered_changes,
    new_lines,
    new_results,
    read_coverage,
    read_sarif,
)
from interlock.gates.sealed.compare import BaseTests, compare
from interlock.gates.sealed.execution import read_report
from interlock.gates.sealed.outcomes import TestRun
from tests.effort import examples
from tests.gates.sealed.sealing import Sealed, kinds, project, write

Row = tuple[str, int, str, str]
"""A finding: path, line, rule, message."""


def scan(files: Mapping[str, str]) -> list[Row]:
    """Return what a checker of this test finds: each line with BAD, or WORSE by two rules."""
    rows: list[Row] = []
    for path, text in files.items():
        for number, line in enumerate(text.split("\n"), 1):
            for word, rules in (("BAD", ("R1",)), ("WORSE", ("R1", "R2"))):
                rows += [(path, number, rule, f"{word} is not good") for rule in rules if word in line]
    return rows


def ruff(rows: Sequence[Row], root: Path) -> Any:
    """Write a report as ruff does: absolute addresses, a level for each result."""
    results: list[Any] = [
        {
            "level": "error",
            "locations": [
                _location({"uri": (root / path).as_uri()}, {"startLine": line, "startColumn": 1, "endLine": line})
            ],
            "message": {"text": message},
            "ruleId": rule,
        }
        for path, line, rule, message in rows
    ]
    tool: Any = {"driver": {"name": "ruff", "rules": []}}
    return {"version": "2.1.0", "runs": [{"tool": tool, "results": results}]}


def semgrep(rows: Sequence[Row], _root: Path) -> Any:
    """Write a report as Semgrep does: a base that is not declared, levels of rules, the same fingerprint for all."""
    rules: list[Any] = [{"id": rule, "defaultConfiguration": {"level": "error"}} for rule in ("R1", "R2")]
    rules += [{"id": "INFO", "defaultConfiguration": {"level": "note"}}]
    results = [
        {
            "fingerprints": {"matchBasedId/v1": "requires login"},
            "locations": [_location({"uri": path, "uriBaseId": "%SRCROOT%"}, {"startLine": line, "startColumn": 1})],
            "message": {"text": message},
            "properties": {},
            "ruleId": rule,
        }
        # A note on every line is no finding.
        for path, line, rule, message in (*rows, *((path, line, "INFO", "note") for path, line, *_ in rows))
    ]
    run = {"invocations": [{"executionSuccessful": True}], "results": results}
    return {"version": "2.1.0", "runs": [{**run, "tool": {"driver": {"name": "Semgrep OSS", "rules": rules}}}]}


def codeql(rows: Sequence[Row], root: Path) -> Any:
    """Write a report as CodeQL does: rules of an extension, no column; results that are closed."""
    paths = sorted({path for path, *_ in rows})
    rules = [{"id": "R1", "defaultConfiguration": {"level": "warning"}}, {"id": "R2"}]
    results: list[dict[str, Any]] = []
    for path, line, rule, message in rows:
        artifact = {"index": paths.index(path), "uri": path, "uriBaseId": "%SRCROOT%"}
        row = {"ruleId": rule, "message": {"text": message}, "locations": [_location(artifact, {"startLine": line})]}
        reference = {"id": rule, "index": int(rule == "R2"), "toolComponent": {"index": 0}}
        row |= {"rule": reference, "partialFingerprints": {"primaryLocationLineHash": f"{line}:1"}}
        results += [row, {**row, "suppressions": [{"kind": "inSource"}]}, {**row, "baselineState": "absent"}]
        results += [{**row, "kind": "pass", "level": "none"}]
    return {
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "CodeQL"}, "extensions": [{"name": "codeql/queries", "rules": rules}]},
                "originalUriBaseIds": {"%SRCROOT%": {"uri": f"{root.as_uri()}/"}},
                "artifacts": [{"location": {"uri": path, "uriBaseId": "%SRCROOT%"}} for path in paths],
                "results": results,
                "columnKind": "utf16CodeUnits",
            }
        ],
    }


def _location(artifact: Any, region: Any) -> Any:
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


SHAPES: dict[str, Callable[[Sequence[Row], Path], Any]] = {"ruff": ruff, "semgrep": semgrep, "codeql": codeql}


def plant(seed: int) -> tuple[dict[str, str], dict[str, str], set[tuple[str, int]]]:
    """Return the files of a base, those of a work, and the places of findings in the work that are new."""
    chance = random.Random(seed)
    before, after, new = dict[str, str](), dict[str, str](), set[tuple[str, int]]()
    for at in range(5):
        path, made = f"src/part {at}/m{at}.py", iter(range(10_000))
        lines = [f"value_{at}_{next(made)} = {chance.random()}" for _ in range(40)]
        spots = chance.sample(range(2, 38), 8)
        for spot in spots:
            lines[spot] = f"{'WORSE' if spot % 3 == 0 else 'BAD'}_{at}_{spot} = 1"
        before[path] = "\n".join(lines)
        # Each line with whether it is new; what happens to the findings is drawn.
        work = [(line, False) for line in lines]
        for spot in spots:
            here = next(index for index, (line, _) in enumerate(work) if line == lines[spot])
            match chance.choice(["stay", "indent", "push down", "move", "fix", "copy", "replace"]):
                case "indent":
                    work[here] = (f"    {lines[spot]}  ", False)
                case "push down":
                    work[here:here] = [(f"above_{at}_{next(made)} = 0", False) for _ in range(chance.randint(1, 9))]
                case "move":
                    row = work.pop(here)
                    work.insert(chance.randrange(len(work)), row)
                case "fix":
                    work[here] = (f"good_{at}_{next(made)} = 1", False)
                case "copy":
                    # Its neighbours are new lines, and those of the old one stay.
                    end = [
                        (f"more_{at}_{next(made)} = 0", False),
                        (lines[spot], True),
                        (f"end_{at}_{next(made)} = 0", False),
                    ]
                    work += end
                case "replace":
                    work[here] = (f"BAD_new_{at}_{next(made)} = 2", True)
                case _:
                    pass
        work.insert(chance.randrange(len(work)), (f"WORSE_new_{at}_{next(made)} = 3", True))
        after[path] = "\n".join(line for line, _ in work)
        new |= {(path, number) for number, (_, is_new) in enumerate(work, 1) if is_new}
    # The same line in another file, and all of a new file, is new.
    after["src/other.py"] = "\n".join(line for line in before["src/part 0/m0.py"].split("\n") if "BAD" in line)
    new |= {("src/other.py", number) for number in range(1, after["src/other.py"].count("\n") + 2)}
    return before, after, new


@pytest.mark.parametrize("shape", SHAPES)
def test_two_hundred_planted_findings_of_checkers_are_told_apart(tmp_path: Path, shape: str) -> None:
    counted = {"new": 0, "old": 0}
    for seed in range(7):
        before, after, new = plant(seed)
        results: list[Any] = []
        for name, files in (("before", before), ("after", after)):
            root = write(tmp_path / f"{seed}/{name}", files)
            report = SHAPES[shape](scan(files), root)
            results.append(read_sarif(json.dumps(report).encode(), Place(str(root), "", root)))
        assert len(results[1]) == len(scan(after))
        found = {(row.path, row.line) for row in new_results(*results)}
        assert found == new
        counted["new"] += len(new)
        counted["old"] += len({(path, line) for path, line, *_ in scan(after)} - new)
    assert min(counted.values()) > 90
    assert sum(counted.values()) > 200


def test_a_report_reads_no_file_outside_of_the_export(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the machine\n")
    root = write(tmp_path / "export", {"a.py": "inside\n"})
    for name in ("a.py", "../secret", str(tmp_path / "secret"), (tmp_path / "secret").as_uri()):
        location = _location({"uri": name}, {"startLine": 1})
        results = [{"ruleId": "R", "message": {"text": "wrong"}, "locations": [location]}]
        report = {"runs": [{"tool": {"driver": {"name": "x"}}, "results": results}]}
        (found,) = read_sarif(json.dumps(report).encode(), Place("/checkout", "", root))
        assert found.text == ("inside" if name == "a.py" else "wrong")


def test_planted_tests_that_fail_are_told_apart() -> None:
    chance, rows = random.Random(3), dict[str, tuple[str, str]]()
    for number in range(200):
        was, now = chance.choice(["passed", "failed", "absent"]), chance.choice(["passed", "failed", "skipped"])
        # What passed and is skipped now is a fault of its own.
        now = "failed" if (was, now) == ("passed", "skipped") else now
        rows[f"test_{number}"] = (was, now)

    def report(at: int) -> TestRun:
        top = ET.Element("testsuite")
        for name, row in rows.items():
            if row[at] != "absent":
                case = ET.SubElement(top, "testcase", {"file": "t.py", "name": name})
                case.extend([ET.Element({"failed": "failure"}.get(row[at], row[at]))] if row[at] != "passed" else [])
        return read_report("junit", ET.tostring(top), 1)

    base = BaseTests(report(0))
    faults = compare(base, report(1), free=lambda _path: False, allow_failing=base.failing()).faults
    found = {fault.field.rpartition("::")[2] for fault in faults}
    assert found == {name for name, (was, now) in rows.items() if was != "failed" == now}
    assert min(len(found), len(rows) - len(found)) > 60


@pytest.mark.parametrize("form", ["cobertura", "coverage.py"])
def test_planted_lines_that_did_not_run_are_told_apart(tmp_path: Path, form: str) -> None:
    chance, covered = random.Random(5), 0
    before, after, report, expected = dict[str, bytes](), dict[str, bytes](), dict[str, dict[int, bool]](), set[str]()
    for at in range(30):
        path = f"src/m{at}.py"
        old = [f"old_{at}_{number}()" for number in range(40)]
        work = [(line, False) for line in old]
        for _ in range(12):
            index = chance.randrange(len(work))
            match chance.choice(["add", "change", "move", "remove"]):
                case "add":
                    work.insert(index, (f"new_{at}_{chance.random()}()", True))
                case "change":
                    work[index] = (f"changed_{at}_{chance.random()}()", True)
                case "move":
                    row = work.pop(index)
                    work.insert(chance.randrange(len(work)), row)
                case _:
                    work.pop(index)
        before[path], after[path] = ("\n".join(text).encode() for text in (old, [line for line, _ in work]))
        ran = {number: chance.random() < 0.5 for number in range(1, len(work) + 1) if chance.random() < 0.8}
        report[path] = ran
        expected |= {f"{path}:{n}" for n, (_, is_new) in enumerate(work, 1) if is_new and ran.get(n) is False}
        covered += sum(is_new and ran.get(n, False) for n, (_, is_new) in enumerate(work, 1))
        write(tmp_path, {path: after[path].decode()})
    data = _cobertura(report, tmp_path) if form == "cobertura" else _coverage_py(report)
    read = read_coverage(data, Place("/checkout", "", tmp_path))
    assert read == report
    found = covered_changes(read, {path: (before[path], after[path]) for path in after})
    assert ({*found.missed}, found.covered) == (expected, covered)
    assert min(len(expected), found.covered) > 60


def _cobertura(report: Mapping[str, Mapping[int, bool]], _root: Path) -> bytes:
    top = ET.Element("coverage")
    for source in ("/elsewhere", "/checkout/src"):
        ET.SubElement(ET.SubElement(top, "sources"), "source").text = source
    classes = ET.SubElement(ET.SubElement(ET.SubElement(top, "packages"), "package"), "classes")
    for path, lines in report.items():
        # Two classes of one file, of which one saw nothing run.
        for part in (lines, dict.fromkeys(lines, False)):
            rows = ET.SubElement(ET.SubElement(classes, "class", {"filename": path.removeprefix("src/")}), "lines")
            for number, ran in part.items():
                ET.SubElement(rows, "line", {"number": str(number), "hits": str(3 * ran)})
    return ET.tostring(top)


def _coverage_py(report: Mapping[str, Mapping[int, bool]]) -> bytes:
    files: dict[str, Any] = {}
    for path, lines in report.items():
        ran = {kind: [n for n, each in lines.items() if each is kind] for kind in (True, False)}
        files[path] = {"executed_lines": ran[True], "missing_lines": ran[False], "excluded_lines": [1]}
    return json.dumps({"meta": {"format": 3}, "files": files}).encode()


@given(st.lists(st.sampled_from("abc  ")), st.randoms())
@settings(max_examples=examples(300))
def test_lines_in_another_order_or_with_other_blanks_are_not_new(lines: list[str], chance: random.Random) -> None:
    other = [f" {line}\t" for line in lines]
    chance.shuffle(other)
    assert new_lines("\n".join(lines).encode(), "\n".join(other).encode()) == {}
    assert len(new_lines(b"", "\n".join([*lines, "x"]).encode())) >= 1


def test_a_file_that_no_report_names_counts_line_by_line_where_its_like_is_measured() -> None:
    changed = {"src/new.py": (b"", b"import os\n\nprint(os)\n"), "README.md": (b"", b"text\n")}
    found = covered_changes({"src/a.py": {1: True}}, changed)
    assert (found.covered, found.lines, found.missed) == (0, 2, ("src/new.py:1", "src/new.py:3"))
    assert covered_changes({}, changed).percent == 100.0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"runs": 3}',
        b'{"runs": [{"tool": {}, "results": [{}]}]}',
        b"[" * 10**5,
        b'{"runs": [{"tool": {"driver": {}}, "invocations": [{"executionSuccessful": false}], "results": []}]}',
    ],
)
def test_what_is_no_report_is_refused(data: bytes) -> None:
    wrong = (LookupError, TypeError, ValueError, AttributeError, ET.ParseError, RecursionError)
    place = Place("/nowhere", "", Path("/nowhere"))
    with pytest.raises(wrong):
        read_sarif(data, place)
    with pytest.raises(wrong):
        read_coverage(data, place)


# -- through real gates, with real programs ----------------------------------------------------------------------------

OLD = "import os\nimport sys\n\n\ndef f():\n    x = 1\n    return sys\n"


def ruff_project(root: Path, **more: Any) -> Sealed:
    """Make a project whose gate is ruff, with findings that the base has."""
    write(root, {".gitignore": ".venv/\n"})
    ruff_program = shutil.which("ruff", path=str(Path(pytest.__file__).parents[4] / "bin"))
    assert ruff_program
    (root / ".venv/bin").mkdir(parents=True)
    shutil.copy(ruff_program, root / ".venv/bin/ruff")
    command = (
        ".venv/bin/ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--output-format=sarif",
        "--output-file=out.sarif",
        ".",
    )
    files = {".gitignore": ".venv/\n", "src/a.py": OLD, "tests/t.py": "import os\n"}
    keys = {"keep": (".venv",), "product": ("src/**",), "tests": ("tests/**",), "sarif": "out.sarif", **more}
    return project(root, files, *command, **keys)


def test_a_gate_refuses_what_ruff_finds_new_and_lets_pass_what_the_base_has(tmp_path: Path) -> None:
    made = ruff_project(tmp_path / "p", new_only=True)
    assert {row.rule for row in made.check.tests.run.results} == {"F401", "F841"}
    moved = OLD.replace("def f", "def g():\n    return None\n\n\ndef f")
    assert kinds(made.judge({"src/a.py": f"# first\n{moved}"})) == []
    assert kinds(made.judge({"src/a.py": "import sys\n\n\ndef f():\n    return sys\n"})) == []
    worse = made.judge({"src/a.py": moved.replace("return None", "y = 2"), "src/b.py": "import json\n"})
    assert [fault.found.split()[:2] for fault in worse.faults] == [["src/a.py:6:5", "F841"], ["src/b.py:1:8", "F401"]]
    # What the work makes unused is new, although its line is as it was.
    unused = made.judge({"src/a.py": OLD.replace("return sys", "return x")})
    assert [fault.found.split()[:2] for fault in unused.faults] == [["src/a.py:2:8", "F401"]]


@pytest.mark.long
def test_without_new_only_every_finding_is_a_fault_and_a_crash_is_no_success(tmp_path: Path) -> None:
    made = ruff_project(tmp_path / "p")
    assert len(made.judge({"src/a.py": f"{OLD}\n"}).faults) == 3
    report = "echo '{\"runs\": []}' > out.sarif"
    for shell, work, found in (
        (f"{report}; exit 1", "y", []),
        (f"{report}; exit $(cat src/a.py)", "3", ["exit_status"]),
        (f"test $(cat src/a.py) = 0 || exit 1; {report}", "2", ["unread"]),
    ):
        keys: dict[str, Any] = {"product": ("src/**",), "sarif": "out.sarif"}
        script = project(tmp_path / work, {"src/a.py": "0\n"}, "sh", "-c", shell, **keys)
        assert kinds(script.judge({"src/a.py": f"{work}\n"})) == found


CALC = "def half(x):\n    return x / 2\n"
MORE = "\n\ndef sign(x):\n    if x < 0:\n        return -1\n    return 1\n"
TESTS = "from src.calc import half\n\ndef test_half():\n    assert half(4) == 2\n"
SIGN = "from src.calc import sign\n\ndef test_sign():\n    assert sign(3) == 1\n"


@pytest.mark.long
@pytest.mark.parametrize("report", ["xml", "json"])
def test_a_gate_asks_for_coverage_of_the_changed_lines(tmp_path: Path, report: str) -> None:
    run = f".venv/bin/coverage run --source=src -m pytest -q && .venv/bin/coverage {report} -o cov.out"
    files = {
        "src/calc.py": CALC,
        "src/__init__.py": "",
        "tests/test_calc.py": TESTS,
        "pytest.ini": "[pytest]\npythonpath = .\n",
    }
    made = project(tmp_path / "p", files, "sh", "-c", run, coverage="cov.out", min_changed_coverage=75.0)
    few = made.judge({"src/calc.py": CALC + MORE})
    assert (kinds(few), few.faults[0].found) == (
        ["changed_lines"],
        "1 of 4 ran; not src/calc.py:6, src/calc.py:7, src/calc.py:8",
    )
    enough = made.judge({"src/calc.py": CALC + MORE, "tests/test_sign.py": SIGN})
    assert (kinds(enough), enough.changed_lines and enough.changed_lines[:2]) == ([], (3, 4))
    # A module that nothing imports did not run, and moved lines are not new.
    assert kinds(made.judge({"src/calc.py": CALC, "src/unused.py": "x = 1\n"})) == ["changed_lines"]
    assert kinds(made.judge({"src/calc.py": f"\n\n{CALC}"})) == []


@pytest.mark.long
def test_tests_that_failed_on_the_base_may_go_on_to_fail_with_new_only(tmp_path: Path) -> None:
    files = {
        "src/calc.py": f"{CALC}x = 1\n",
        "tests/test_calc.py": f"{TESTS}\ndef test_old():\n    assert half(4) == 3\n",
    }
    made = project(tmp_path / "p", {**files, "pytest.ini": "[pytest]\npythonpath = .\n"}, new_only=True)
    assert kinds(made.judge({"src/calc.py": f"{CALC}x = 2\n"})) == []
    assert kinds(made.judge({"src/calc.py": CALC.replace("/ 2", "/ 3")})) == ["failed"]
    assert kinds(made.with_seal(new_only=False).judge({"src/calc.py": f"{CALC}x = 2\n"})) == ["still_failing"]
