"""The stored index: a process reads little of a long journal, and no harm to the index changes what it finds."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.journal import Journal, JournalDamaged, index, verify
from interlock.journal.files import read_lines


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the path of a journal with 200 lines of ten runs that is indexed from 4 KiB on."""
    monkeypatch.setattr("interlock.journal.index.STORED_BYTES", 4096)
    monkeypatch.setattr("interlock.journal.log.STORED_BYTES", 4096)
    path = tmp_path / "events.jsonl"
    journal = Journal(path)
    for number in range(200):
        journal.append(f"run {number % 10}", f"{number}", "step", {"number": number})
    return path


def _facts(path: Path) -> object:
    journal = Journal(path)
    runs = journal.runs()
    return [(run, journal.head(run), [entry.key for entry in journal.entries(run)]) for run in runs]


def test_a_first_use_reads_the_end_alone_and_finds_the_same(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[int] = []

    def noted(fd: int, start: int, stop: int) -> object:
        starts.append(stop - start)
        return read_lines(fd, start, stop)

    monkeypatch.setattr("interlock.journal.files.read_lines", noted)
    with_index = _facts(long)
    assert starts
    assert max(starts) <= 4096 + 300
    (long.parent / "events.jsonl.index").unlink()
    assert _facts(long) == with_index
    assert max(starts) == long.stat().st_size


def test_appends_behind_an_index_keep_the_chain(long: Path) -> None:
    ours, theirs = Journal(long), Journal(long)
    for number in range(200, 300):
        (ours, theirs)[number % 2].append(f"run {number % 10}", f"{number}", "step", {"number": number})
    again = Journal(long)
    assert again.append("run 3", "3", "step", {"number": 3}) == next(again.entries("run 3"))
    assert again.find("run 3", "4") is None
    assert verify(long, {}) == []


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"x" * 5000)


def _without_tables(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE cover")


def _of_another_file(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE cover SET sha256 = x'00'")


@pytest.mark.parametrize("harm", [_not_a_database, _without_tables, _of_another_file])
def test_an_index_that_cannot_be_used_is_made_anew(long: Path, harm: Callable[[Path], None]) -> None:
    before = _facts(long)
    harm(long.parent / "events.jsonl.index")
    assert _facts(long) == before
    size = long.stat().st_size
    with long.open("rb") as file:
        assert index.open_index(long, file.fileno(), size) is not None


def test_an_index_that_lacks_a_line_does_not_make_a_run_shorter(long: Path) -> None:
    with sqlite3.connect(long.parent / "events.jsonl.index") as database:
        database.execute("DELETE FROM lines WHERE key = '13'")
    with pytest.raises(JournalDamaged, match=r"events\.jsonl\.index"):
        Journal(long).append("run 3", "new", "step", {})
    (long.parent / "events.jsonl.index").unlink()
    Journal(long).append("run 3", "new", "step", {})
    assert verify(long, {}) == []


def test_an_edited_line_is_refused_where_it_is_built_upon_and_found_by_verify(long: Path) -> None:
    long.write_bytes(long.read_bytes().replace(b'{"number":13}', b'{"number":14}'))
    Journal(long).append("run 4", "new", "step", {})
    with pytest.raises(JournalDamaged):
        list(Journal(long).entries("run 3"))
    assert [problem.code for problem in verify(long, {})][:1] == ["JRN703"]


def test_a_link_in_the_place_of_the_index_is_not_followed(long: Path, tmp_path: Path) -> None:
    place = long.parent / "events.jsonl.index"
    place.unlink()
    place.symlink_to(tmp_path / "elsewhere")
    assert len(Journal(long).runs()) == 10
    assert not (tmp_path / "elsewhere").exists()
