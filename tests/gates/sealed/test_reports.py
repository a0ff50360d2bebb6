"""Reports that a command prints or writes: each is read in the form that its runner documents."""

import pytest

from interlock.gates.sealed.execution import Kind, read_report, report_of
from interlock.gates.sealed.outcomes import TestRun
from interlock.gates.sealed.settings import Seal
from tests.table import each_row

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
CASES: list[tuple[Kind, bytes, dict[str, str], list[str]]] = [
    ("go", GO, {"x/calc.TestAdd": "failed", "x/calc.TestSub": "passed", "x/calc.TestSlow": "skipped"}, ["x/bad"]),
    (
        "nextest",
        NEXTEST,
        {
            "calc::calc$tests::adds": "passed",
            "calc::calc$tests::subs": "failed",
            "calc::calc$tests::slow": "skipped",
        },
        [],
    ),
    (
        "junit",
        JUNIT,
        {
            "a.rb::a::t1": "passed",
            "a::t1": "passed",
            "a::t2": "failed",
            "a::t3": "skipped",
            "a::t4": "error",
        },
        [],
    ),
    (
        "junit",
        JUNIT.replace(b'file="a.rb" ', b""),
        {
            "a::t1": "passed",
            "a::t1 (2)": "passed",
            "a::t2": "failed",
            "a::t3": "skipped",
            "a::t4": "error",
        },
        [],
    ),
]


def read(kind: Kind, data: bytes, status: int | None = 1) -> TestRun:
    return read_report(kind, data, status)


@each_row(("kind", "report", "outcomes", "broken"), CASES, ids=lambda value: str(value)[:20])
def test_a_report_is_read(kind: Kind, report: bytes, outcomes: dict[str, str], broken: list[str]) -> None:
    found = read(kind, report)
    assert (found.problem, {case.id: case.outcome for case in found.cases}) == ("", outcomes)
    assert ([path for path, _ in found.broken], found.parsed, found.complete) == (broken, True, True)
    assert all(case.message for case in found.cases if case.outcome == "failed")
    assert not read(kind, report, None).complete


@each_row(
    "report",
    [
        b"",
        b"  \n",
        b"{",
        b"[]",
        b"not a report",
        b"<html/>",
        b"\xff\xfe\x00",
        b"<testsuites/>",
        b'<!DOCTYPE a [<!ENTITY b "c">]>' + JUNIT,
    ],
)
@each_row("kind", ["go", "nextest", "junit"])
def test_what_is_no_report_is_a_problem(kind: Kind, report: bytes) -> None:
    assert read(kind, report, 0).problem


@pytest.mark.parametrize(
    ("command", "kind", "argv"),
    [
        ("go test ./...", "go", "go test -json ./..."),
        ("go test -json ./...", "exit", "go test -json ./..."),
        ("go vet", "exit", "go vet"),
        ("/x/cargo nextest run --all", "nextest", "/x/cargo nextest run --message-format libtest-json --all"),
        ("cargo test", "exit", "cargo test"),
    ],
)
def test_a_command_is_given_what_makes_it_report(command: str, kind: Kind, argv: str) -> None:
    found, words, _ = report_of(command.split(), Seal())
    assert (found, " ".join(words)) == (kind, argv)
    assert report_of(command.split(), Seal(junit="out.xml")) == ("junit", tuple(command.split()), {})
