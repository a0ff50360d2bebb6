"""What a journal promises when several processes write to it and some of them are killed."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlock.journal import Head, Journal, verify
from tests.child import python

WRITER = """
import sys
from interlock.journal import Journal
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
journal = Journal(path)
sys.stdin.readline()
for number in range(count):
    for run, key in (("shared", f"{name}/{number}"), (name, str(number)), ("once", str(number))):
        journal.append(run, key, "step", {"number": number})
"""

ACKNOWLEDGING = """
import itertools, sys
from interlock.journal import Journal
path, name = sys.argv[1:]
journal = Journal(path)
for number in itertools.count():
    entry = journal.append("R", f"{name}/{number}", "step", {"text": "x" * 3000})
    print(entry.seq, entry.hash, flush=True)
"""


def test_eight_processes_lose_no_line_and_break_no_chain(tmp_path: Path) -> None:
    path = tmp_path / "new" / "events.jsonl"
    names = [f"P{number}" for number in range(8)]
    writers = [python(WRITER, path, name, 25) for name in names]
    for writer in writers:
        writer.say("go")
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    journal = Journal(path)
    counts = Counter(entry.run for entry in journal.entries())
    assert counts == {"shared": 200, "once": 25} | dict.fromkeys(names, 25)
    assert {entry.key for entry in journal.entries("shared")} == {f"{name}/{n}" for name in names for n in range(25)}
    heads = {run: head for run in journal.runs() if (head := journal.head(run))}
    assert verify(path, heads) == []


def test_threads_that_share_a_journal_or_a_file_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    shared = Journal(path)

    def work(name: int) -> None:
        journal = shared if name % 2 else Journal(path)
        for number in range(25):
            journal.append("R", f"{name}/{number}", "step", {})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    head = shared.head("R")
    assert head is not None
    assert head.seq == 200
    assert verify(path, {"R": head}) == []


def _kill_writers(path: Path, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    acknowledged: dict[int, str] = {}
    for number in range(rounds):
        writers = [python(ACKNOWLEDGING, path, f"{number}/{name}") for name in range(3)]
        for writer in rng.sample(writers, 3):
            lines = [writer.line() for _ in range(rng.randrange(1, 20))]
            writer.kill()
            lines += writer.rest().splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]
            acknowledged |= {int(seq): digest for seq, digest in (line.split() for line in whole)}
        after = Journal(path).append("R", f"after {number}", "step", {})
        acknowledged[after.seq] = after.hash
        assert verify(path, {"R": Head(after.seq, after.hash)}) == []
    there = {entry.seq: entry.hash for entry in Journal(path).entries("R")}
    assert len(acknowledged) > 3 * rounds
    assert acknowledged.items() <= there.items()


def test_what_was_acknowledged_survives_killed_writers(tmp_path: Path) -> None:
    _kill_writers(tmp_path / "events.jsonl", rounds=2, seed=1)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10))
def test_what_was_acknowledged_survives_a_hundred_rounds_of_kills(tmp_path: Path, seed: int) -> None:
    _kill_writers(tmp_path / "events.jsonl", rounds=10, seed=100 + seed)
