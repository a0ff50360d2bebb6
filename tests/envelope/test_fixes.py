"""An agent fixes its response in one turn: a mistake by the re-ask, and several at once as long as all is known."""

import random
import re
from typing import Any, Final

import pytest

from interlock.core.finding import Edit
from interlock.envelope import parse
from interlock.envelope.protocol import DEFAULT_PROTOCOL, LABELS, Status
from tests.envelope.broken import BROKEN, LONG, REPORTS, Broken, named
from tests.envelope.fixes import apply, apply_fixes, stated
from tests.envelope.texts import APPROVAL, BUILD, IN_PROGRESS, IN_QA, IN_REVIEW, NO_EVIDENCE, QA, change, check, codes
from tests.table import each_row


@pytest.mark.parametrize(
    ("text", "context"), [(BUILD, IN_PROGRESS), (QA, IN_QA), (APPROVAL, IN_REVIEW), (APPROVAL, {})]
)
def test_the_unbroken_envelopes_are_valid_and_are_not_asked_again(text: str, context: dict[str, Any]) -> None:
    report = check(text, **context)
    assert report.findings == ()
    assert report.as_reask() == ""


def test_there_are_at_least_eighty_broken_envelopes_under_distinct_names() -> None:
    assert len(BROKEN) >= 80
    assert len({case.name for case in BROKEN}) == len(BROKEN)


@each_row("case", BROKEN, ids=named)
def test_each_mistake_has_its_own_finding(case: Broken) -> None:
    report = check(case.text, **case.context)
    assert case.codes <= {finding.code for finding in report.findings}
    assert not report.ok
    assert report.effective_status == "BLOCKED"


@each_row("case", BROKEN, ids=named)
def test_the_stated_fixes_alone_make_the_response_valid(case: Broken) -> None:
    report = check(case.text, **case.context)
    fixed = apply_fixes(case.text, report.as_reask())
    again = check(fixed, **case.context)
    assert again.ok, f"{report.as_reask()}\n----\n{fixed}\n----\n{again.findings}"


@each_row("case", BROKEN, ids=named)
def test_the_words_of_a_fix_are_its_edits(case: Broken) -> None:
    report = check(case.text, **case.context)
    edits = [edit for finding in report.findings if finding.level == "error" for edit in finding.edits]
    assert stated(report.as_reask()) == edits
    assert apply(case.text, edits) != case.text


@each_row("case", BROKEN, ids=named)
def test_more_than_a_few_lines_that_a_fix_deletes_come_back_in_another_place(case: Broken) -> None:
    lines = case.text.split("\n")
    for finding in check(case.text, **case.context).findings:
        put = {line for edit in finding.edits for line in edit.text.split("\n")}
        for edit in finding.edits:
            if edit.kind == "delete" and edit.end_line - edit.line >= 5:
                gone = {line.removesuffix("\r") for line in lines[edit.line - 1 : edit.end_line]}
                assert gone <= put, finding.fix


@each_row("case", LONG, ids=named)
def test_long_text_around_the_fields_is_kept_under_output(case: Broken) -> None:
    report = check(case.text, **case.context)
    kept = parse(apply_fixes(case.text, report.as_reask())).envelope
    assert kept is not None
    assert case.text.count("Paragraph") == kept.output.count("Paragraph")


@each_row("case", REPORTS, ids=named)
@each_row("extract", [False, True])
def test_a_plain_report_gets_one_short_finding_that_puts_it_under_output(case: Broken, *, extract: bool) -> None:
    (finding,) = [
        row for row in check(case.text, extract=extract, **case.context).findings if row.code.startswith("ENV2")
    ]
    assert finding.code == "ENV223"
    head = next(edit for edit in finding.edits if edit.kind == "insert-after")
    assert [label for label in LABELS if f"\n{label}:" in f"\n{head.text}"] == list(LABELS)
    assert len("".join(finding[:7]).encode()) - len(head.text.encode()) < 1000


@each_row("case", REPORTS, ids=named)
def test_the_text_of_a_plain_report_is_the_output_of_its_fixed_envelope(case: Broken) -> None:
    fixed = parse(apply_fixes(case.text, check(case.text, **case.context).as_reask())).envelope
    assert fixed is not None
    text = case.text.replace("\r\n", "\n").replace("\u200b", "").strip()
    assert fixed.output.replace("> ", "") == text


def test_the_fix_of_a_report_is_as_short_for_one_of_many_labels() -> None:
    (finding,) = check("STATUS: see below\n" * 2000, **IN_PROGRESS).findings
    assert (finding.code, finding.edits[1]) == ("ENV223", Edit("to-output", 1, 2000))
    assert len(finding.fix.encode()) < 1300


