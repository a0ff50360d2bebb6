"""An agent that gets the re-ask fixes its response in one turn."""

from typing import Any

import pytest

from interlock.envelope import validate
from tests.envelope.broken import BROKEN, Broken, named
from tests.envelope.fixes import apply, apply_fixes, stated
from tests.envelope.texts import APPROVAL, BUILD, IN_PROGRESS, IN_QA, IN_REVIEW, QA
from tests.table import each_row


@pytest.mark.parametrize(
    ("text", "context"), [(BUILD, IN_PROGRESS), (QA, IN_QA), (APPROVAL, IN_REVIEW), (APPROVAL, {})]
)
def test_the_unbroken_envelopes_are_valid_and_are_not_asked_again(text: str, context: dict[str, Any]) -> None:
    report = validate(text, **context)
    assert report.findings == ()
    assert report.as_reask() == ""


def test_there_are_at_least_eighty_broken_envelopes_under_distinct_names() -> None:
    assert len(BROKEN) >= 80
    assert len({case.name for case in BROKEN}) == len(BROKEN)


@each_row("case", BROKEN, ids=named)
def test_each_mistake_has_its_own_finding(case: Broken) -> None:
    report = validate(case.text, **case.context)
    assert case.codes <= {finding.code for finding in report.findings}
    assert not report.ok
    assert report.effective_status == "BLOCKED"


@each_row("case", BROKEN, ids=named)
def test_the_stated_fixes_alone_make_the_response_valid(case: Broken) -> None:
    report = validate(case.text, **case.context)
    fixed = apply_fixes(case.text, report.as_reask())
    again = validate(fixed, **case.context)
    assert again.ok, f"{report.as_reask()}\n----\n{fixed}\n----\n{again.findings}"


@each_row("case", BROKEN, ids=named)
def test_the_words_of_a_fix_are_its_edits(case: Broken) -> None:
    report = validate(case.text, **case.context)
    edits = [edit for finding in report.findings if finding.level == "error" for edit in finding.edits]
    assert stated(report.as_reask()) == edits
    assert apply(case.text, edits) != case.text


@each_row("case", BROKEN, ids=named)
def test_every_finding_says_what_where_and_why(case: Broken) -> None:
    lines = case.text.split("\n")
    for finding in validate(case.text, **case.context).findings:
        assert all((finding.message, finding.fix, finding.source, finding.found, finding.expected)), finding
        assert 1 <= finding.line <= len(lines)
        assert 1 <= finding.column <= len(lines[finding.line - 1]) + 1
