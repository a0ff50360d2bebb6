"""Extraction: one envelope out of a message, each thing left out told, two candidates refused."""

from pathlib import Path

import pytest

from interlock.envelope import parse, validate
from tests.envelope.texts import APPROVAL, BUILD, IN_PROGRESS, QA, blocks
from tests.table import each_row

HEAD = "".join(part for label, part in blocks(BUILD).items() if label not in {"OUTPUT", "NEXT_ACTIONS"})
STEPS = blocks(BUILD)["NEXT_ACTIONS"]
TEXT = "## Summary\n\n```tsx\nconst a = 1;\n```\n\n| a | b |\n"
TWO_FENCES = f"# Report\n\n```\n{HEAD}OUTPUT:\n```\n\n{TEXT}\n---\n\n```\n{STEPS}```\n"


@pytest.mark.parametrize("text", [BUILD, QA, APPROVAL, BUILD.replace("\n", "\r\n")])
def test_a_strict_response_is_extracted_as_itself(text: str) -> None:
    strict, loose = parse(text), parse(text, extract=True)
    assert loose.normalised == ()
    assert loose.envelope == strict.envelope
    assert loose.fields == strict.fields


@each_row(
    ("text", "output"),
    [
        (TWO_FENCES, f"{TEXT}\n---"),
        (f"```text\n{BUILD}```\n", None),
        (f"~~~\n{BUILD}~~~\nbye", None),
        (f"````\n{BUILD}````", None),
        (f"# Title\n\nSome words.\n\n{BUILD}", None),
        (f"{BUILD}\nLet me know if you need more.\n", None),
        (f"```\n{HEAD}OUTPUT:\n```\n{TEXT}{STEPS}", TEXT.rstrip("\n")),
        (f"```\n{HEAD}OUTPUT:\n\n```\nOne line.\n```yaml\n{STEPS}```\n\nBye.", "One line."),
    ],
)
def test_what_wraps_an_envelope_is_left_out_and_told(text: str, output: str | None) -> None:
    reading = parse(text, extract=True)
    plain = parse(BUILD).envelope
    assert reading.envelope is not None
    assert plain is not None
    assert reading.envelope.output == (plain.output if output is None else output)
    assert reading.envelope.next_actions == plain.next_actions
    assert reading.normalised
    assert parse(text).envelope is None


def test_lines_are_those_of_the_message_as_given() -> None:
    message = TWO_FENCES.replace("REPORTS_TO: orchestrator", "REPORTS_TO: me")
    finding = validate(message, extract=True, **IN_PROGRESS).findings[0]
    assert (finding.code, message.split("\n")[finding.line - 1]) == ("ENV304", "REPORTS_TO: me")
    steps = parse(message, extract=True).fields["NEXT_ACTIONS"]
    assert message.split("\n")[steps.line - 1] == "NEXT_ACTIONS:"


def test_what_was_left_out_is_told_by_line() -> None:
    assert parse(TWO_FENCES, extract=True).normalised == (
        "lines 1-2: left out text before the envelope",
        "line 3: left out a code fence",
        "line 26: left out a code fence",
        "line 38: left out a code fence",
        "line 42: left out a code fence",
    )


def test_two_candidates_are_refused() -> None:
    report = validate(f"{BUILD}\nor rather\n\n{QA}", extract=True, **IN_PROGRESS)
    assert {finding.code for finding in report.findings} == {"ENV224"}
    assert report.envelope is None
    assert report.status is None
    assert report.effective_status == "BLOCKED"


def test_a_quoted_envelope_is_no_candidate() -> None:
    quoted = "".join(f"> {line}\n" for line in QA.splitlines())
    assert parse(f"You sent:\n\n{quoted}\nHere it is:\n\n{BUILD}", extract=True).envelope == parse(BUILD).envelope


def test_prose_without_an_envelope_is_not_extracted() -> None:
    report = validate("All done, everything passes.", extract=True)
    assert [finding.code for finding in report.findings] == ["ENV223"]


def test_faults_inside_a_wrapped_envelope_are_all_told() -> None:
    message = TWO_FENCES.replace("STATUS: READY_FOR_QA", "STATUS: COMPLETED").replace("  a11y: []\n", "")
    codes = {finding.code for finding in validate(message, extract=True, **IN_PROGRESS).findings}
    assert codes == {"ENV301", "ENV216"}


def test_every_real_response_is_extracted_with_all_its_fields(corpus: Path) -> None:
    files = sorted(path for path in corpus.glob("*.md") if path.name != "README.md")
    assert len(files) == 13
    told: dict[str, set[str]] = {}
    for path in files:
        report = validate(path.read_bytes(), extract=True)
        labels = {label for label in report.reading.fields if "." not in label}
        missing = {finding.field for finding in report.findings if finding.code == "ENV203"}
        assert len(labels | missing) == 12
        assert report.normalised
        assert not validate(path.read_bytes()).ok
        told[path.stem] = {finding.code for finding in report.findings if finding.level == "error"}
    assert told["SYSTEM-FRONTEND-SCAFFOLD-001"] == set()
    assert "ENV403" in told["TOURS-UI-001"]
    assert {"ENV203", "ENV207", "ENV217", "ENV307", "ENV413"} <= told["TOURS-UI-001"]
    assert {"ENV301", "ENV216", "ENV217", "ENV307"} <= told["OPERATOR-PROFILE-UI-001-CODE-REVIEW"]
    assert {"ENV301", "ENV216"} <= told["TOURS-UI-001-VISUAL-QA"]
    assert sum(1 for codes in told.values() if codes) == 12