def test_three_labels_are_an_envelope_that_was_begun() -> None:
    """What lacks the most is a stub, and each field that it lacks is named."""
    for begun in (
        "STATUS: DONE\nTASK_ID: A-1\nTASK: x\n",
        "**Task ID:** A-1\n**Assigned agent:** me\n## Gates passed: []",
    ):
        found = codes(check(begun, **IN_PROGRESS))
        assert "ENV203" in found
        assert "ENV223" not in found


def test_an_envelope_in_small_letters_is_no_report() -> None:
    small = re.sub(r"(?m)^[A-Z_]+:", lambda match: match[0].lower(), BUILD)
    for extract in (False, True):
        found = codes(check(small, extract=extract, **IN_PROGRESS))
        assert "ENV206" in found
        assert "ENV223" not in found


@each_row("status", ["QA_IN_PROGRESS", "COMPLETED", "READY_FOR_QA", "APPROVED", "READY_FOR_REVIEW"])
def test_a_pass_whose_task_is_not_known_is_shown_its_way_out(status: str) -> None:
    (finding,) = check(change(QA, STATUS=f"STATUS: {status}")).findings
    assert "`STATUS: QA_IN_PROGRESS`" in finding.fix
    assert "`--current-status QA_IN_PROGRESS`" in finding.fix
    assert check(QA, **IN_QA).verdict == "PASS"


def test_what_is_inserted_is_stated_once_where_fields_are_missing() -> None:
    report = check("".join(BUILD.partition("REPORTS_TO:")[:1]), **IN_PROGRESS)
    texts = [edit.text for finding in report.findings for edit in finding.edits]
    assert len(texts) == len(set(texts)) == len(LABELS) - LABELS.index("REPORTS_TO")


def test_a_path_that_is_plain_is_corrected_and_not_taken_out() -> None:
    broken = QA.replace("[artifacts/console", "[./artifacts/console").replace("[artifacts/screen", "[/artifacts/screen")
    assert apply_fixes(broken, check(broken, **IN_QA).as_reask()).count("artifacts/") == QA.count("artifacts/")


def test_a_judge_that_sends_a_plain_report_is_shown_how_to_pass() -> None:
    (finding,) = check("The page holds at every width.", agent="visual-qa").findings
    assert "`--current-status QA_IN_PROGRESS`" in finding.fix
    (finding,) = check("The page holds at every width.", agent="visual-qa", **IN_QA).findings
    assert "--current-status" not in finding.fix


@each_row("case", BROKEN, ids=named)
def test_every_finding_says_what_where_and_why(case: Broken) -> None:
    lines = case.text.split("\n")
    for finding in check(case.text, **case.context).findings:
        assert all((finding.message, finding.fix, finding.source, finding.found, finding.expected)), finding
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1


# -- several mistakes at once ----------------------------------------------------------------------------------------

GATES: Final = ["GATE-MSG-STRICT", "GATE-VISUAL-QA", "GATE-A11Y-BASELINE", "GATE-CODE-REVIEW"]
CURRENT: Final = ("IN_PROGRESS", "READY_FOR_QA", "QA_IN_PROGRESS", "READY_FOR_REVIEW", "BLOCKED")
WRONG: Final[dict[str, tuple[str | None, ...]]] = {
    "STATUS": (*(f"STATUS: {word}" for word in (*CURRENT, "APPROVED", "approved", "DONE", "PASS")), None),
    "TASK_ID": ("TASK_ID: OTHER-1", "TASK_ID: x", None),
    "ASSIGNED_AGENT": (*(f"ASSIGNED_AGENT: {name}" for name in (*DEFAULT_PROTOCOL.roles, "nobody")), None),
    "REPORTS_TO": ("REPORTS_TO: me", None),
    "INPUTS_USED": ("INPUTS_USED: []", "INPUTS_USED: NONE", "INPUTS_USED: [docs/no.md, docs/no.md]", None),
    "GATES_REQUIRED": (
        "GATES_REQUIRED: []",
        f"GATES_REQUIRED: [{', '.join(GATES)}]",
        "GATES_REQUIRED:\n- GATE-X",
        None,
    ),
    "GATES_PASSED": (
        "GATES_PASSED: []",
        "GATES_PASSED: [GATE-MSG-STRICT, GATE-VISUAL-QA]",
        "GATES_PASSED:\n- GATE-MSG-STRICT\n- GATE-A11Y-BASELINE (self-assessed)",
        "GATES_PASSED:\n- GATE-CODE-REVIEW\n- GATE-CODE-REVIEW",
        "GATES_PASSED: [GATE-X]",
        None,
    ),
    "EVIDENCE": (NO_EVIDENCE, "EVIDENCE: NONE", NO_EVIDENCE.replace("a11y: []", "a11y: [a.json]"), None),
    "FAIL_REASONS": (
        *("FAIL_REASONS: NONE", "FAIL_REASONS:\n- it fails", "FAIL_REASONS:\n- GATE-X: x"),
        *("FAIL_REASONS:\n- GATE-VISUAL-QA: overlap", "FAIL_REASONS:\n- GATE-A11Y-BASELINE: contrast\n- broken"),
        None,
    ),
    "NEXT_ACTIONS": ("NEXT_ACTIONS: NONE", "NEXT_ACTIONS:\n- do", None),
}
"""Lines to put in place of a whole field, most of them wrong in some context; None takes the field out."""

