"""What a journal promises when several processes write to it and some of them are killed."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from interlock.journal import Head, verify
from tests.child import python
from tests.journal.kinds import OPENED, Opened, Place

WRITER = f"""{OPENED}
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
journal = opened(path, *sys.argv[4:])
sys.stdin.readline()
for number in range(count):
    for run, key in (("shared", f"{{name}}/{{number}}"), (name, str(number)), ("once", str(number))):
        journal.append(run, key, "step", {{"number": number}})
"""

ACKNOWLEDGING = f"""{OPENED}
import itertools
path, name = sys.argv[1:3]
journal = opened(path, *sys.argv[3:])
for number in itertools.count():
    entry = journal.append("R", f"{{name}}/{{number}}", "step", {{"text": "x" * 3000}})
    print(entry.seq, entry.hash, flush=True)
"""


@pytest.mark.sample("file")
def test_eight_processes_lose_no_line_and_break_no_chain(tmp_path: Path, opened: Opened, place: Place) -> None:
    path = tmp_path / "new" / "events.jsonl"
    names = [f"P{number}" for number in range(8)]
    writers = [python(WRITER, path, name, 25, *place(path)) for name in names]
    for writer in writers:
        writer.say("go")
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    journal = opened(path)
    counts = Counter(entry.run for entry in journal.entries())
    assert counts == {"shared": 200, "once": 25} | dict.fromkeys(names, 25)
    assert {entry.key for entry in journal.entries("shared")} == {f"{name}/{n}" for name in names for n in range(25)}
    heads = {run: head for run in journal.runs() if (head := journal.head(run))}
    assert verify(path, heads) == []


def test_threads_that_share_a_journal_or_a_file_lose_no_line(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "events.jsonl"
    shared = opened(path)

    def work(name: int) -> None:
        journal = shared if name % 2 else opened(path)
        for number in range(25):
            journal.append("R", f"{name}/{number}", "step", {})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    head = shared.head("R")
    assert head is not None
    assert head.seq == 200
    assert verify(path, {"R": head}) == []


def _kill_writers(path: Path, opened: Opened, place: list[str], rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    acknowledged: dict[int, str] = {}
    for number in range(rounds):
        writers = [python(ACKNOWLEDGING, path, f"{number}/{name}", *place) for name in range(3)]
        for writer in rng.sample(writers, 3):
            lines = [writer.line() for _ in range(rng.randrange(1, 20))]
            writer.kill()
            lines += writer.rest().splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]
            acknowledged |= {int(seq): digest for seq, digest in (line.split() for line in whole)}
        after = opened(path).append("R", f"after {number}", "step", {})
        acknowledged[after.seq] = after.hash
        assert verify(path, {"R": Head(after.seq, after.hash)}) == []
    there = {entry.seq: entry.hash for entry in opened(path).entries("R")}
    assert len(acknowledged) > 3 * rounds
    assert acknowledged.items() <= there.items()


@pytest.mark.sample("file")
def test_what_was_acknowledged_survives_killed_writers(tmp_path: Path, opened: Opened, place: Place) -> None:
    path = tmp_path / "events.jsonl"
    _kill_writers(path, opened, place(path), rounds=2, seed=1)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10))
def test_what_was_acknowledged_survives_a_hundred_rounds_of_kills(
    tmp_path: Path, opened: Opened, place: Place, seed: int
) -> None:
    path = tmp_path / "events.jsonl"
    _kill_writers(path, opened, place(path), rounds=10, seed=100 + seed)
