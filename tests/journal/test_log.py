"""What a journal promises to those who append to it and read from it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from interlock.journal import (
    MAX_LINE_BYTES,
    RULES,
    Head,
    Journal,
    JournalError,
    files,
    log,
    verify,
)
from tests.journal.kinds import FILE_ALONE, Opened
from tests.refusals import raises_code


def test_a_line_is_canonical_json_and_its_hash_covers_the_rest_of_it(journal: Journal) -> None:
    first = journal.append("R-1", "start", "run.started", {"b": "é", "a": [1, 2.5, None, True]})
    second = journal.append("R-1", "end", "run.ended", {})
    raw = journal.path.read_bytes()
    lines = raw.split(b"\n")
    assert lines[0] == (
        b'{"at":"2026-01-01T12:00:00.000000Z","data":{"a":[1,2.5,null,true],"b":"\\u00e9"},"hash":"'
        + first.hash.encode()
        + b'","key":"start","prev":"'
        + b"0" * 64
        + b'","run":"R-1","seq":1,"type":"run.started"}'
    )
    body = json.loads(lines[0])
    del body["hash"]
    assert first.hash == sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    assert (second.seq, second.prev) == (2, first.hash)
    assert lines[2:] == [b""]


def test_each_run_has_its_own_chain(journal: Journal) -> None:
    for run in ("A", "B", "A", "B", "B"):
        seq = (journal.head(run) or Head(0, "")).seq + 1
        assert journal.append(run, f"k{seq}", "t", {}).seq == seq
    assert journal.runs() == ("A", "B")
    assert [entry.seq for entry in journal.entries("B")] == [1, 2, 3]
    assert [(entry.run, entry.seq) for entry in journal.entries()] == [("A", 1), ("B", 1), ("A", 2), ("B", 2), ("B", 3)]


def test_a_repeated_append_gives_the_first_entry_and_writes_nothing(journal: Journal, opened: Opened) -> None:
    first = journal.append("A", "k", "t", {"n": (1, 2), "m": {"y": 1, "x": 2}})
    before = journal.path.read_bytes()
    assert journal.append("A", "k", "t", {"m": {"x": 2, "y": 1}, "n": [1, 2]}) == first
    assert opened(journal.path).append("A", "k", "t", {"n": [1, 2], "m": {"y": 1, "x": 2}}) == first
    assert journal.path.read_bytes() == before


@pytest.mark.parametrize(
    ("kind", "data"),
    [("t", {"n": 2}), ("t", {"n": 1.0}), ("other", {"n": 1})],
    ids=["value", "float for int", "type"],
)
def test_a_key_belongs_to_one_event_only(journal: Journal, kind: str, data: dict[str, Any]) -> None:
    journal.append("A", "k", "t", {"n": 1})
    with raises_code(JournalError, "JRN731"):
        journal.append("A", "k", kind, data)
    assert journal.append("B", "k", kind, data).seq == 1


@pytest.mark.parametrize(
    "data",
    [
        {"x": float("nan")},
        {"x": 10**5000},
        {"x": {1: "one"}},
        {"x": {1, 2}},
        json.loads('{"in":' * 70 + "{}" + "}" * 70),
        [],
    ],
    ids=["nan", "huge integer", "int key", "set", "depth", "list"],
)
def test_data_that_would_not_come_back_is_refused(journal: Journal, data: Any) -> None:
    with raises_code(JournalError, "JRN732"):
        journal.append("A", "k", "t", data)
    assert not journal.path.exists()


@pytest.mark.parametrize("name", ["", "a\nb", "\ud800", "x" * 513], ids=["empty", "line", "lone", "long"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_names_that_cannot_be_shown_are_refused(journal: Journal, name: str, place: int) -> None:
    names = ["A", "k", "t"]
    names[place] = name
    with raises_code(JournalError, "JRN732"):
        journal.append(*names, {})  # type: ignore[call-arg]


def test_a_line_may_be_as_long_as_the_limit_and_no_longer(journal: Journal, opened: Opened) -> None:
    empty = len(json.dumps({"text": ""}, separators=(",", ":")))
    probe = opened(journal.path.with_name("probe.jsonl"))
    probe.append("A", "k", "t", {"text": ""})
    space = MAX_LINE_BYTES - probe.path.stat().st_size
    assert space > empty
    with raises_code(JournalError, "JRN732"):
        journal.append("A", "k", "t", {"text": "x" * (space + 1)})
    entry = journal.append("A", "k", "t", {"text": "x" * space})
    assert journal.path.stat().st_size == MAX_LINE_BYTES
    journal.append("A", "l", "t", {})
    assert next(opened(journal.path).entries("A")) == entry
    assert verify(journal.path, {"A": journal.head("A") or Head(0, "")}) == []


def test_reading_a_journal_that_is_not_there_finds_nothing_and_makes_nothing(journal: Journal) -> None:
    assert list(journal.entries()) == []
    assert journal.head("A") is None
    assert journal.runs() == ()
    assert not journal.path.parent.exists()


def test_two_journals_on_one_file_see_each_others_lines(journal: Journal, opened: Opened) -> None:
    other = opened(journal.path)
    one = journal.append("A", "1", "t", {})
    two = other.append("A", "2", "t", {})
    three = journal.append("A", "3", "t", {})
    assert (two.prev, three.prev) == (one.hash, two.hash)
    assert journal.head("A") == other.head("A") == Head(3, three.hash)


def test_an_append_reads_only_what_is_new(journal: Journal, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        journal.append("A", str(number), "t", {})
    starts: list[tuple[int, int]] = []
    read_lines = files.read_lines

    def watched(fd: int, start: int, stop: int) -> Any:
        starts.append((start, stop))
        return read_lines(fd, start, stop)

    monkeypatch.setattr(files, "read_lines", watched)
    journal.append("A", "new", "t", {})
    assert [start for start, stop in starts if start != stop] == []
    before = journal.path.stat().st_size
    opened(journal.path).append("A", "newer", "t", {})
    after = journal.path.stat().st_size
    starts.clear()
    journal.append("A", "newest", "t", {})
    assert starts == [(before, after)]


def test_the_events_of_one_run_are_read_without_the_others(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [journal.append("A", str(number), "t", {"n": number}) for number in range(3)]
    for number in range(50):
        journal.append("B", str(number), "t", {})
    ours.append(journal.append("A", "3", "t", {}))
    read: list[bytes] = []
    decode = log.decode

    def watched(raw: bytes) -> Any:
        read.append(raw)
        return decode(raw)

    monkeypatch.setattr(log, "decode", watched)
    assert list(journal.entries("A")) == ours
    assert len(read) == 4
    assert list(journal.entries("C")) == []


@pytest.mark.parametrize("place", range(3))
def test_the_events_of_a_run_with_a_line_that_was_edited_are_not_read(journal: Journal, place: int) -> None:
    for number in range(3):
        journal.append("A", str(number), "t", {"n": number})
    journal.append("B", "0", "t", {})
    journal.path.write_bytes(journal.path.read_bytes().replace(f'"n":{place}'.encode(), b'"n":7'))
    with raises_code(JournalError, "JRN722"):
        list(journal.entries("A"))


def test_a_line_is_not_taken_for_the_one_that_was_in_its_place(journal: Journal) -> None:
    for number in range(3):
        journal.append("A", str(number), "t", {"n": number})
    one, two, last = journal.path.read_bytes().splitlines(keepends=True)
    assert len(one) == len(two)
    journal.path.write_bytes(two + one + last)
    with pytest.raises(JournalError) as found:
        journal.find("A", "0")
    with pytest.raises(JournalError) as read:
        next(journal.entries("A"))
    assert (found.value.code, read.value.code) == ("JRN722", "JRN722")


@FILE_ALONE
def test_a_fragment_of_a_killed_writer_is_no_event_and_is_cut_off(journal: Journal, opened: Opened) -> None:
    head = journal.append("A", "1", "t", {})
    whole = journal.path.read_bytes()
    for fragment in (b'{"at":"2026', b'{"half":', b"\0" * 9):
        with journal.path.open("ab") as file:
            file.write(fragment)
        assert opened(journal.path).head("A") == Head(head.seq, head.hash)
        assert [entry.key for entry in journal.entries()][-1] == head.key
        assert [problem.code for problem in verify(journal.path, {})] == ["JRN707"]
        key = f"after {fragment!r}"
        head = journal.append("A", key, "t", {})
        whole += journal.path.read_bytes()[len(whole) :]
        assert journal.path.read_bytes() == whole
    assert verify(journal.path, {"A": Head(head.seq, head.hash)}) == []


def _replace(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def _remove_folder(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()


HARMS: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: os.truncate(path, path.stat().st_size - 5),
    "without its last line": lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1])),
    "replaced": _replace,
    "removed": Path.unlink,
    "removed with its folder": _remove_folder,
    "its last line doubled": lambda path: path.write_bytes(
        path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1]
    ),
}


@FILE_ALONE
@pytest.mark.parametrize("harm", HARMS)
def test_a_file_changed_by_anything_but_an_append_is_refused_from_then_on(journal: Journal, harm: str) -> None:
    for number in range(3):
        journal.append("A", str(number), "t", {"n": number})
    HARMS[harm](journal.path)
    after = journal.path.read_bytes() if journal.path.exists() else None
    for _ in range(2):
        with pytest.raises(JournalError):
            journal.append("A", "3", "t", {})
        with pytest.raises(JournalError):
            journal.head("A")
    if not journal.path.exists():
        with pytest.raises(JournalError):
            list(journal.entries())
    assert (journal.path.read_bytes() if journal.path.exists() else None) == after


def test_a_new_reader_refuses_a_damaged_file_at_the_line(journal: Journal, opened: Opened) -> None:
    for number in range(5):
        journal.append("A", str(number), "t", {"n": number})
    journal.path.write_bytes(journal.path.read_bytes().replace(b'"n":2', b'"n":9'))
    entries = opened(journal.path).entries()
    assert [next(entries).seq, next(entries).seq] == [1, 2]
    with pytest.raises(JournalError) as caught:
        next(entries)
    assert (caught.value.code, caught.value.line) == ("JRN701", 3)
    before = journal.path.read_bytes()
    with pytest.raises(JournalError):
        opened(journal.path).append("A", "k", "t", {})
    assert journal.path.read_bytes() == before


def test_what_is_no_regular_file_or_lies_behind_a_link_is_refused_and_left_alone(
    tmp_path: Path, opened: Opened
) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("file", "target"):
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "linked").symlink_to(tmp_path / "folder")
    for path in (tmp_path / name for name in ("folder", "pipe", "file/events.jsonl", "link", "linked/events.jsonl")):
        with raises_code(JournalError, "JRN721"):
            opened(path).append("A", "k", "t", {})
        assert [problem.code for problem in verify(path, {})] == ["JRN721"]
        with pytest.raises(JournalError):
            list(opened(path).entries())
    assert ((tmp_path / "target").read_bytes(), list((tmp_path / "folder").iterdir())) == (b"", [])


def test_a_line_goes_to_the_file_that_took_the_place_of_the_one_waited_for(
    journal: Journal, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append("A", "1", "t", {})
    wait = files.locked

    def replaced(*args: Any, **named: Any) -> Any:
        monkeypatch.setattr(files, "locked", wait)
        journal.path.with_name("new").write_bytes(journal.path.read_bytes())
        journal.path.with_name("new").replace(journal.path)
        return wait(*args, **named)

    monkeypatch.setattr(files, "locked", replaced)
    opened(journal.path).append("A", "2", "t", {})
    assert [entry.key for entry in opened(journal.path).entries()] == ["1", "2"]


@FILE_ALONE
def test_a_repeat_waits_for_the_disk(journal: Journal, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote the line may have died before it was on the disk."""
    opened(journal.path).append("A", "k", "t", {})

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with raises_code(JournalError, "JRN733"):
            journal.append("A", "k", "t", {})
    assert journal.append("A", "k", "t", {}).seq == 1


def test_every_code_has_a_fix_and_every_error_shows_it() -> None:
    for code in RULES:
        error = JournalError(code, "what is wrong", path=Path("events.jsonl"), line=3)
        assert str(error) == f"{code} events.jsonl:3: what is wrong\n  fix: {RULES[code].remedy}"


def test_importing_the_journal_pulls_in_nothing_heavy() -> None:
    program = "import sys, interlock.journal; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint(
        {"asyncio", "pydantic", "langgraph", "mcp", "lark", "sqlite3", "psycopg", "tomllib", "interlock.envelope"}
    )
