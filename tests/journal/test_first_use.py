"""What the first use of a journal checks, what it leaves to the reading of a line, and that nobody loses by it."""

import json
import random
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from interlock.core.finding import Finding
from interlock.journal import MAX_LINE_BYTES, Entry, Head, Journal, JournalDamaged, log, verify
from interlock.journal.line import START, Event, Link, decode, make, skim
from tests.effort import examples

AT = "2026-01-01T12:00:00.000000Z"
MEMBER = re.compile(rb',"hash":"[0-9a-f]{64}"')
ZEROS = b"0" * 64
END = b'},"hash":"%b","key":"k","prev":"%b","run":"R","seq":1,"type":"t"}' % (ZEROS, ZEROS)
PIECES = (
    *(
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        "é".encode(),
        b"1",
        b"1e999",
    ),
    *(
        b'"},"',
        b'"data":{',
        b',"data":{}',
        b',"run":"B"',
        b',"seq":2',
        b',"x":1',
        b'"hash"',
        b"\\u0041",
        b"NaN",
        b"1.50",
    ),
    *(END[:-1], END, b'{"at":"","data":{' + END, b',"hash":"%b"' % ZEROS, b'"' + END, END.replace(b'"', b'\\"')),
)
"""What harm is made of: single bytes that mean something, members, and text that looks like the end of a line."""

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12) | st.sampled_from(
    ["a b", 'qu"ote', "back\\slash", END.decode(), '","prev":"']
)
TEXTS = st.text(max_size=20) | st.sampled_from([piece.decode("latin-1") for piece in PIECES])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
EVENTS = st.builds(Event, NAMES, NAMES, NAMES, st.dictionaries(TEXTS, JSON, max_size=4))
NESTED = dict[str, Any](at="", data={}, hash="0" * 64, key="k", prev="0" * 64, run="B", seq=9, type="t")


def _link(entry: Entry) -> Link:
    return Link(entry.run, entry.seq, entry.key, entry.prev, entry.hash)


def _hashed(raw: bytes, number: int = -1) -> bytes:
    """Make one `hash` member of a line, by default the last one, fit the bytes around it."""
    members = list(MEMBER.finditer(raw))
    if not members:
        return raw
    start, stop = members[number % len(members)].span()
    digest = sha256(raw[:start] + raw[stop:].removesuffix(b"\n")).hexdigest().encode()
    return raw[:start] + b',"hash":"' + digest + b'"' + raw[stop:]


@settings(max_examples=examples(500), deadline=None)
@given(EVENTS, st.integers(0, 10**17), st.binary(min_size=32, max_size=32))
@example(Event("R", "k", "t", {"z": NESTED}), 0, bytes(32))
@example(Event("R", "k", "t", {"z": END.decode()}), 0, bytes(32))
@example(Event("R", "k", "t", {END.decode(): [NESTED, END.decode()]}), 0, bytes(32))
def test_of_a_true_line_skimming_gives_what_the_full_reading_gives(event: Event, seq: int, prev: bytes) -> None:
    entry, raw = make(event, after=Head(seq, prev.hex()), at=AT)
    assert decode(raw) == entry
    escaped = any(json.dumps(name) != f'"{name}"' for name in (event.run, event.key, event.type))
    assert skim(raw) == (None if escaped else _link(entry))


@settings(max_examples=examples(1000), deadline=None)
@given(st.data(), st.dictionaries(TEXTS, JSON, max_size=3))
def test_no_harmed_line_however_it_is_hashed_is_taken_for_another_than_the_full_reading_takes_it_for(
    data: st.DataObject, written: dict[str, Any]
) -> None:
    raw = make(Event("R", "k", "t", written), after=START, at=AT)[1]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(raw)))
        stop = start + data.draw(st.integers(0, 3))
        piece = data.draw(st.sampled_from(PIECES) | st.binary(max_size=3))
        raw = raw[:start] + piece + raw[stop:]
    raw = _hashed(raw, data.draw(st.sampled_from([-1, -1, 0, 1])))
    link, entry = skim(raw), decode(raw)
    event("refused by both" if link is None else "taken by skimming")
    if isinstance(entry, Entry):
        assert link in {None, _link(entry)}
    elif link is not None:
        assert entry.code in {"JRN701", "JRN702"}


