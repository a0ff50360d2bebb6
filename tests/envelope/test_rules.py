"""The rule table: each row has its clause, its examples, and a way to be broken."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from interlock.core.rule import Rule
from interlock.envelope import RULES, RULES_BY_CODE, Report, validation
from interlock.envelope.protocol import LABELS
from tests.envelope.broken import BROKEN
from tests.envelope.texts import APPROVAL, BUILD, FAIL, IN_PROGRESS, IN_QA, IN_REVIEW, QA, blocks, change, check, codes
from tests.table import each_row


def _code(rule: Rule) -> str:
    return rule.code


def test_codes_are_unique_and_in_order() -> None:
    codes = [rule.code for rule in RULES]
    assert (codes, list(RULES_BY_CODE)) == (sorted(set(codes)), codes)
    assert all(re.fullmatch(r"ENV[1-4][0-9]{2}", code) for code in codes)


@each_row("rule", RULES, ids=_code)
def test_each_row_says_what_why_and_how_to_fix(rule: Rule) -> None:
    assert rule.title.endswith(".")
    assert rule.remedy.endswith(".")
    assert re.match(r"Strict Envelope §[1-6]|Interlock: ", rule.source)


def test_each_section_and_each_field_of_the_source_with_rules_for_a_response_has_rows() -> None:
    sections = {rule.source.partition("Strict Envelope §")[2][:1] for rule in RULES}
    assert set("12346") <= sections
    texts = [rule.source + rule.title for rule in RULES]
    assert [label for label in LABELS if not any(label in text for text in texts)] == []


BY_HAND: dict[str, Callable[[], Report]] = {
    "ENV101": lambda: check(BUILD, max_bytes=10),
    "ENV102": lambda: check(" \n"),
    "ENV103": lambda: check(BUILD.encode().replace(b"home", b"caf\xe9")),
    "ENV223": lambda: check("I built the page."),
    "ENV224": lambda: check(f"{BUILD}\n{BUILD}", extract=True),
}


@each_row("code", BY_HAND)
def test_what_is_no_single_fault_of_a_field_is_refused_as_a_whole(code: str) -> None:
    assert codes(BY_HAND[code]()) == {code}


def test_a_letter_that_only_looks_like_the_one_expected_is_named() -> None:
    report = check(BUILD.replace("READY_FOR_QA", "READY_FOR_Q\u0410"), **IN_PROGRESS)
    assert [finding.found for finding in report.findings] == [
        "`READY_FOR_Q\u0410`, with U+0410 CYRILLIC CAPITAL LETTER A"
    ]


def test_every_row_is_broken_by_a_test() -> None:
    tried = {code for case in BROKEN for code in case.codes} | set(BY_HAND)
    assert set(RULES_BY_CODE) - tried == {"ENV299", "ENV315"}


def test_a_text_that_the_grammar_refuses_and_no_rule_explains_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads_nothing(text: str) -> None:
        return None

    monkeypatch.setattr(validation, "read_tree", reads_nothing)
    report = check(BUILD, **IN_PROGRESS)
    assert codes(report) == {"ENV299"}
    assert report.effective_status == "BLOCKED"


def test_a_text_that_the_grammar_accepts_is_not_read_by_the_scanner(monkeypatch: pytest.MonkeyPatch) -> None:
    def scans(lines: object) -> None:
        raise AssertionError(lines)

    monkeypatch.setattr(validation, "scan", scans)
    for text in (BUILD, f"Done.\n```\n{BUILD}```\n"):
        report = check(text, **IN_PROGRESS, extract=True)
        assert report.ok
        assert report.envelope is not None


def test_a_path_to_evidence_in_output_is_a_warning_and_no_error() -> None:
    report = check(change(BUILD, OUTPUT="OUTPUT:\nSee artifacts/a.png for it."), **IN_PROGRESS)
    assert [(finding.code, finding.level, finding.line, finding.column) for finding in report.findings] == [
        ("ENV315", "warning", 23, 5)
    ]
    assert report.ok
    assert report.as_reask() == ""


@pytest.mark.parametrize(("inputs", "level"), [("warn", "warning"), ("must-exist", "error")])
def test_a_missing_input_is_as_strict_as_the_caller_says(inputs: Any, level: str) -> None:
    report = check(BUILD, input_exists={}.__contains__, inputs=inputs, **IN_PROGRESS)
    assert {(finding.code, finding.level) for finding in report.findings} == {("ENV316", level)}
    assert [finding.line for finding in report.findings] == [7, 8]


@each_row(
    ("items", "paths"),
    [
        ("the brief\n- src/**/*.ts\n- https://example.org/a", []),
        *((f"a/b.md{remark}", ["a/b.md"]) for remark in ("", " (part 2)", " [part 2]", ":10", ":10-20 (x)")),
    ],
)
def test_an_input_is_looked_for_without_its_remark_and_lines_where_it_is_a_path(items: str, paths: list[str]) -> None:
    asked: list[str] = []

    def seen(path: str) -> bool:
        asked.append(path)
        return True

    text = change(BUILD, INPUTS_USED=f"INPUTS_USED:\n- {items}")
    check(text, input_exists=seen, **IN_PROGRESS)
    assert asked == paths


@each_row(
    "output",
    [
        "<main>",
        "Done.\n ST\u0410TUS: x",
        "Done.\n\u0417\u0410\u0414\u0410\u0427\u0410: x",
        "Done.\nS\u00fcd: x",
    ],
)
def test_markup_and_other_letters_in_output_are_free(output: str) -> None:
    assert check(change(BUILD, OUTPUT=f"OUTPUT:\n{output}"), **IN_PROGRESS).findings == ()


def test_an_agent_outside_the_roster_cannot_be_expected() -> None:
    report = check(BUILD, agent="nobody", **IN_PROGRESS)
    assert codes(report) == {"ENV303"}


def test_a_gate_that_the_journal_holds_may_be_listed_by_any_agent() -> None:
    text = change(
        BUILD,
        GATES_PASSED="GATES_PASSED: [GATE-CODE-REVIEW]",
        EVIDENCE="EVIDENCE:\nscreenshots: []\na11y: []\nconsole: []\nreports: [artifacts/a.md]",
    )
    assert codes(check(text, **IN_PROGRESS)) == {"ENV413"}
    assert check(text, certified=["GATE-CODE-REVIEW"], **IN_PROGRESS).ok


@each_row(
    ("text", "context", "verdict"),
    [
        (QA, IN_QA, "PASS"),
        (change(FAIL, GATES_PASSED="GATES_PASSED: []"), IN_QA, "FAIL"),
        (change(QA, GATES_PASSED="GATES_PASSED: []"), IN_QA, None),
        (QA, {}, None),
        (BUILD, IN_PROGRESS, None),
        (APPROVAL, IN_REVIEW, None),
    ],
)
def test_a_verdict_is_derived_and_never_stated(text: str, context: dict[str, Any], verdict: str | None) -> None:
    assert check(text, **context).verdict == verdict


def test_a_pass_may_repeat_the_failure_of_another_gate_that_the_journal_holds() -> None:
    text = change(QA, FAIL_REASONS="FAIL_REASONS:\n- GATE-A11Y-BASELINE: contrast is too low")
    report = check(text, failed=["GATE-A11Y-BASELINE"], **IN_QA)
    assert (report.findings, report.verdict) == ((), "PASS")


def test_findings_of_other_checks_are_kept_in_the_order_of_the_text() -> None:
    report = check(BUILD, **IN_PROGRESS)
    wrong = check(change(BUILD, REPORTS_TO="REPORTS_TO: me", TASK_ID="TASK_ID: x"), **IN_PROGRESS).findings
    joined = report.with_findings(reversed(wrong))
    assert [finding.code for finding in joined.findings] == ["ENV302", "ENV304"]
    assert not joined.ok
    assert (joined.effective_status, joined.status) == ("BLOCKED", "READY_FOR_QA")


def test_the_fields_say_where_each_evidence_entry_is() -> None:
    fields = check(QA, **IN_QA).reading.fields
    entries = [(item.text, item.line, item.column) for item in fields["EVIDENCE.screenshots"].items]
    assert entries == [("artifacts/screenshots/home-375.png", 10, 15), ("artifacts/screenshots/home-1280.png", 10, 51)]
    assert list(blocks(QA)) == [label for label in fields if "." not in label]
