"""Bytes and characters: each bad input has one clear finding at the right place."""

import pytest

from interlock.core.finding import Finding
from interlock.envelope import parse
from tests.envelope.texts import BUILD, IN_PROGRESS, change, check
from tests.table import each_row


def _only(source: str | bytes) -> Finding:
    findings = check(source, **IN_PROGRESS).findings
    assert len(findings) == 1
    return findings[0]


@each_row("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-32-le"])
def test_other_encodings_are_refused_without_reading_on(encoding: str) -> None:
    assert _only(BUILD.encode(encoding)).code in {"ENV103", "ENV106"}


def test_an_invalid_byte_is_reported_with_its_offset() -> None:
    data = change(BUILD, TASK="TASK: Build the caf").encode().replace(b"caf", b"caf\xe9")
    finding = _only(data)
    assert (finding.code, finding.line, finding.column) == ("ENV103", 3, 20)
    assert f"Byte 0xE9 at offset {data.index(0xE9)}" in finding.message


@each_row("data", [b"\x89PNG\r\n\0\0\xff", b"\x7fELF\x02\x01\x01" + bytes(64), bytes(5), b"\xc0\xaf", b"\xed\xa0\x80"])
def test_a_binary_has_one_finding_and_is_not_read_on(data: bytes) -> None:
    assert _only(data).code in {"ENV103", "ENV106"}


@pytest.mark.parametrize("source", ["", b"", "\n", " \t\r\n", b"\n\n"])
def test_nothing_is_refused_as_nothing(source: str | bytes) -> None:
    assert _only(source).code == "ENV102"


@pytest.mark.parametrize(("size", "code"), [(0, True), (-1, False)])
def test_the_limit_counts_bytes_and_is_exact(size: int, code: bool) -> None:
    text = change(BUILD, TASK="TASK: caf\u00e9")
    limit = len(text.encode()) + size
    assert check(text, max_bytes=limit, **IN_PROGRESS).ok is code
    assert check(text.encode(), max_bytes=limit, **IN_PROGRESS).ok is code


@each_row(
    ("char", "words"),
    [
        ("\ufeff", "U+FEFF "),
        ("\u200b", "U+200B ZERO WIDTH SPACE"),
        ("\u202e", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("\u2029", "U+2029 PARAGRAPH SEPARATOR"),
        ("\0", "U+0000 "),
        ("\x1b", "U+001B "),
        ("\ud83d", "U+D83D "),
    ],
)
def test_a_refused_character_is_named_by_its_code_point(char: str, words: str) -> None:
    text = BUILD.replace("READY_FOR_QA", f"READY_F{char}R_QA", 1)
    finding = next(finding for finding in check(text, **IN_PROGRESS).findings if finding.code == "ENV106")
    assert words in finding.message
    assert (finding.line, finding.column) == (1, 16)


@each_row(
    "text", ["\U0001f469\u200d\U0001f4bb", "\u2764\ufe0f", "a\tb", "\u0645\u06cc\u200c\u062e", "so\u00adft", "a\u200eb"]
)
def test_joiners_marks_and_tabs_are_allowed_in_free_text(text: str) -> None:
    full = change(BUILD, TASK=f"TASK: {text}", OUTPUT=f"OUTPUT: {text}", NEXT_ACTIONS=f"NEXT_ACTIONS:\n1. {text}")
    report = check(full, **IN_PROGRESS)
    assert report.findings == ()
    assert report.envelope is not None
    assert report.envelope.output == text


@each_row("field", ["STATUS", "TASK_ID", "ASSIGNED_AGENT", "REPORTS_TO", "GATES_REQUIRED", "GATES_PASSED"])
def test_fixed_values_are_ascii(field: str) -> None:
    joined = {"GATES_REQUIRED": "[GATE-\u200dX]", "GATES_PASSED": "[GATE-\u200dX]"}.get(field, "a\u200db")
    assert not check(change(BUILD, **{field: f"{field}: {joined}"}), **IN_PROGRESS).ok


def test_columns_count_code_points_of_the_text_as_given() -> None:
    text = BUILD.replace("TASK: Implement", "TASK: \U0001f600\u200b Implement").replace("[]", "[no]", 1)
    found = [(finding.code, finding.line, finding.column) for finding in check(text, **IN_PROGRESS).findings]
    assert found == [("ENV106", 3, 8), ("ENV309", 17, 17)]


def test_characters_of_many_kinds_are_one_finding() -> None:
    assert len(_only(change(BUILD, OUTPUT="OUTPUT: x" + "".join(map(chr, range(1, 9))))).message) < 300


def test_crlf_and_a_missing_final_newline_read_the_same() -> None:
    expected = parse(BUILD).envelope
    assert expected is not None
    for text in (BUILD.replace("\n", "\r\n"), BUILD.rstrip("\n"), f"{BUILD}\n \t\n", BUILD.encode()):
        assert parse(text).envelope == expected