FORMS: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("space", lambda x: x.replace(b'"n":', b'"n": '), "JRN701"),
    ("unsorted", lambda x: x.replace(b'"a":0,"n":1', b'"n":1,"a":0'), "JRN701"),
    ("doubled name", lambda x: x.replace(b'"n":1', b'"n":1,"n":1'), "JRN701"),
    ("long number", lambda x: x.replace(b'"n":1', b'"n":1.0e0'), "JRN701"),
    ("not a number", lambda x: x.replace(b'"n":1', b'"n":NaN'), "JRN701"),
    ("raw letter", lambda x: x.replace(b'"n":1', '"n":"é"'.encode()), "JRN701"),
    ("no text", lambda x: x.replace(b'"n":1', b'"n":"\xff"'), "JRN701"),
    ("no JSON", lambda x: x.replace(b'"n":1', b'"n":'), "JRN701"),
    ("deep", lambda x: x.replace(b'"n":1', b'"n":' + b"[" * 5000 + b"]" * 5000), "JRN701"),
    ("field behind data", lambda x: x.replace(b'},"hash"', b'},"extra":{},"hash"'), "JRN702"),
    ("data twice", lambda x: x.replace(b'},"hash"', b'},"data":{},"hash"'), "JRN701"),
    ("other run before", lambda x: x.replace(b'},"hash"', b'},"run":"B","data":{},"hash"'), "JRN701"),
]
"""Forms of the data that the writer never gives, which only a full reading sees once the line is hashed anew."""


def _with(journal: Journal, harm: Callable[[bytes], bytes]) -> None:
    """Write three lines of run A, the last of them harmed and hashed anew."""
    for number in range(3):
        journal.append("A", str(number), "t", {"a": 0, "n": 1})
    lines = journal.path.read_bytes().splitlines(keepends=True)
    harmed = _hashed(harm(lines[2]))
    assert harmed != lines[2]
    journal.path.write_bytes(b"".join([*lines[:2], harmed]))


