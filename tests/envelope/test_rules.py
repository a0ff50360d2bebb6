"""The rule table: each row has its clause, its examples, and a way to be broken."""

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from interlock.envelope import LABELS, RULES, RULES_BY_CODE, Report, Rule, validate
from tests.envelope.broken import BROKEN
from tests.envelope.texts import APPROVAL, BUILD, FAIL, IN_PROGRESS, IN_QA, IN_REVIEW, QA, blocks, change, codes
from tests.table import each_row

# Where a rule speaks only in a certain situation, its examples are tried there.
CONTEXT: dict[str, dict[str, Any]] = {
    "ENV316": {"input_exists": "docs/wireframes.md".__eq__, **IN_PROGRESS},
    "ENV417": {"failed": ["GATE-VISUAL-QA"], **IN_PROGRESS},
    "ENV419": IN_QA,
    "ENV420": {"agent": "frontend-implementer", **IN_PROGRESS},
    "ENV421": {"task_id": "HOME-IA-001", **IN_PROGRESS},
    "ENV422": {"gates": ["GATE-MSG-STRICT", "GATE-VISUAL-QA"], **IN_PROGRESS},
    "ENV411": {},
    "ENV412": {},
    "ENV418": {},
    "ENV423": {},
}
# Examples that are described in words: a size, an encoding, an absence.
IN_WORDS = {"ENV101", "ENV102", "ENV103", "ENV104", "ENV111", "ENV203", "ENV223", "ENV299"}
# Examples whose lines all take the place of these fields.
INSTEAD_OF = {"ENV205": ["TASK_ID", "TASK"], "ENV206": ["GATES_PASSED"], "ENV208": ["OUTPUT"], "ENV209": ["OUTPUT"]}


def _escaped(text: str) -> str:
    return re.sub(r"\\u\{([0-9A-F]+)\}", lambda match: chr(int(match[1], 16)), text)


def _example(rule: Rule, snippet: str) -> tuple[str, dict[str, Any]]:
    """Put a row's example into a whole envelope, in the situation that the example names."""
    context = CONTEXT.get(rule.code, IN_PROGRESS)
    note = re.search(r"\n\(while the task is ([A-Z_]+)\)", snippet)
    if note:
        context = {"current_status": note[1]}
    snippet = re.sub(r"\n\((?:while|when|after) .*\)", "", _escaped(snippet))
    if "visual-qa" in snippet:
        base = QA
    elif "orchestrator" in snippet.partition("ASSIGNED_AGENT:")[2] or rule.code in {"ENV406", "ENV407", "ENV408"}:
        base = APPROVAL if "READY_FOR_QA" not in snippet else BUILD
    else:
        base = BUILD
    if rule.code in INSTEAD_OF:
        first, *others = INSTEAD_OF[rule.code]
        return change(base, **{first: snippet}, **dict.fromkeys(others)), context
    if snippet.partition(":")[0] not in LABELS:
        return f"{snippet}\n{base.partition(chr(10))[2]}", context
    parts: dict[str, str] = {}
    label = ""
    for line in snippet.split("\n"):
        word = line.split(":")[0]
        label = word if word in LABELS and word not in parts else label
        parts[label] = f"{parts.get(label, '')}{line}\n"
    return change(base, **parts), context


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
    assert rule.good != rule.bad


def test_each_section_and_each_field_of_the_source_with_rules_for_a_response_has_rows() -> None:
    sections = {rule.source.partition("Strict Envelope §")[2][:1] for rule in RULES}
    assert set("12346") <= sections
    texts = [rule.source + rule.title for rule in RULES]
    assert [label for label in LABELS if not any(label in text for text in texts)] == []


@each_row("rule", [rule for rule in RULES if rule.code not in IN_WORDS], ids=_code)
def test_the_bad_example_breaks_the_rule_and_the_good_one_keeps_it(rule: Rule) -> None:
    bad, context = _example(rule, rule.bad)
    extract = rule.code == "ENV224"
    assert rule.code in codes(validate(bad, extract=extract, **context))
    good, context = _example(rule, rule.good)
    assert rule.code not in codes(validate(good, extract=extract, **context))


BY_HAND: dict[str, Callable[[], Report]] = {
    "ENV101": lambda: validate(BUILD, max_bytes=10),
    "ENV102": lambda: validate(" \n"),
    "ENV103": lambda: validate(BUILD.encode().replace(b"home", b"caf\xe9")),
    "ENV104": lambda: validate(BUILD.encode("utf-16")),
    "ENV223": lambda: validate("I built the page."),
    "ENV224": lambda: validate(f"{BUILD}\n{BUILD}", extract=True),
}


@each_row("code", BY_HAND)
def test_what_an_example_describes_in_words_is_refused(code: str) -> None:
    assert codes(BY_HAND[code]()) == {code}


def test_every_row_is_broken_by_a_test() -> None:
    tried = {code for case in BROKEN for code in case.codes} | set(BY_HAND)
    warned = {"ENV112", "ENV315", "ENV317"}
    assert set(RULES_BY_CODE) - tried - warned == {"ENV299"}


