"""Following a journal from a position: nothing is missed or given twice, and a position of another file is noticed."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.journal import MAX_LINE_BYTES, Entry, Journal, JournalDamaged, JournalPositionLost
from interlock.journal.line import START, Event, Head, decode, make

AT = "2026-01-01T12:00:00.000000Z"
TEXTS = ("plain", "a\r\nb\rc", "\u2028\u2029\x85\x0b\x0c", "\U0001f600", '"}\n{"')


def written(journal: Journal) -> list[Entry]:
    """Write a few lines of two runs, with every kind of line break in their texts and one as long as a line may be."""
    rows = [journal.append("AB"[number % 2], str(number), "t", {"text": text}) for number, text in enumerate(TEXTS)]
    space = MAX_LINE_BYTES - len(make(Event("A", "k", "t", {"text": ""}), after=Head(3, "0" * 64), at=AT)[1])
    return [*rows, journal.append("A", "k", "t", {"text": "x" * space})]


def test_every_line_comes_with_the_position_behind_it_and_any_position_goes_on_with_the_next(journal: Journal) -> None:
    entries = written(journal)
    found = list(journal.follow())
    assert [entry for _, entry in found] == entries
    assert found[-1][0] == journal.path.stat().st_size
    for number, (position, entry) in enumerate(found, 1):
        again = Journal(journal.path)
        assert list(again.follow(position, after=entry.hash)) == found[number:]
    later = journal.append("C", "0", "t", {})
    assert [entry for _, entry in journal.follow(found[-1][0])] == [later]


def test_a_fragment_is_given_only_once_it_is_a_line(journal: Journal) -> None:
    written(journal)
    position = journal.path.stat().st_size
    raw = make(Event("D", "0", "t", {}), after=START, at=AT)[1]
    for size in (1, len(raw) - 1):
        with journal.path.open("ab") as file:
            file.truncate(position)
            file.write(raw[:size])
        assert list(journal.follow(position)) == []
    with journal.path.open("ab") as file:
        file.write(raw[-1:])
    assert list(journal.follow(position)) == [(position + len(raw), decode(raw))]


def _cut(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))


def _replaced(path: Path) -> None:
    """Put a file in its place that is longer, and in which a line ends at every byte where one ended before."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.rename(path.with_name("old"))
    others = Journal(path.with_name("new"))
    for entry in (decode(line) for line in lines):
        assert isinstance(entry, Entry)
        others.append(entry.run, entry.key, entry.type, {"text": entry.data["text"][::-1]})
    others.append("Z", "0", "t", {})
    others.path.rename(path)


@pytest.mark.parametrize("harm", [_cut, _replaced, Path.unlink])
def test_a_position_in_a_file_cut_replaced_or_removed_is_lost(journal: Journal, harm: Callable[[Path], None]) -> None:
    written(journal)
    position, last = list(journal.follow())[-1]
    harm(journal.path)
    for reader in (journal, Journal(journal.path)):
        with pytest.raises(JournalPositionLost) as caught:
            list(reader.follow(position, after=last.hash))
        assert caught.value.code == "JRN723"


@pytest.mark.parametrize("offset", [-1, 1, 499, 10**12])
def test_a_position_at_which_no_line_ends_is_refused(journal: Journal, offset: int) -> None:
    written(journal)
    with pytest.raises(JournalPositionLost):
        list(journal.follow(offset))
    with pytest.raises(JournalPositionLost):
        list(journal.follow(0, after="0" * 64))


def test_of_a_journal_that_is_not_there_yet_nothing_is_given(journal: Journal) -> None:
    assert list(journal.follow()) == []
    assert not journal.path.exists()


HARMS: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("edited", lambda raw: raw.replace(b"plain", b"pl4in"), "JRN703"),
    ("no JSON", lambda raw: raw.replace(b'"text":"plain"', b"text"), "JRN701"),
    ("too long", lambda raw: raw.replace(b"plain", b"x" * MAX_LINE_BYTES), "JRN708"),
]


@pytest.mark.parametrize(("harm", "code"), [row[1:] for row in HARMS], ids=[row[0] for row in HARMS])
def test_a_line_that_is_not_what_was_written_ends_the_following_where_it_is(
    journal: Journal, harm: Callable[[bytes], bytes], code: str
) -> None:
    journal.append("B", "0", "t", {})
    journal.append("A", "0", "t", {"text": "plain"})
    journal.append("B", "1", "t", {})
    journal.path.write_bytes(harm(journal.path.read_bytes()))
    reader = journal.follow()
    assert next(reader)[1].run == "B"
    with pytest.raises(JournalDamaged) as caught:
        next(reader)
    assert (caught.value.code, caught.value.line) == (code, 2)


@pytest.mark.long
def test_a_hundred_thousand_lines_are_followed_in_a_few_seconds(tmp_path: Path) -> None:
    path, head, lines = tmp_path / "events.jsonl", START, list[bytes]()
    for number in range(100_000):
        entry, raw = make(Event("R", str(number), "status", {"text": "x" * 600, "at": number}), after=head, at=AT)
        head = Head(entry.seq, entry.hash)
        lines.append(raw)
    path.write_bytes(b"".join(lines))
    began = time.process_time()
    assert sum(1 for _ in Journal(path).follow()) == len(lines)
    assert time.process_time() - began < 10
    assert os.path.getsize(path) > 80_000_000  # noqa: PTH202
