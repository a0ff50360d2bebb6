"""What a journal promises to those who append several events at once."""

import os
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interlock.journal import (
    MAX_LINE_BYTES,
    Head,
    Journal,
    JournalError,
    verify,
)
from tests.child import python
from tests.journal.kinds import FILE_ALONE, Opened
from tests.refusals import raises_code

BATCH: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("call", "tool_call", {"revision": 1}),
    ("gate", "gate_passed", {"payload": {"title": "é", "items": [1, 2.5, None]}}),
    ("edge", "transition", {"to": "propose_plan"}),
)


KILLED = """
import os, signal, sys
from interlock.journal import Journal
path, space = sys.argv[1], int(sys.argv[2])
write = os.write
def killed(fd, data):
    write(fd, data[:space])
    os.kill(os.getpid(), signal.SIGKILL)
journal = Journal(path)
journal.append("R", "first", "t", {})
os.write = killed
journal.extend("R", [(f"part {number}", "step", {"text": "x" * 500}) for number in range(4)])
"""


def _fixed(path: Path, opened: Opened = Journal) -> Journal:
    return opened(path, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))


def _head(journal: Journal, run: str) -> Head:
    head = journal.head(run)
    assert head is not None
    return head


def test_a_batch_is_the_same_lines_as_one_append_after_the_other(tmp_path: Path, opened: Opened) -> None:
    one, many = _fixed(tmp_path / "one.jsonl", opened), _fixed(tmp_path / "many.jsonl", opened)
    one.append("other", "k", "t", {})
    many.append("other", "k", "t", {})
    singles = tuple(one.append("R", *event) for event in BATCH)
    assert many.extend("R", BATCH) == singles
    assert many.path.read_bytes() == one.path.read_bytes()
    assert [entry.seq for entry in singles] == [1, 2, 3]
    assert verify(many.path, {"R": _head(many, "R"), "other": _head(many, "other")}) == []


def test_a_batch_costs_one_write_and_one_wait_for_the_disk(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.append("R", "first", "t", {})
    calls: Counter[str] = Counter()
    write, fsync = os.write, os.fsync

    def counted_write(fd: int, data: bytes) -> int:
        calls["write"] += 1
        return write(fd, data)

    def counted_fsync(fd: int) -> None:
        calls["fsync"] += 1
        fsync(fd)

    monkeypatch.setattr(os, "write", counted_write)
    monkeypatch.setattr(os, "fsync", counted_fsync)
    journal.extend("R", BATCH)
    assert calls == {"write": 1, "fsync": 1}


def test_a_repeated_batch_gives_the_first_entries_and_writes_nothing(journal: Journal, opened: Opened) -> None:
    first = journal.extend("R", BATCH)
    before = journal.path.read_bytes()
    assert journal.extend("R", BATCH) == first
    assert opened(journal.path).extend("R", tuple(reversed(BATCH))) == first[::-1]
    assert journal.path.read_bytes() == before


def test_a_key_may_occur_twice_in_a_batch_for_one_event_only(journal: Journal) -> None:
    one, two, again = journal.extend("R", (BATCH[0], BATCH[1], BATCH[0]))
    assert (one, one.seq, two.seq) == (again, 1, 2)
    before = journal.path.read_bytes()
    with raises_code(JournalError, "JRN731"):
        journal.extend("R", (("new", "t", {"n": 1}), ("new", "t", {"n": 2})))
    assert journal.path.read_bytes() == before


@pytest.mark.parametrize(
    ("key", "data", "code"),
    [
        ("taken", {"n": 2}, "JRN731"),
        ("long", {"text": "x" * MAX_LINE_BYTES}, "JRN732"),
        ("nan", {"x": float("nan")}, "JRN732"),
    ],
    ids=["other data", "long", "nan"],
)
def test_an_event_that_is_refused_anywhere_in_a_batch_leaves_the_file_as_it_was(
    journal: Journal, key: str, data: dict[str, Any], code: str
) -> None:
    journal.append("R", "taken", "t", {"n": 1})
    before = journal.path.read_bytes()
    with raises_code(JournalError, code):
        journal.extend("R", (*BATCH, (key, "t", data)))
    assert journal.path.read_bytes() == before
    assert [entry.seq for entry in journal.extend("R", BATCH)] == [2, 3, 4]


def test_wherever_a_batch_was_cut_a_repeat_completes_it(tmp_path: Path) -> None:
    whole = _fixed(tmp_path / "whole.jsonl")
    whole.append("R", "before", "t", {})
    start = whole.path.stat().st_size
    entries = whole.extend("R", BATCH)
    expected = whole.path.read_bytes()
    cut = tmp_path / "cut" / "events.jsonl"
    cut.parent.mkdir()
    for size in range(start, len(expected) + 1):
        cut.write_bytes(expected[:size])
        assert [entry.key for entry in Journal(cut).entries("R")] == [
            "before",
            *(entry.key for entry in entries[: expected[start:size].count(b"\n")]),
        ]
        assert _fixed(cut).extend("R", BATCH) == entries
        assert cut.read_bytes() == expected


def test_a_writer_killed_inside_a_batch_leaves_a_part_of_it_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = [(f"part {number}", "step", {"text": "x" * 500}) for number in range(4)]
    sample = Journal(tmp_path / "sample.jsonl")
    sample.extend("R", events)
    length = sample.path.stat().st_size // 4
    for space, whole in ((0, 0), (10, 0), (length - 1, 0), (length, 1), (2 * length + 300, 2), (4 * length - 1, 3)):
        path.unlink(missing_ok=True)
        writer = python(KILLED, path, space)
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL
        assert [entry.key for entry in Journal(path).entries()] == ["first", *(key for key, *_ in events[:whole])]
        journal = Journal(path)
        assert [entry.seq for entry in journal.extend("R", events)] == [2, 3, 4, 5]
        assert verify(path, {"R": _head(journal, "R")}) == []


@FILE_ALONE
def test_a_batch_for_which_the_disk_has_no_space_is_taken_back_whole(journal: Journal) -> None:
    """A real limit of the operating system: the process may not make a file larger than this."""
    journal.append("R", "1", "t", {})
    before = journal.path.read_bytes()
    program = """
import resource, signal, sys
from interlock.journal import Journal, JournalError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    Journal(sys.argv[1]).extend("R", [(f"part {number}", "t", {"text": "y" * 1000}) for number in range(3)])
except JournalError as error:
    print(error.code)
"""
    for space in (0, 500, 2500):
        writer = python(program, journal.path, len(before) + space)
        assert writer.communicate()[0].split() == ["JRN733"]
        assert journal.path.read_bytes() == before


@FILE_ALONE
def test_a_batch_that_cannot_be_made_durable_is_taken_back(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.append("R", "1", "t", {})
    before = journal.path.read_bytes()

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(JournalError):
            journal.extend("R", BATCH)
    assert journal.path.read_bytes() == before
    assert [entry.seq for entry in journal.extend("R", BATCH)] == [2, 3, 4]
