"""What the first use of a journal checks, and that nobody loses by it."""

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from interlock.journal import Journal, JournalError, files, verify
from interlock.journal.line import START
from tests.journal.kinds import FILE_ALONE, Opened

MEMBER = re.compile(rb',"hash":"[0-9a-f]{64}"')
ZEROS = b"0" * 64


def _hashed(raw: bytes) -> bytes:
    """Make the hash of a line fit the bytes around it."""
    start, stop = list(MEMBER.finditer(raw))[-1].span()
    digest = sha256(raw[:start] + raw[stop:].removesuffix(b"\n")).hexdigest().encode()
    return raw[:start] + b',"hash":"' + digest + b'"' + raw[stop:]


HARMS: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("no JSON", lambda x: x.replace(b'"n":1', b'"n":'), "JRN701"),
    ("field behind data", lambda x: x.replace(b'},"hash"', b'},"extra":{},"hash"'), "JRN701"),
    ("key escaped", lambda x: x.replace(b'"key":"2"', b'"key":"\\u0032"'), "JRN701"),
    ("another line before", lambda x: re.sub(rb'"prev":"[^"]*"', b'"prev":"%b"' % ZEROS, x), "JRN704"),
    ("key of another", lambda x: x.replace(b'"key":"2"', b'"key":"1"'), "JRN704"),
    ("number of another", lambda x: x.replace(b'"seq":3', b'"seq":2'), "JRN704"),
]
"""What is done to the last of three lines of run A, which is then hashed anew."""


@FILE_ALONE
@pytest.mark.parametrize(("harm", "code"), [case[1:] for case in HARMS], ids=[case[0] for case in HARMS])
def test_a_line_of_another_form_or_place_refuses_the_first_use(
    journal: Journal, opened: Opened, harm: Callable[[bytes], bytes], code: str
) -> None:
    for number in range(3):
        journal.append("A", str(number), "t", {"a": 0, "n": 1})
    lines = journal.path.read_bytes().splitlines(keepends=True)
    before = b"".join([*lines[:2], _hashed(harm(lines[2]))])
    assert before != b"".join(lines)
    journal.path.write_bytes(before)
    again = opened(journal.path)
    for use in (again.runs, lambda: again.append("A", "9", "t", {}), lambda: again.head("A")):
        with pytest.raises(JournalError) as caught:
            use()
        assert (caught.value.code, caught.value.line) == (code, 3)
    assert verify(journal.path, {})[0].code == code
    assert journal.path.read_bytes() == before


def test_what_another_run_wrote_is_no_reason_to_refuse_and_is_found_by_verification(
    journal: Journal, opened: Opened
) -> None:
    for number in range(6):
        journal.append("AB"[number % 2], str(number), "t", {"n": number})
    journal.path.write_bytes(journal.path.read_bytes().replace(b'"n":2', b'"n":9'))
    again = opened(journal.path)
    assert again.append("B", "9", "t", {}).seq == 4
    assert again.append("C", "0", "t", {}).seq == 1
    for use in (again.runs, lambda: again.find("A", "0"), lambda: again.append("A", "9", "t", {})):
        with pytest.raises(JournalError) as caught:
            use()
        assert (caught.value.code, caught.value.line) == ("JRN701", 3)
    assert ("JRN701", 3) in {(problem.code, problem.line) for problem in verify(journal.path, {})}


def test_a_line_is_found_wherever_blocks_end_and_whatever_names_its_run(journal: Journal, opened: Opened) -> None:
    texts = ["x" * size for size in (0, 1000, 200_000, 255_000, 3)]
    for number in range(40):
        journal.append(f"R{number % 3}", str(number), "t", {"text": texts[number % 5], "run": "R0", "seq": 1})
    for run in ("R0", "R1", "R2"):
        again = opened(journal.path)
        assert [(entry.run, entry.seq) for entry in again.entries(run)] == [
            (run, number) for number in range(1, (journal.head(run) or START).seq + 1)
        ]
        assert again.head(run) == journal.head(run)
    assert opened(journal.path).head("R") is None


def test_a_name_that_needs_an_escape_is_found_at_first_use_like_any_other(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "events.jsonl"
    names = ["é", 'a "b"', "back\\slash", "日本", "\U0001f600", "plain", '"},"run":"A"']
    writer = opened(path)
    written = [writer.append(run, key, key, {run: key}) for run in names for key in names]
    again = opened(path)
    assert again.runs() == tuple(names)
    assert [again.find(entry.run, entry.key) for entry in written] == written
    assert verify(path, {run: again.head(run) or START for run in names}) == []


def test_once_all_runs_were_named_none_is_searched_for(
    journal: Journal, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        journal.append(f"R{number % 3}", str(number), "t", {"n": number})
    again = opened(journal.path)
    assert again.runs() == ("R0", "R1", "R2")
    monkeypatch.delattr(files, "search")
    assert [entry.data["n"] for entry in again.entries("R1")] == [1, 4]
    journal.append("R1", "9", "t", {"n": 9})
    assert [entry.data["n"] for entry in again.entries("R1")] == [1, 4, 9]
