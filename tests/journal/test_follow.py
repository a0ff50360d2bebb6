"""Following a journal from a position: nothing is missed or given twice, and a position of another file is noticed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.journal import MAX_LINE_BYTES, Entry, Journal, JournalError
from interlock.journal.line import START, Event, Head, decode, make
from tests.journal.kinds import FILE_ALONE, Opened

AT = "2026-01-01T12:00:00.000000Z"
TEXTS = ("plain", "a\r\nb\rc", "\u2028\u2029\x85\x0b\x0c", "\U0001f600", '"}\n{"')


def written(journal: Journal) -> list[Entry]:
    """Write a few lines of two runs, with every kind of line break in their texts and one as long as a line may be."""
    rows = [journal.append("AB"[number % 2], str(number), "t", {"text": text}) for number, text in enumerate(TEXTS)]
    space = MAX_LINE_BYTES - len(make(Event("A", "k", "t", {"text": ""}), after=Head(3, "0" * 64), at=AT)[1])
    return [*rows, journal.append("A", "k", "t", {"text": "x" * space})]


def test_every_line_comes_with_the_position_behind_it_and_any_position_goes_on_with_the_next(
    journal: Journal, opened: Opened
) -> None:
    entries = written(journal)
    found = list(journal.follow())
    assert [entry for _, entry in found] == entries
    assert found[-1][0] == journal.path.stat().st_size
    for number, (position, _) in enumerate(found, 1):
        again = opened(journal.path)
        assert list(again.follow(position)) == found[number:]
    later = journal.append("C", "0", "t", {})
    assert [entry for _, entry in journal.follow(found[-1][0])] == [later]


@FILE_ALONE
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


@FILE_ALONE
@pytest.mark.parametrize("harm", [_cut, Path.unlink])
def test_a_position_in_a_file_cut_or_removed_is_lost(
    journal: Journal, opened: Opened, harm: Callable[[Path], None]
) -> None:
    written(journal)
    position, _ = list(journal.follow())[-1]
    harm(journal.path)
    for reader in (journal, opened(journal.path)):
        with pytest.raises(JournalError) as caught:
            list(reader.follow(position))
        assert caught.value.code == "JRN723"


@pytest.mark.parametrize("offset", [-1, 499, 10**12])
def test_a_position_at_which_no_line_ends_is_refused(journal: Journal, offset: int) -> None:
    written(journal)
    with pytest.raises(JournalError):
        list(journal.follow(offset))


def test_of_a_journal_that_is_not_there_yet_nothing_is_given(journal: Journal) -> None:
    assert list(journal.follow()) == []
    assert not journal.path.exists()


def test_a_line_that_is_not_what_was_written_ends_the_following_where_it_is(journal: Journal) -> None:
    journal.append("B", "0", "t", {})
    journal.append("A", "0", "t", {"text": "plain"})
    journal.append("B", "1", "t", {})
    journal.path.write_bytes(journal.path.read_bytes().replace(b"plain", b"pl4in"))
    reader = journal.follow()
    assert next(reader)[1].run == "B"
    with pytest.raises(JournalError) as caught:
        next(reader)
    assert (caught.value.code, caught.value.line) == ("JRN701", 2)
