"""The grammar and the scanner: one accepts exactly when the other finds nothing wrong, and both read the same.

The program reads a text by the grammar and asks the scanner only what is wrong with a text that the grammar refused.
That both would read the other texts the same is shown here.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark

from interlock.core.finding import Edit
from interlock.envelope import Envelope, FieldText, parse, render
from interlock.envelope.characters import read_text
from interlock.envelope.draft import code_span
from interlock.envelope.fixes import sentence
from interlock.envelope.parser import grammar
from interlock.envelope.protocol import EVIDENCE_KEYS, LABELS
from interlock.envelope.scanner import scan
from tests.effort import examples
from tests.envelope.broken import BROKEN, Broken, named
from tests.envelope.fixes import apply_fixes, spans, stated
from tests.envelope.texts import APPROVAL, BUILD, QA, check
from tests.table import each_row

SEEDS = [BUILD, QA, APPROVAL, *(case.text for case in BROKEN)]
PIECES = [
    *(f"{label}:" for label in LABELS),
    *("- ", "* ", "[]", "[a, b]", "[", "]", ",", "\n", "\r\n", "\n\n", " ", "\t", "NONE", "- NONE"),
    *("1. a", "2. b", "1.", "  \n", "\n \t\n", " \r\n", "OUTPUT: x", "NEXT_ACTIONS: NONE", "FAIL_REASONS:\n\n - NONE"),
    *("  screenshots: []", "  a11y:", "console:", "  reports: [artifacts/a.md]", "```", "> ", "#", ":", "Status:", "-"),
    *("STATUS: BLOCKED\nTASK_ID: A-1\n", "TASK_ID : A-1", "\u041e", "\u00a0", "\u200d", "x", "- - a", "- a: b", "a\\b"),
]


@st.composite
def changed(draw: st.DrawFn) -> str:
    """Take an envelope and move, repeat, drop or overwrite a few stretches of it."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["drop", "put", "swap", "line", "double"]))
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 12)))
        lines = text.split("\n")
        first, second = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
        if kind == "drop":
            text = text[:at] + text[end:]
        elif kind == "put":
            text = text[:at] + draw(st.sampled_from(PIECES)) + text[at:]
        elif kind == "swap":
            lines[first], lines[second] = lines[second], lines[first]
            text = "\n".join(lines)
        elif kind == "line":
            lines[first] = draw(st.sampled_from(PIECES))
            text = "\n".join(lines)
        else:
            lines.insert(second, lines[first])
            text = "\n".join(lines)
    return text


def _agree(text: str) -> None:
    clean = read_text(text)
    if clean.draft is not None:
        return
    scanned = scan(clean.lines)
    reading = parse(text)
    assert (reading.envelope is None) == bool(scanned.drafts), scanned.drafts
    assert (reading.envelope is None) == bool(reading.findings)
    assert "ENV299" not in {finding.code for finding in reading.findings}
    if reading.envelope is not None:
        assert list(reading.fields.items()) == list(scanned.fields.items())
        assert reading.envelope == _said(scanned.fields)
        assert parse(render(reading.envelope)).envelope == reading.envelope


def _said(fields: Mapping[str, FieldText]) -> Envelope:
    """Return the envelope that fields with their places amount to."""

    def value(label: str) -> str:
        return fields[label].texts[0]

    return Envelope(
        value("STATUS"),
        value("TASK_ID"),
        value("TASK"),
        value("ASSIGNED_AGENT"),
        value("REPORTS_TO"),
        fields["INPUTS_USED"].texts,
        fields["GATES_REQUIRED"].texts,
        fields["GATES_PASSED"].texts,
        {key: fields[f"EVIDENCE.{key}"].texts for key in EVIDENCE_KEYS},
        fields["FAIL_REASONS"].texts,
        "\n".join(fields["OUTPUT"].texts).rstrip(" \t"),
        fields["NEXT_ACTIONS"].texts,
    )


@settings(max_examples=examples(1500), suppress_health_check=[HealthCheck.too_slow])
@given(changed())
def test_the_grammar_accepts_exactly_what_the_scanner_finds_sound(text: str) -> None:
    _agree(text)


# Refused characters never reach the grammar, so it is asked for others alone.
_CLEAN = st.characters(
    min_codepoint=9, max_codepoint=126, exclude_characters="".join(map(chr, (11, 12, *range(14, 32))))
)


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(from_lark(grammar(), start="start", alphabet=_CLEAN))
def test_what_the_grammar_generates_is_read_the_same_by_both(text: str) -> None:
    _agree(text)


@each_row("case", BROKEN, ids=named)
def test_both_readings_agree_on_each_broken_envelope(case: Broken) -> None:
    _agree(case.text)


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
@given(changed(), st.sampled_from([None, "IN_PROGRESS", "QA_IN_PROGRESS", "READY_FOR_REVIEW"]))
def test_validation_and_the_re_ask_accept_any_text(text: str, status: Any) -> None:
    for extract in (False, True):
        report = check(text, current_status=status, extract=extract)
        reask = report.as_reask()
        assert bool(reask) is not report.ok
        assert len(reask) < 12000
        assert report.ok or report.effective_status == "BLOCKED"
        assert all(finding.message and finding.fix and finding.source for finding in report.findings)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(changed())
def test_applying_fixes_ends_within_a_few_turns(text: str) -> None:
    for _ in range(4):
        report = check(text, current_status="IN_PROGRESS")
        if report.ok or not any(finding.edits for finding in report.findings):
            return
        text = apply_fixes(text, report.as_reask())
    assert check(text, current_status="IN_PROGRESS").ok


@given(st.binary(max_size=400))
def test_bytes_of_any_kind_give_a_report(data: bytes) -> None:
    report = check(data)
    assert not report.ok
    assert report.as_reask()


@given(st.text(alphabet=st.characters(), max_size=200))
def test_text_of_any_kind_surrogates_included_gives_a_report(text: str) -> None:
    report = check(f"{BUILD}{text}", current_status="IN_PROGRESS")
    assert report.as_reask() or report.ok


@given(st.text(alphabet=st.sampled_from(' `a,\\".<>\u00e9'), min_size=1, max_size=12))
def test_a_code_span_reads_back_as_it_was(text: str) -> None:
    assert spans(f"{code_span(text)}.", 0)[0] == [text]


_LINE = st.text(alphabet=st.sampled_from(" `ab,.:-"), min_size=1, max_size=10)
_TEXT = st.lists(_LINE, min_size=1, max_size=3).map("\n".join)


@st.composite
def _edits(draw: st.DrawFn) -> Edit:
    line = draw(st.integers(1, 99))
    kind = draw(st.sampled_from(["replace", "delete", "insert"]))
    if kind == "delete":
        return Edit("delete", line, line + draw(st.integers(0, 3)))
    if kind == "insert":
        after = draw(st.sampled_from([0, line]))
        return Edit("insert-after", after, after, draw(_TEXT))
    return Edit("replace", line, line + draw(st.integers(0, 2)), draw(_TEXT))


@given(st.lists(_edits(), max_size=4))
def test_a_stated_fix_reads_back_as_its_edits(edits: list[Edit]) -> None:
    assert stated(f"   Fix: {sentence(edits)}\n") == edits


def test_the_grammar_names_every_label_and_every_key(root: Path) -> None:
    text = (root / "envelope" / "envelope.lark").read_text()
    guarded = re.findall(r"\(\?!\(\?:([A-Z_|]+)\)", text)
    assert len(guarded) == 1
    assert all(tuple(names.split("|")) == LABELS for names in guarded)
    assert [label for label in LABELS if f'"{label}:"' not in text] == []