@pytest.mark.parametrize(("harm", "code"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_a_form_that_hides_behind_a_right_hash_is_refused_when_its_line_is_read(
    journal: Journal, harm: Callable[[bytes], bytes], code: str
) -> None:
    _with(journal, harm)
    again = Journal(journal.path)
    assert again.runs() == ("A",)
    assert (again.head("A") or START).seq == 3
    assert again.find("A", "1") is not None
    before = journal.path.read_bytes()
    with pytest.raises(JournalDamaged) as found:
        again.find("A", "2")
    with pytest.raises(JournalDamaged) as repeated:
        again.append("A", "2", "t", {"a": 0, "n": 1})
    of_run, of_all = again.entries("A"), again.entries()
    assert [next(of_run).seq, next(of_run).seq, next(of_all).seq, next(of_all).seq] == [1, 2, 1, 2]
    with pytest.raises(JournalDamaged) as in_run:
        next(of_run)
    with pytest.raises(JournalDamaged) as in_all:
        next(of_all)
    assert {caught.value.code for caught in (found, repeated, in_run, in_all)} == {code}
    assert in_all.value.line == 3
    assert [(problem.line, problem.code) for problem in verify(journal.path, {})] == [(3, code)]
    assert journal.path.read_bytes() == before


def test_behind_a_form_that_hides_lines_go_in_and_verification_names_it(journal: Journal) -> None:
    _with(journal, FORMS[0][1])
    writer = Journal(journal.path)
    hidden = writer.head("A")
    added = writer.append("A", "3", "t", {})
    assert hidden is not None
    assert (added.seq, added.prev) == (4, hidden.hash)
    assert writer.append("B", "0", "t", {}).seq == 1
    assert ("JRN701", 3) in {(problem.code, problem.line) for problem in verify(journal.path, {})}


def test_a_form_that_hides_is_read_as_little_from_another_writer_as_at_first(journal: Journal) -> None:
    journal.append("A", "0", "t", {"n": 0})
    raw = make(Event("A", "1", "t", {"n": 1}), after=journal.head("A") or START, at=AT)[1]
    with journal.path.open("ab") as file:
        file.write(_hashed(raw.replace(b'{"n":', b'{"n": ')))
    assert (journal.head("A") or START).seq == 2
    with pytest.raises(JournalDamaged) as caught:
        journal.find("A", "1")
    assert caught.value.code == "JRN701"


AROUND: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("space", lambda x: x.replace(b',"key"', b', "key"'), "JRN701"),
    ("time as a number", lambda x: re.sub(rb'"at":"[^"]*"', b'"at":1', x), "JRN702"),
    ("time escaped", lambda x: x.replace(b'"at":"2', b'"at":"\\u0032'), "JRN701"),
    ("data as a list", lambda x: re.sub(rb'"data":\{.*\},"hash"', b'"data":[],"hash"', x), "JRN702"),
    ("data as a number", lambda x: x.replace(b'"data":{', b'"data":0,"more":{'), "JRN702"),
    ("field before the time", lambda x: x.replace(b'{"at"', b'{"a":0,"at"'), "JRN702"),
    ("key escaped", lambda x: x.replace(b'"key":"2"', b'"key":"\\u0032"'), "JRN701"),
    ("key with a raw letter", lambda x: x.replace(b'"key":"2"', '"key":"é"'.encode()), "JRN701"),
    ("key that is no text", lambda x: x.replace(b'"key":"2"', b'"key":"\xff"'), "JRN701"),
    ("key with a raw tab", lambda x: x.replace(b'"key":"2"', b'"key":"\t"'), "JRN701"),
    ("number with a nought", lambda x: x.replace(b'"seq":3', b'"seq":03'), "JRN701"),
    ("number with a fraction", lambda x: x.replace(b'"seq":3', b'"seq":3.0'), "JRN702"),
    ("number far too large", lambda x: x.replace(b'"seq":3', b'"seq":3' + b"0" * 30), "JRN704"),
    ("fields in another order", lambda x: re.sub(rb'("run":"A"),("seq":3)', rb"\2,\1", x), "JRN701"),
    ("field at the end", lambda x: x.replace(b'"type":"t"', b'"type":"t","x":1'), "JRN702"),
    ("no type", lambda x: x.replace(b',"type":"t"', b""), "JRN702"),
    ("hash twice", lambda x: x.replace(b',"key"', b',"hash":"%b","key"' % ZEROS), "JRN701"),
    ("carriage return", lambda x: x.replace(b"\n", b"\r\n"), "JRN701"),
    ("another line before", lambda x: re.sub(rb'"prev":"[^"]*"', b'"prev":"%b"' % ZEROS, x), "JRN705"),
    ("key of another", lambda x: x.replace(b'"key":"2"', b'"key":"1"'), "JRN706"),
    ("number of another", lambda x: x.replace(b'"seq":3', b'"seq":2'), "JRN704"),
    ("run of its own", lambda x: x.replace(b'"run":"A"', b'"run":"B"'), "JRN704"),
    ("form and number", lambda x: x.replace(b'{"a":', b'{"a": ').replace(b'"seq":3', b'"seq":5'), "JRN701"),
]
"""What is around the data of a line, and its place, are checked at first use, even when it is hashed anew."""


@pytest.mark.parametrize(("harm", "code"), [case[1:] for case in AROUND], ids=[case[0] for case in AROUND])
def test_faults_around_data_refuse_the_first_use(journal: Journal, harm: Callable[[bytes], bytes], code: str) -> None:
    _with(journal, harm)
    before = journal.path.read_bytes()
    again = Journal(journal.path)
    own = b'"run":"B"' not in before
    for use in (again.runs, *((lambda: again.append("A", "9", "t", {}), lambda: again.head("A")) if own else ())):
        with pytest.raises(JournalDamaged) as caught:
            use()
        assert (caught.value.code, caught.value.line) == (code, 3)
    assert verify(journal.path, {})[0].code == code
    assert journal.path.read_bytes() == before


def test_what_another_run_wrote_is_no_reason_to_refuse_and_is_found_by_verification(journal: Journal) -> None:
    for number in range(6):
        journal.append("AB"[number % 2], str(number), "t", {"n": number})
    journal.path.write_bytes(journal.path.read_bytes().replace(b'"n":2', b'"n":9'))
    again = Journal(journal.path)
    assert again.append("B", "9", "t", {}).seq == 4
    assert again.append("C", "0", "t", {}).seq == 1
    for use in (again.runs, lambda: again.find("A", "0"), lambda: again.append("A", "9", "t", {})):
        with pytest.raises(JournalDamaged) as caught:
            use()
        assert (caught.value.code, caught.value.line) == ("JRN703", 3)
    assert ("JRN703", 3) in {(problem.code, problem.line) for problem in verify(journal.path, {})}


def test_a_line_is_found_wherever_blocks_end_and_whatever_names_its_run(journal: Journal) -> None:
    texts = ["x" * size for size in (0, 1000, 200_000, 255_000, 3)]
    for number in range(40):
        journal.append(f"R{number % 3}", str(number), "t", {"text": texts[number % 5], "run": "R0", "seq": 1})
    for run in ("R0", "R1", "R2"):
        again = Journal(journal.path)
        assert [(entry.run, entry.seq) for entry in again.entries(run)] == [
            (run, number) for number in range(1, (journal.head(run) or START).seq + 1)
        ]
        assert again.head(run) == journal.head(run)
    assert Journal(journal.path).head("R") is None


def _edit(rng: random.Random, lines: list[bytes]) -> None:
    at = rng.randrange(len(lines))
    place = rng.randrange(len(lines[at]) - 1)
    lines[at] = lines[at][:place] + bytes([rng.choice(b'0a"\\{}, \xff\n')]) + lines[at][place + 1 :]


def _insert(rng: random.Random, lines: list[bytes]) -> None:
    at = rng.randrange(len(lines))
    place = rng.randrange(len(lines[at]))
    lines[at] = lines[at][:place] + rng.choice(PIECES) + lines[at][place:]


def _drop(rng: random.Random, lines: list[bytes]) -> None:
    del lines[rng.randrange(len(lines))]


def _repeat(rng: random.Random, lines: list[bytes]) -> None:
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))