KNOWN: Final[dict[str, tuple[str, dict[str, str | None], dict[str, Any]]]] = {
    "a gate that a reason is given to was claimed": (
        BUILD,
        {"FAIL_REASONS": "FAIL_REASONS:\n- it fails"},
        {"gates": ["GATE-MSG-STRICT"]},
    ),
    "approval of what failed": (
        APPROVAL,
        {},
        {"gates": GATES[::3], "current_status": "READY_FOR_REVIEW", "failed": ["GATE-CODE-REVIEW"]},
    ),
    "approval in QA, of which nothing is there": (APPROVAL, {}, {"gates": GATES, "current_status": "QA_IN_PROGRESS"}),
    "no reasons beside a failed gate": (
        BUILD,
        {"FAIL_REASONS": None},
        {"current_status": "READY_FOR_REVIEW", "failed": ["GATE-CODE-REVIEW"]},
    ),
    "no required gates and a claim of another's": (
        BUILD,
        {"GATES_REQUIRED": "GATES_REQUIRED: []", "GATES_PASSED": "GATES_PASSED: [GATE-CODE-REVIEW]"},
        {},
    ),
    "a judge without verdict and reasons": (
        QA,
        {"GATES_PASSED": "GATES_PASSED: []", "FAIL_REASONS": None},
        {"current_status": "QA_IN_PROGRESS"},
    ),
}


def again(text: str, context: dict[str, Any]) -> list[str]:
    """Return the codes of the errors that are left when every fix of a text is made."""
    report = check(text, **context)
    left = check(apply_fixes(text, report.as_reask()), **context) if not report.ok else report
    return [finding.code for finding in left.findings if finding.level == "error"]


@pytest.mark.parametrize(("text", "fields", "context"), KNOWN.values(), ids=KNOWN.keys())
def test_a_fix_takes_the_rules_of_the_other_fields_with_it(
    text: str, fields: dict[str, str | None], context: dict[str, Any]
) -> None:
    context = {"current_status": "IN_PROGRESS", **context}
    assert not check(change(text, **fields), **context).ok
    assert again(change(text, **fields), context) == []


@pytest.mark.sample("0")
@pytest.mark.parametrize("seed", range(4))
def test_the_fixes_of_any_mistakes_together_end_well_in_one_turn(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(120):
        fields = {label: draw.choice(WRONG[label]) for label in draw.sample(list(WRONG), draw.randint(1, 5))}
        text = change(draw.choice((BUILD, QA, APPROVAL)), **fields)
        context: dict[str, Any] = {
            "agent": draw.choice(list(DEFAULT_PROTOCOL.roles)),
            "current_status": draw.choice(CURRENT),
            "gates": GATES,
            "task_id": "HOME-UI-001",
            "failed": draw.choice([[], [], [], GATES[1:2], GATES[2:3], GATES[3:]]),
            "certified": draw.choice([[], [], [], GATES[:1], GATES[1:2]]),
            "input_exists": "docs/no.md".__ne__,
        }
        assert again(text, context) == [], (text, context)


def test_no_fix_for_missing_evidence_names_a_file_that_nobody_made() -> None:
    claims: dict[str, tuple[str, Status]] = {
        "visual-qa": ("GATE-VISUAL-QA", "QA_IN_PROGRESS"),
        "code-reviewer": (GATES[3], "READY_FOR_REVIEW"),
    }
    for agent, (gate, status) in claims.items():
        text = change(
            QA,
            STATUS=f"STATUS: {status}",
            ASSIGNED_AGENT=f"ASSIGNED_AGENT: {agent}",
            EVIDENCE=NO_EVIDENCE,
            GATES_REQUIRED=f"GATES_REQUIRED: [{gate}]",
            GATES_PASSED=f"GATES_PASSED: [{gate}]",
        )
        (finding,) = check(text, current_status=status).findings
        assert (finding.code, "artifacts/" in finding.fix, "BLOCKED" in finding.fix) == ("ENV412", False, True)