def test_a_text_that_the_grammar_refuses_and_no_rule_explains_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads_nothing(text: str) -> None:
        return None

    monkeypatch.setattr(sys.modules[validate.__module__], "read_tree", reads_nothing)
    report = validate(BUILD, **IN_PROGRESS)
    assert codes(report) == {"ENV299"}
    assert report.effective_status == "BLOCKED"


def test_a_text_that_the_grammar_accepts_is_not_read_by_the_scanner(monkeypatch: pytest.MonkeyPatch) -> None:
    def scans(lines: object) -> None:
        raise AssertionError(lines)

    monkeypatch.setattr(sys.modules[validate.__module__], "scan", scans)
    for text in (BUILD, f"Done.\n```\n{BUILD}```\n"):
        report = validate(text, **IN_PROGRESS, extract=True)
        assert report.ok
        assert report.envelope is not None


def test_a_path_to_evidence_in_output_is_a_warning_and_no_error() -> None:
    report = validate(change(BUILD, OUTPUT="OUTPUT:\nSee artifacts/a.png for it."), **IN_PROGRESS)
    assert [(finding.code, finding.level, finding.line, finding.column) for finding in report.findings] == [
        ("ENV315", "warning", 23, 5)
    ]
    assert report.ok
    assert report.as_reask() == ""


@pytest.mark.parametrize(("inputs", "level"), [("warn", "warning"), ("must-exist", "error")])
def test_a_missing_input_is_as_strict_as_the_caller_says(inputs: Any, level: str) -> None:
    report = validate(BUILD, input_exists=lambda path: False, inputs=inputs, **IN_PROGRESS)
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
    text = change(BUILD, INPUTS_USED=f"INPUTS_USED:\n- {items}")
    validate(text, input_exists=lambda path: asked.append(path) is None, **IN_PROGRESS)
    assert asked == paths


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("TASK", "TASK: <what was attempted, in one line>"),
        ("INPUTS_USED", "INPUTS_USED:\n- <path of each file that was used>"),
        ("FAIL_REASONS", "FAIL_REASONS:\n- GATE-VISUAL-QA: <what failed, and where>"),
        ("OUTPUT", "OUTPUT:\n\n<the deliverable: what was done, found or decided>\n"),
        ("NEXT_ACTIONS", "NEXT_ACTIONS:\n1. <who does what next>"),
    ],
)
def test_a_placeholder_that_is_left_is_a_warning(field: str, text: str) -> None:
    report = validate(change(BUILD, **{field: text}), **IN_PROGRESS)
    assert [(each.code, each.level, each.field) for each in report.findings] == [("ENV317", "warning", field)]


@each_row(
    "output",
    [
        *("<p class='a'>", "<main>", "One\n<two words>", "a < b and c > d", "Done.\n ST\u0410TUS: x"),
        *("Done.\n> ST\u0410TUS: x", "Done.\n\u0417\u0410\u0414\u0410\u0427\u0410: x", "Done.\nS\u00fcd: x"),
    ],
)
def test_markup_is_no_placeholder_and_other_letters_in_output_are_free(output: str) -> None:
    assert validate(change(BUILD, OUTPUT=f"OUTPUT:\n{output}"), **IN_PROGRESS).findings == ()


def test_an_agent_outside_the_roster_cannot_be_expected() -> None:
    report = validate(BUILD, agent="nobody", **IN_PROGRESS)
    assert codes(report) == {"ENV303"}


def test_a_gate_that_the_journal_holds_may_be_listed_by_any_agent() -> None:
    text = change(
        BUILD,
        GATES_PASSED="GATES_PASSED: [GATE-CODE-REVIEW]",
        EVIDENCE="EVIDENCE:\nscreenshots: []\na11y: []\nconsole: []\nreports: [artifacts/a.md]",
    )
    assert codes(validate(text, **IN_PROGRESS)) == {"ENV413"}
    assert validate(text, certified=["GATE-CODE-REVIEW"], **IN_PROGRESS).ok


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
    assert validate(text, **context).verdict == verdict


def test_a_pass_may_repeat_the_failure_of_another_gate_that_the_journal_holds() -> None:
    text = change(QA, FAIL_REASONS="FAIL_REASONS:\n- GATE-A11Y-BASELINE: contrast is too low")
    report = validate(text, failed=["GATE-A11Y-BASELINE"], **IN_QA)
    assert (report.findings, report.verdict) == ((), "PASS")


def test_findings_of_other_checks_are_kept_in_the_order_of_the_text() -> None:
    report = validate(BUILD, **IN_PROGRESS)
    wrong = validate(change(BUILD, REPORTS_TO="REPORTS_TO: me", TASK_ID="TASK_ID: x"), **IN_PROGRESS).findings
    joined = report.with_findings(reversed(wrong))
    assert [finding.code for finding in joined.findings] == ["ENV302", "ENV304"]
    assert not joined.ok
    assert (joined.effective_status, joined.status) == ("BLOCKED", "READY_FOR_QA")


def test_the_fields_say_where_each_evidence_entry_is() -> None:
    fields = validate(QA, **IN_QA).reading.fields
    entries = [(item.text, item.line, item.column) for item in fields["EVIDENCE.screenshots"].items]
    assert entries == [("artifacts/screenshots/home-375.png", 10, 15), ("artifacts/screenshots/home-1280.png", 10, 51)]
    assert list(blocks(QA)) == [label for label in fields if "." not in label]