def _swap(rng: random.Random, lines: list[bytes]) -> None:
    one, two = rng.sample(range(len(lines)), 2)
    lines[one], lines[two] = lines[two], lines[one]


@pytest.mark.parametrize("harm", [_edit, _insert, _drop, _repeat, _swap])
def test_what_was_not_hashed_anew_is_refused_at_first_use_at_the_line_that_verification_names(
    journal: Journal, harm: Callable[[random.Random, list[bytes]], None]
) -> None:
    for number in range(20):
        journal.append("AB"[number % 2], str(number), "t", {"n": number, "text": "é\n" * (number % 4)})
    lines = journal.path.read_bytes().splitlines(keepends=True)
    rng = random.Random(harm.__name__)
    refused = 0
    for _ in range(150):
        harmed = list(lines)
        harm(rng, harmed)
        journal.path.write_bytes(b"".join(harmed))
        problems = verify(journal.path, {})
        if not problems:
            # A dropped end, two runs that changed places: only heads prove these.
            assert Journal(journal.path).runs()
            continue
        refused += 1
        with pytest.raises(JournalDamaged) as caught:
            Journal(journal.path).runs()
        assert (caught.value.line, caught.value.code) == (problems[0].line, problems[0].code)
    assert refused > 75


def test_the_first_use_reads_the_data_of_no_line(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        journal.append("A", f"{number}/gate", "gate_passed", {"text": END.decode(), "nested": NESTED})
    read: list[bytes] = []

    def watched(raw: bytes) -> Entry | Finding:
        read.append(raw)
        return decode(raw)

    monkeypatch.setattr(log, "decode", watched)
    again = Journal(journal.path)
    assert again.head("A") == journal.head("A")
    assert read == []
    again.append("A", 'a "quoted" key', "t", {})
    assert Journal(journal.path).find("A", 'a "quoted" key') is not None
    assert set(read) == {journal.path.read_bytes().splitlines(keepends=True)[-1]}


def test_a_name_that_needs_an_escape_is_found_at_first_use_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    names = ["é", 'a "b"', "back\\slash", "日本", "\U0001f600", "plain", END.decode()]
    writer = Journal(path)
    written = [writer.append(run, key, key, {run: key}) for run in names for key in names]
    again = Journal(path)
    assert again.runs() == tuple(names)
    assert [again.find(entry.run, entry.key) for entry in written] == written
    assert verify(path, {run: again.head(run) or START for run in names}) == []


def test_a_line_as_long_as_the_limit_is_skimmed_and_a_longer_one_is_not() -> None:
    space = MAX_LINE_BYTES - len(make(Event("R", "k", "t", {"text": ""}), after=START, at=AT)[1])
    lines = [make(Event("R", "k", "t", {"text": "x" * size}), after=START, at=AT) for size in (space, space + 1)]
    assert [skim(raw) for _, raw in lines] == [_link(lines[0][0]), None]
