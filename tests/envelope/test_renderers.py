"""The four renderers: one result, said for people, programs, scanners and GitHub. No file drives a terminal."""

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from interlock.core.finding import FINDING_KEYS, Edit, Finding
from interlock.core.render import FORMS
from interlock.core.rule import Rule
from interlock.envelope import Report, parse, render
from interlock.envelope.protocol import LABELS
from interlock.envelope.renderers import FileResult, render_results, source_line
from interlock.envelope.template import example
from tests.table import each_row

TEXT = "STATUS: DONE\nTASK_ID: HOME-UI-001\nTASK: café \tthen\x1b[31m 東京 🎉 done\n"
RULES = (
    Rule("ENV301", "error", "STATUS is one of six", "Strict Envelope §3 STATUS", "", "STATUS: BLOCKED", "STATUS: DONE"),
    Rule("ENV999", "note", "Never said here", "ours", "", "x", "y"),
)
STATUS = Finding(
    "ENV301",
    "error",
    "STATUS",
    "`DONE` is not a status.",
    "`DONE`",
    "one of BLOCKED, IN_PROGRESS",
    "Replace line 1 with `STATUS: IN_PROGRESS`.",
    1,
    9,
    "Strict Envelope §3 STATUS",
    (Edit("replace", 1, 1, "STATUS: IN_PROGRESS"),),
)
WARNING = Finding("ENV309", "warning", "TASK", "A wide place: 100%, a:b", "東京", "words", "Leave it.", 3, 27, "ours")
NOTE = Finding("EVD566", "note", "EVIDENCE.a11y", "No place.\r\nTwo lines.", "x", "y", "Nothing.", 0, 0, "ours")


def result(path: str, *findings: Finding, text: str = TEXT, normalised: tuple[str, ...] = ()) -> FileResult:
    """Return the result of a file with these findings in place of its own."""
    return FileResult(path, findings, Report(replace(parse(text), normalised=normalised), findings))


BAD = result("docs/my answer,1%.md", STATUS, WARNING, NOTE, normalised=("a code fence",))
GOOD = result("good.md", text=render(example("web-design-lead", outcome="progress")))


def sarif(*results: FileResult) -> dict[str, Any]:
    return json.loads(render_results(results, "sarif", rules=RULES, version="1.2.3"))


def test_the_text_is_printed_as_reviewed(snapshot: SnapshotAssertion):
    assert render_results([BAD, GOOD], "text", rules=RULES, version="1.2.3") == snapshot


def test_colours_frame_the_same_text():
    plain = render_results([BAD, GOOD], "text")
    coloured = render_results([BAD, GOOD], "text", color=True)
    assert coloured != plain
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == plain


@settings(max_examples=30)
@given(hostile=st.text(max_size=200))
def test_no_renderer_lets_a_file_drive_the_terminal(hostile: str):
    finding = Finding("ENV301", "error", "STATUS", hostile, hostile, hostile, hostile, 1, 3, "ours")
    checked = result(hostile, finding, text=hostile, normalised=(hostile,))
    for form in FORMS:
        printed = render_results([checked], form)
        assert all(character == "\n" or character.isprintable() for character in printed), form
        if form == "github":
            assert printed.count("\n") == 1


@each_row(
    ("line", "column", "shown", "before"),
    [
        ("STATUS: X", 9, "STATUS: X", 8),
        ("a\tb", 3, "a    b", 5),
        ("a\x1b[1mb", 6, "a\\u{001B}[1mb", 12),
        ("a\u202eb", 3, "a\\u{202E}b", 9),
        ("abc", 4, "abc", 3),
        ("abc", 99, "abc", 3),
        ("", 1, "", 0),
    ],
)
def test_the_caret_is_under_the_character(line: str, column: int, shown: str, before: int):
    assert source_line(line, column) == (shown, before)


def test_a_long_line_is_cut_on_both_sides_of_the_caret():
    shown, before = source_line("a" * 5000 + "X" + "b" * 5000, 5001)
    assert shown[before] == "X"
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) < 110


def test_json_has_the_promised_keys_and_nothing_else():
    found = json.loads(render_results([BAD, GOOD], "json"))
    assert found["schema"] == "interlock.findings/1"
    keys = {"path", "ok", "status", "effective_status", "envelope", "normalised", "findings"}
    assert [set(row) for row in found["files"]] == [keys, keys]
    assert [list(row) for row in found["files"][0]["findings"]] == [list(FINDING_KEYS)] * 3
    assert [row["ok"] for row in found["files"]] == [False, True]
    assert found["files"][1]["envelope"]["evidence"] == {"screenshots": [], "a11y": [], "console": [], "reports": []}
    assert list(found["files"][1]["envelope"]) == [label.lower() for label in LABELS]


def test_warnings_and_notes_leave_a_file_valid():
    assert FileResult("x", (WARNING, NOTE)).ok
    assert not FileResult("x", (WARNING, STATUS)).ok


def test_sarif_names_its_version_rules_places_and_levels():
    log = sarif(BAD, GOOD)
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    run = log["runs"][0]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"], run["columnKind"]) == ("validate-envelope", "1.2.3", "unicodeCodePoints")
    assert [rule["id"] for rule in driver["rules"]] == ["ENV301"]
    assert driver["rules"][0]["defaultConfiguration"] == {"level": "error"}
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    assert run["results"][0]["ruleIndex"] == 0
    assert "ruleIndex" not in run["results"][1]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert places[0]["region"] == {"startLine": 1, "startColumn": 9}
    assert "region" not in places[2]
    for place in places:
        location = place["artifactLocation"]
        assert re.fullmatch(r"[A-Za-z0-9/._~%-]+", location["uri"])
        assert unquote(location["uri"]) == BAD.path == unquote(run["artifacts"][location["index"]]["location"]["uri"])
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_sarif_says_that_a_file_could_not_be_read():
    assert sarif(FileResult("gone.md", (STATUS,)))["runs"][0]["invocations"] == [{"executionSuccessful": False}]


def test_sarif_writes_an_absolute_path_as_a_file_address():
    run = sarif(result("/tmp/a b.md", STATUS))["runs"][0]
    assert run["artifacts"][0]["location"]["uri"] == "file:///tmp/a%20b.md"


def test_services_get_the_line_breaks_of_what_was_found():
    one = result("a.md", Finding("ENV301", "error", "STATUS", "m", "a\nb\x1b"))
    assert "\nFound: a\nb\\u{001B}" in sarif(one)["runs"][0]["results"][0]["message"]["text"]
    assert "found: a%0Ab\\u{001B}" in render_results([one], "github")


def test_github_annotations_escape_what_would_end_them():
    first, second, third = render_results([BAD], "github").splitlines()
    assert first.startswith("::error file=docs/my answer%2C1%25.md,line=1,col=9,title=ENV301 STATUS::`DONE` is")
    assert second.startswith("::warning file=docs/my answer%2C1%25.md,line=3,col=27,")
    assert "::A wide place: 100%25, a:b%0Afound" in second
    assert third.startswith("::notice file=docs/my answer%2C1%25.md,line=1,title=EVD566 EVIDENCE.a11y::")


def test_a_value_that_is_too_long_to_read_is_cut_for_people_and_whole_for_programs():
    long = Finding("ENV301", "error", "STATUS", "m", "x" * 9000, "e", "f", 1, 1, "ours")
    checked = result("a.md", long, text="STATUS: x")
    assert len(render_results([checked], "text")) < 1000
    assert json.loads(render_results([checked], "json"))["files"][0]["findings"][0]["found"] == "x" * 9000
