"""Reports that tested code left: read inside the export alone, each in the form that its runner documents."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from interlock.gates.sealed.execution import read_report, report_place
from interlock.gates.sealed.loaded_code import foreign_code
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.protect import protection
from interlock.gates.sealed.runners import Plan
from interlock.gates.sealed.runners.base import PROBES
from interlock.gates.sealed.runners.python import read_probe
from interlock.gates.sealed.runners.reports import ReportKind, ReportRunner
from interlock.gates.sealed.runners.stream import Events
from tests.table import each_row


def test_links_that_lead_out_of_the_export_are_not_followed(tmp_path: Path) -> None:
    export, outside = tmp_path / "export", tmp_path / "outside"
    (export / "build").mkdir(parents=True)
    outside.mkdir()
    (outside / "report.xml").write_text("forged")
    place = report_place(export, "build/report.xml")
    assert place == str(export / "build/report.xml")
    (export / "build/report.xml").write_text("real")
    assert read_report(place, export, 100) == b"real"
    assert read_report(place, export, 3) == b""
    (export / "build/report.xml").unlink()
    (export / "build").rmdir()
    (export / "build").symlink_to(outside)
    assert report_place(export, "build/report.xml") == ""
    assert read_report(place, export, 100) == b""


@pytest.mark.parametrize(
    "row",
    [{"e": "session", "loaded": [1, 3]}, {"e": "session", "loaded": 7}, {"e": "collected", "ids": [5]},
     {"e": "case"}, {"e": "crashed", "id": [], "message": "x"}],
    ids=str,
)  # fmt: skip
def test_an_event_of_another_shape_is_one_that_tested_code_changed(row: dict[str, Any]) -> None:
    run = read_probe("pytest", Events([("", row)]), [], 0)
    assert (run.complete, "not as the probe writes it" in run.judge) == (False, True)


def test_installed_packages_keep_their_content_also_where_the_base_has_them() -> None:
    assert protection((), ()).holds("node_modules/eq/index.js", in_base=True)
    assert not protection((), ("node_modules/**",)).holds("node_modules/eq/index.js", in_base=True)


def test_a_module_of_a_package_is_not_its_namesake_at_the_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.gates.sealed.sandbox.PRIVATE", ())  # where the folders of tests may lie
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/utils.py").touch()
    case = SimpleNamespace(base=SimpleNamespace(top=Path("/project"), outside=str), kept=())
    loaded = [str(tmp_path / "lib/utils.py")]
    assert foreign_code(cast("Any", case), ["utils.py"], loaded) == f"{loaded[0]} was loaded in place of utils.py"
    (tmp_path / "lib/__init__.py").touch()
    assert foreign_code(cast("Any", case), ["utils.py"], loaded) == ""


GO = b"""{"Action":"start","Package":"x/calc"}
{"Action":"run","Package":"x/calc","Test":"TestAdd"}
{"Action":"output","Package":"x/calc","Test":"TestAdd","Output":"calc_test.go:9: 4 != 5\\n"}
{"Action":"fail","Package":"x/calc","Test":"TestAdd","Elapsed":0.5}
{"Action":"pass","Package":"x/calc","Test":"TestSub","Elapsed":0}
{"Action":"skip","Package":"x/calc","Test":"TestSlow","Elapsed":0}
{"Action":"fail","Package":"x/calc","Elapsed":0.6}
{"ImportPath":"x/bad [x/bad.test]","Action":"build-output","Output":"bad.go:1: syntax error\\n"}
{"Action":"fail","Package":"x/bad","Elapsed":0,"FailedBuild":"x/bad [x/bad.test]"}
"""
# Written by hand from the documentation of libtest's JSON, which nextest prints; cargo-nextest was not at hand.
NEXTEST = b"""   Compiling calc v0.1.0
{"type":"suite","event":"started","test_count":3}
{"type":"test","event":"started","name":"calc::calc$tests::adds"}
{"type":"test","event":"ok","name":"calc::calc$tests::adds","exec_time":0.004}
{"type":"test","event":"failed","name":"calc::calc$tests::subs","exec_time":0.002,"stdout":"assertion failed"}
{"type":"test","event":"ignored","name":"calc::calc$tests::slow"}
{"type":"suite","event":"failed","passed":1,"failed":1,"ignored":1}
"""
JUNIT = b"""<?xml version="1.0"?><testsuites><testsuite name="s">
<testcase classname="a" name="t1" file="a.rb" time="0.25"/><testcase classname="a" name="t1"/>
<testcase classname="a" name="t2"><failure message="no">trace</failure></testcase>
<testcase classname="a" name="t3"><skipped/></testcase><testcase classname="a" name="t4"><error/></testcase>
</testsuite></testsuites>"""
JEST = json.dumps({
    "testResults": [
        {"name": "/p/a.test.js", "status": "failed", "assertionResults": [
            {"ancestorTitles": ["math"], "title": "adds", "status": "passed", "duration": 5},
            {"ancestorTitles": [], "title": "subs", "status": "failed", "failureMessages": ["\x1b[31mno\x1b[39m"]},
            {"ancestorTitles": [], "title": "later", "status": "todo"},
        ]},
        {"name": "/p/b.test.js", "status": "failed", "message": "Cannot find module", "assertionResults": []},
    ]
}).encode()  # fmt: skip


def read(kind: ReportKind, report: bytes, argv: tuple[str, ...] = ("x",), status: int = 1) -> TestRun:
    runner = ReportRunner(kind, argv, {}, "out/junit.xml")
    launch = runner.launch(Plan("/p", {}, 3, 4, "/r/report"))
    return runner.read(launch, b"", report, exit_status=status)


CASES: list[tuple[ReportKind, tuple[str, ...], bytes, dict[str, str], list[str]]] = [
    ("go", ("go", "test"), GO, {"x/calc.TestAdd": "failed", "x/calc.TestSub": "passed", "x/calc.TestSlow": "skipped"},
     ["x/bad"]),
    ("nextest", ("cargo", "nextest", "run"), NEXTEST, {
        "calc::calc$tests::adds": "passed", "calc::calc$tests::subs": "failed",
        "calc::calc$tests::slow": "skipped",
    }, []),
    ("junit", ("x",), JUNIT, {
        "a.rb::a::t1": "passed", "a::t1": "passed", "a::t2": "failed",
        "a::t3": "skipped", "a::t4": "error",
    }, []),
    ("jest", ("jest",), JEST, {
        "a.test.js > math > adds": "passed", "a.test.js > subs": "failed", "a.test.js > later": "skipped",
    }, ["b.test.js"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "argv", "report", "outcomes", "broken"), CASES, ids=[row[0] for row in CASES])
def test_a_report_is_read(
    kind: ReportKind, argv: tuple[str, ...], report: bytes, outcomes: dict[str, str], broken: list[str]
) -> None:
    found = read(kind, report, argv)
    assert (found.problem, {case.id: case.outcome for case in found.cases}) == ("", outcomes)
    assert [path for path, _ in found.broken] == broken
    failed = next(case for case in found.cases if case.outcome == "failed")
    assert failed.message
    assert "\x1b" not in failed.message


@each_row("report", [b"", b"  \n", b"{", b"[]", b"not a report", b"<html/>", b"\xff\xfe\x00"])
@each_row(("kind", "argv"), [(row[0], row[1]) for row in CASES])
def test_what_is_no_report_is_a_problem(kind: ReportKind, argv: tuple[str, ...], report: bytes) -> None:
    assert read(kind, report, argv, status=0).problem


def test_a_junit_report_that_declares_entities_is_refused() -> None:
    assert read("junit", b'<!DOCTYPE a [<!ENTITY b "c">]>' + JUNIT).problem


def test_tests_of_one_name_are_distinguished() -> None:
    twice = JUNIT.replace(b'file="a.rb" ', b"")
    assert [case.id for case in read("junit", twice).cases][:2] == ["a::t1", "a::t1 (2)"]


def test_the_command_is_given_what_makes_it_report() -> None:
    plan = Plan("/p", {"PATH": "/bin"}, 3, 4, "/r/report")
    go = ReportRunner("go", ("/bin/go", "test", "./..."), {"A": "b"}).launch(plan)
    assert (go.argv, go.report, dict(go.env)) == (
        ("/bin/go", "test", "-json", f"-exec=/bin/sh '{PROBES}/unreadable.sh'", "./..."), "stdout",
        {"PATH": "/bin", "A": "b", "NODE_OPTIONS": f'--require "{PROBES}/no_debugger.cjs"'})  # fmt: skip
    own = ReportRunner("go", ("/bin/go", "test", "-exec", "wrap", "./..."), {}).launch(plan)
    assert own.argv == ("/bin/go", "test", "-json", "-exec", "wrap", "./...")
    vitest = ReportRunner("vitest", ("/bin/vitest", "run"), {"NODE_OPTIONS": "--no-warnings"}).launch(plan)
    assert vitest.env["NODE_OPTIONS"].startswith('--no-warnings --require "/')
    assert vitest.argv[2:] == ("--reporter=default", "--reporter=json", "--outputFile.json=/r/report")
    assert ReportRunner("junit", ("x",), {}, "out.xml").launch(plan).report_file == "out.xml"
    assert Path(vitest.report_file).is_absolute()
