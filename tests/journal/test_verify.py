"""What verification promises: nothing can be done to a journal that it does not see."""

import json
import random
from collections.abc import Callable
from hashlib import sha256
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.journal import Head, Journal, verify
from tests.effort import examples

RUN = "DEMO-1"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Head]:
    """Write a run of forty events once, and give its bytes and its head."""
    journal = Journal(tmp_path_factory.mktemp("journal") / "events.jsonl")
    for number in range(40):
        journal.append(RUN, f"step/{number}", "step.done", {"number": number, "text": "work " * (number % 7)})
    head = journal.head(RUN)
    assert head is not None
    assert verify(journal.path, {RUN: head}) == []
    return journal.path.read_bytes(), head


def _edit_byte(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([(data[at] + rng.randrange(1, 256)) % 256]) + data[at + 1 :]


def _edit_bytes(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.randrange(1, 400))
    return data[:start] + rng.randbytes(rng.randrange(0, 50)) + data[stop:]


def _drop(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    start = rng.randrange(len(lines))
    del lines[start : start + rng.randrange(1, 5)]
    return b"".join(lines)


def _swap(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    one, two = rng.sample(range(len(lines)), 2)
    lines[one], lines[two] = lines[two], lines[one]
    return b"".join(lines)


def _repeat(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"".join(lines)


def _truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def _insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    text = rng.choice([b" ", b"\n", b"\r", b"\0", b"{}\n", b'"x":1,', rng.randbytes(rng.randrange(1, 40))])
    return data[:at] + text + data[at:]


def _shuffle(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def _line(body: dict[str, Any]) -> bytes:
    body.pop("hash", None)
    canon = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    return (
        json.dumps(body | {"hash": sha256(canon).hexdigest()}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    )


def _forge_line(rng: random.Random, data: bytes) -> bytes:
    """Change one event and make its hash right again."""
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    body = json.loads(lines[at])
    body["data"]["number"] += 1
    lines[at] = _line(body)
    return b"".join(lines)


def _forge_rest(rng: random.Random, data: bytes) -> bytes:
    """Change one event and make every hash after it right again."""
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    for number in range(at, len(lines)):
        body = json.loads(lines[number])
        body["type"] = "forged" if number == at else body["type"]
        body["prev"] = json.loads(lines[number - 1])["hash"] if number else "0" * 64
        lines[number] = _line(body)
    return b"".join(lines)


def _forge_end(rng: random.Random, data: bytes) -> bytes:
    """Add an event that follows the last one as a true one would."""
    last = json.loads(data.splitlines()[-1])
    added = last | {"seq": last["seq"] + 1, "key": f"forged/{rng.random()}", "prev": last["hash"]}
    return data + _line(added)


HARMS: list[Callable[[random.Random, bytes], bytes]] = [
    _edit_byte,
    _edit_bytes,
    _drop,
    _swap,
    _repeat,
    _truncate,
    _insert,
    _shuffle,
    _forge_line,
    _forge_rest,
    _forge_end,
]


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("harm", HARMS)
def test_each_of_a_thousand_random_harms_is_found(
    harm: Callable[[random.Random, bytes], bytes], written: tuple[bytes, Head], tmp_path: Path
) -> None:
    data, head = written
    rng = random.Random(harm.__name__)
    path = tmp_path / "events.jsonl"
    harms = (harmed for _ in count() if (harmed := harm(rng, data)) != data)
    for harmed in islice(harms, -(-1000 // len(HARMS))):
        path.write_bytes(harmed)
        problems = verify(path, {RUN: head})
        assert problems, f"not found: {harm.__name__}"
        assert all(problem.message and problem.found and problem.expected and problem.fix for problem in problems)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_no_splice_of_any_bytes_goes_unseen(written: tuple[bytes, Head], data: st.DataObject) -> None:
    text, head = written
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 600)))
    harmed = text[:start] + data.draw(st.binary(max_size=40)) + text[stop:]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(harmed)
        assert bool(verify(path, {RUN: head})) == (harmed != text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABC"), st.dictionaries(st.text(), JSON, max_size=5)), max_size=12))
def test_whatever_is_json_comes_back_as_it_went_in_and_verifies(events: list[tuple[str, dict[str, Any]]]) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "events.jsonl")
        for number, (run, data) in enumerate(events):
            assert journal.append(run, str(number), "t", data).data == data
        assert [(entry.run, entry.data) for entry in Journal(journal.path).entries()] == events
        heads = {run: head for run in journal.runs() if (head := Journal(journal.path).head(run))}
        assert not events or verify(journal.path, heads) == []


Lines = list[bytes]


def _set(line: bytes, **fields: object) -> bytes:
    return _line(json.loads(line) | fields)


CASES: list[tuple[str, Callable[[Lines], Lines], list[tuple[int, str]]]] = [
    ("nothing", lambda x: x, []),
    ("unsorted", lambda x: [json.dumps(dict(reversed(json.loads(x[0]).items()))).encode() + b"\n"], [(1, "JRN701")]),
    ("byte order mark", lambda x: [b"\xef\xbb\xbf" + x[0]], [(1, "JRN701")]),
    ("deep", lambda x: [b"[" * 100_000 + b"\n"], [(1, "JRN701")]),
    ("empty line", lambda x: [x[0], b"\n", *x[1:]], [(2, "JRN701")]),
    ("list", lambda x: [b"[]\n", *x], [(1, "JRN701")]),
    ("bool for seq", lambda x: [_set(x[0], seq=True)], [(1, "JRN701")]),
    ("edited", lambda x: [x[0].replace(b'"n":0', b'"n":1'), *x[1:]], [(1, "JRN701"), (2, "JRN704")]),
    ("dropped", lambda x: [x[0], *x[2:]], [(2, "JRN704")]),
    ("key twice", lambda x: [*x, _set(x[2], seq=4, prev=json.loads(x[2])["hash"])], [(4, "JRN704")]),
    ("cut", lambda x: [*x[:2], x[2][:-1]], [(3, "JRN707")]),
]


@pytest.mark.parametrize(("harm", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_problem_is_named_at_its_line(
    journal: Journal, harm: Callable[[Lines], Lines], expected: list[tuple[int, str]]
) -> None:
    for number in range(3):
        journal.append(RUN, str(number), "t", {"n": number, "é": ""})
    journal.path.write_bytes(b"".join(harm(journal.path.read_bytes().splitlines(keepends=True))))
    problems = verify(journal.path, {})
    assert [(problem.line, problem.code) for problem in problems] == expected


def test_a_head_finds_a_run_that_is_missing_shorter_rewritten_or_longer(journal: Journal) -> None:
    heads = [journal.append(RUN, str(number), "t", {}) for number in range(3)]
    last = Head(3, heads[-1].hash)
    cases = [
        ("JRN712", {"OTHER": last}),
        ("JRN712", {RUN: Head(4, last.hash)}),
        ("JRN712", {RUN: Head(3, heads[0].hash)}),
        ("JRN714", {RUN: Head(2, heads[1].hash)}),
    ]
    for code, known in cases:
        problems = verify(journal.path, known)
        assert [(problem.code, problem.line, problem.field) for problem in problems] == [(code, 0, next(iter(known)))]
    assert verify(journal.path, {RUN: last}) == []


def test_a_run_that_goes_on_is_held_to_its_head_when_exactness_is_not_asked_for(journal: Journal) -> None:
    heads = [Head(entry.seq, entry.hash) for entry in (journal.append(RUN, str(n), "t", {}) for n in range(3))]
    assert verify(journal.path, {RUN: heads[1]}, exact=False) == []
    assert [problem.code for problem in verify(journal.path, {RUN: Head(2, heads[0].hash)}, exact=False)] == ["JRN712"]


def test_harm_to_one_run_is_not_reported_of_another(journal: Journal) -> None:
    for number in range(3):
        for run in ("A", "B"):
            journal.append(run, str(number), "t", {"n": number})
    heads = {run: head for run in ("A", "B") if (head := journal.head(run))}
    journal.path.write_bytes(
        b"".join(x for x in journal.path.read_bytes().splitlines(True) if b'"seq":2' not in x or b'"A"' in x)
    )
    assert {problem.field for problem in verify(journal.path, heads)} == {"B"}


def test_a_journal_that_is_not_there_does_not_verify(tmp_path: Path) -> None:
    assert [problem.code for problem in verify(tmp_path / "none" / "events.jsonl", {})] == ["JRN721"]
    assert [problem.code for problem in verify(tmp_path / "events.jsonl", {})] == ["JRN721"]
