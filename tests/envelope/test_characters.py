"""Bytes and characters: each bad input has one clear finding at the right place."""

import unicodedata

import pytest

from interlock.envelope import Finding, parse, validate
from tests.envelope.texts import BUILD, IN_PROGRESS, change
from tests.table import each_row


def _only(source: str | bytes) -> Finding:
    findings = validate(source, **IN_PROGRESS).findings
    assert len(findings) == 1
    return findings[0]


@each_row("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_other_encodings_are_named(encoding: str) -> None:
    finding = _only(BUILD.encode(encoding))
    assert finding.code in {"ENV104", "ENV106"}
    if "16" in encoding:
        assert "UTF-16" in finding.found


def test_an_invalid_byte_is_reported_with_its_offset() -> None:
    data = change(BUILD, TASK="TASK: Build the caf").encode().replace(b"caf", b"caf\xe9")
    finding = _only(data)
    assert (finding.code, finding.line, finding.column) == ("ENV103", 3, 20)
    assert f"offset {data.index(0xE9)}" in finding.message
    assert "0xE9" in finding.message


def test_a_binary_has_one_finding_and_is_not_read_on() -> None:
    for data in (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), b"\x7fELF\x02\x01\x01" + bytes(64), bytes(5)):
        assert _only(data).code in {"ENV103", "ENV106"}


@each_row("data", [b"\xc0\xaf", b"\xed\xa0\x80"], ids=["overlong", "surrogate"])
def test_bytes_that_python_alone_would_read_are_refused(data: bytes) -> None:
    found = validate(BUILD.encode().replace(b"home", data, 1), **IN_PROGRESS).findings
    assert {finding.code for finding in found} == {"ENV103"}


@pytest.mark.parametrize("source", ["", b"", "\n", " \t\r\n", b"\n\n"])
def test_nothing_is_refused_as_nothing(source: str | bytes) -> None:
    assert _only(source).code == "ENV102"


@pytest.mark.parametrize(("size", "code"), [(0, True), (-1, False)])
def test_the_limit_counts_bytes_and_is_exact(size: int, code: bool) -> None:
    text = change(BUILD, TASK="TASK: caf\u00e9")
    limit = len(text.encode()) + size
    assert validate(text, max_bytes=limit, **IN_PROGRESS).ok is code
    assert validate(text.encode(), max_bytes=limit, **IN_PROGRESS).ok is code


@each_row(
    ("char", "code", "words"),
    [
        ("\ufeff", "ENV105", "U+FEFF BYTE ORDER MARK"),
        ("\u041e", "ENV110", "U+041E CYRILLIC CAPITAL LETTER O"),
        ("\u200b", "ENV109", "U+200B ZERO WIDTH SPACE"),
        ("\u202e", "ENV108", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("\u2029", "ENV107", "U+2029 PARAGRAPH SEPARATOR"),
        ("\x85", "ENV107", "U+0085 NEXT LINE"),
        ("\0", "ENV106", "U+0000 NULL"),
        ("\x1b", "ENV106", "U+001B ESCAPE"),
        ("\x7f", "ENV106", "U+007F DELETE"),
    ],
)
def test_a_refused_character_is_named_by_its_code_point(char: str, code: str, words: str) -> None:
    text = char + BUILD if code == "ENV105" else BUILD.replace("READY_FOR_QA", f"READY_F{char}R_QA", 1)
    finding = next(finding for finding in validate(text, **IN_PROGRESS).findings if finding.code == code)
    assert words in finding.message
    assert finding.line == 1
    assert finding.column == (1 if code == "ENV105" else 16)


SEEN = ["\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f", "a\tb", "1\ufe0f\u20e3", "\U0001f9d1\U0001f3fd\u200d\u2695\ufe0f"]
UNSEEN = ["\u0645\u06cc\u200c\u062e", "so\u00adft", "a\u200eb", "a\ufe0f", "a\u200db", "\u2764\ufe0f\ufe01\U000e0100"]


@each_row("text", [*SEEN, *UNSEEN])
def test_joiners_marks_and_tabs_are_allowed_in_free_text(text: str) -> None:
    full = change(BUILD, TASK=f"TASK: {text}", OUTPUT=f"OUTPUT: {text}", NEXT_ACTIONS=f"NEXT_ACTIONS:\n1. {text}")
    report = validate(full, **IN_PROGRESS)
    assert report.ok
    assert [(row.code, row.level) for row in report.findings] == [("ENV112", "warning")] * (text in UNSEEN)
    assert report.envelope is not None
    assert report.envelope.output == text


@each_row("char", ["\u200c", "\u00ad", "\u200e", "\u200d", "\ufe0f", "\ufe01", "\U000e0100", "\u061c"])
@each_row("extract", [False, True])
def test_what_nobody_sees_is_named_once_with_its_places(char: str, *, extract: bool) -> None:
    text = change(BUILD, TASK=f"TASK: a{char}b c{char}", OUTPUT=f"OUTPUT:\nDone.\n{char}" + f" x{char}" * 99)
    (finding,) = validate(f"# Done{char}\n\n{text}" if extract else text, extract=extract, **IN_PROGRESS).findings
    first = ["1:7", "5:8", "5:12"] if extract else ["3:8", "3:12", "24:1"]
    assert finding.message == f"Nobody sees U+{ord(char):04X} {unicodedata.name(char)} at {', '.join(first)} …."
    assert finding.location == f":{first[0]}"
    assert finding.found.split()[0] == ("103" if extract else "102")


def test_a_text_of_very_many_unseen_characters_has_one_bounded_warning() -> None:
    hidden = "".join(map(chr, range(0xE0100, 0xE01F0)))
    (finding,) = validate(change(BUILD, OUTPUT=f"OUTPUT: \U0001f60a{hidden * 50}"), **IN_PROGRESS).findings
    assert (finding.code, finding.found.split()[0]) == ("ENV112", "12000")
    assert len(finding.message) < 500


@each_row("field", ["STATUS", "TASK_ID", "ASSIGNED_AGENT", "REPORTS_TO", "GATES_REQUIRED", "GATES_PASSED"])
def test_fixed_values_are_ascii(field: str) -> None:
    joined = {"GATES_REQUIRED": "[GATE-\u200dX]", "GATES_PASSED": "[GATE-\u200dX]"}.get(field, "a\u200db")
    assert not validate(change(BUILD, **{field: f"{field}: {joined}"}), **IN_PROGRESS).ok


def test_columns_count_code_points_of_the_text_as_given() -> None:
    text = BUILD.replace("  - docs/wireframes.md", "  - \u200b\U0001f600 docs/wireframes.md\u200b").replace(
        "[]", "[\u200bno]", 1
    )
    found = [(finding.code, finding.line, finding.column) for finding in validate(text, **IN_PROGRESS).findings]
    assert ("ENV109", 7, 5) in found
    assert ("ENV309", 17, 18) in found


def test_a_repeated_character_is_one_finding_with_its_count() -> None:
    finding = _only(change(BUILD, OUTPUT="OUTPUT:\n" + "a\u200b" * 9))
    assert "9 times in the text: 23:2, 23:4, 23:6 …" in finding.message


def test_crlf_and_a_missing_final_newline_read_the_same() -> None:
    expected = parse(BUILD).envelope
    assert expected is not None
    for text in (BUILD.replace("\n", "\r\n"), BUILD.rstrip("\n"), f"{BUILD}\n \t\n", BUILD.encode()):
        assert parse(text).envelope == expected
