"""What a journal in a database promises: each machine has a copy of it, and all copies are one journal."""

import os
import random
import select
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, LiteralString, TypeAlias, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.database import Database, DatabaseError, Leg, LegLost, driving
from interlock.journal import Head, Journal, JournalError, Upstream, shared, verify
from interlock.journal.line import START
from tests.child import python
from tests.effort import examples
from tests.journal.kinds import OPENED
from tests.postgres import Server, name_of, pgbouncer
from tests.refusals import raises_code

Machine: TypeAlias = Callable[[str], Journal]
"""Opens the copy of a machine, anew each time."""

_names = count(1)


@pytest.fixture
def name() -> str:
    """Give the name of a journal that nobody has used."""
    return f"journal {next(_names)}"


@pytest.fixture
def machine(database: Database, name: str, tmp_path: Path) -> Machine:
    """Give what opens the copy of a machine."""
    return lambda letter: Journal(tmp_path / letter / "events.jsonl", Upstream(database, name))


def rows(database: Database, name: str) -> list[tuple[int, bytes]]:
    """Return the lines in the database, each with the byte at which it begins."""
    statement = "SELECT start, bytes FROM interlock.line WHERE journal = %s ORDER BY start"
    found = database.read(lambda link: link.execute(statement, (name,)).fetchall())
    return [(row["start"], row["bytes"]) for row in found]


def run_sql(database: Database, statement: str) -> None:
    """Run statements that are made of names."""
    database.transact(lambda link: link.execute(cast("LiteralString", statement)))


def heads(journal: Journal) -> dict[str, Head]:
    """Return the end of every run."""
    return {run: journal.head(run) or START for run in journal.runs()}


def check_whole(database: Database, name: str, *copies: Journal) -> None:
    """Make sure that some copies are what the database has, byte for byte, and that the chain of each run is whole."""
    lines = rows(database, name)
    for copy in copies:
        copy.pull()
        raw = copy.path.read_bytes()
        assert raw == b"".join(line for _, line in lines)
        assert [raw[start : start + len(line)] for start, line in lines] == [line for _, line in lines]
        assert verify(copy.path, heads(copy)) == []
        assert copy.difference() is None


READS: list[Callable[[Journal], object]] = [
    lambda journal: [entry.key for entry in journal.entries()],
    lambda journal: [entry.key for entry in journal.entries("R")],
    lambda journal: [entry.key for _, entry in journal.follow()],
    lambda journal: [key for key in ("1", "2", "3") if journal.find("R", key)],
    lambda journal: [str(number + 1) for number in range((journal.head("R") or START).seq)],
    lambda journal: ["1", "2", "3"][: 3 * len(journal.runs())],
]


@pytest.mark.parametrize("read", READS, ids=["entries", "entries of a run", "follow", "find", "head", "runs"])
def test_what_one_machine_wrote_every_kind_of_reading_finds_on_another(
    machine: Machine, database: Database, name: str, read: Callable[[Journal], object]
) -> None:
    one, two = machine("a"), machine("b")
    assert read(two) == []
    assert not two.path.parent.exists()
    one.extend("R", [("1", "t", {}), ("2", "t", {}), ("3", "t", {})])
    assert read(two) == ["1", "2", "3"]
    check_whole(database, name, one, two)


def test_machines_continue_each_others_chain_and_know_each_others_keys(
    machine: Machine, database: Database, name: str
) -> None:
    one, two = machine("a"), machine("b")
    first = one.append("R", "1", "t", {"n": 1})
    assert two.append("R", "1", "t", {"n": 1}) == first
    with raises_code(JournalError, "JRN731"):
        two.append("R", "1", "t", {"n": 2})
    second = two.append("R", "2", "t", {})
    assert (second.seq, second.prev) == (2, first.hash)
    position = two.path.stat().st_size
    third = one.append("R", "3", "t", {})
    assert [entry for _, entry in two.follow(position)] == [third]
    check_whole(database, name, one, two)


def test_a_copy_much_longer_than_what_is_read_at_once_is_made_in_parts(
    machine: Machine, database: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = machine("a")
    rng = random.Random(1)
    for run in "ABC":
        one.extend(run, [(str(number), "t", {"text": "x" * rng.randrange(2000)}) for number in range(40)])
    for size in (1, 700, 5000):
        monkeypatch.setattr(shared, "_BYTES", size)
        check_whole(database, name, machine(f"read by {size}"))


def test_a_copy_is_made_before_others_have_to_wait_for_it(
    machine: Machine, database: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machine("a"), machine("b")
    one.append("R", "1", "t", {})

    def refused(*_: object, **__: object) -> None:
        raise DatabaseError("nobody gets the lock", "Wait.")

    with monkeypatch.context() as patch, raises_code(DatabaseError, "DBA901"):
        patch.setattr(database, "transact", refused)
        two.append("R", "2", "t", {})
    assert two.path.read_bytes() == one.path.read_bytes()


HARMS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "emptied": lambda path: os.truncate(path, 0),
    "cut within a line": lambda path: os.truncate(path, path.stat().st_size - 5),
    "cut within the first line": lambda path: os.truncate(path, 5),
    "cut behind a line": lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1])),
    "with a fragment": lambda path: path.write_bytes(path.read_bytes() + b'{"at":"2026'),
    "replaced by an equal one": lambda path: (
        path.with_name("new").write_bytes(path.read_bytes()) and path.with_name("new").replace(path)
    ),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_copy_that_is_behind_is_completed_by_its_next_use(
    machine: Machine, database: Database, name: str, harm: str
) -> None:
    one, two = machine("a"), machine("b")
    for number in range(3):
        one.append("R", str(number), "t", {"n": number})
    two.append("R", "3", "t", {})
    for use in (one, machine("a")):
        HARMS[harm](one.path)
        assert [entry.key for entry in use.entries("R")] == ["0", "1", "2", "3"]
        HARMS[harm](one.path)
        assert use.append("R", "3", "t", {}).seq == 4
    HARMS[harm](one.path)
    assert one.append("R", "4", "t", {}).seq == 5
    check_whole(database, name, one, two)


def _append_by_hand(path: Path) -> None:
    Journal(path).append("R", "by hand", "t", {})


def _change_end(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n":2', b'"n":7'))


USES: list[Callable[[Journal], object]] = [
    *READS,
    lambda journal: journal.append("R", "new", "t", {}),
    lambda journal: journal.append("R", "0", "t", {"n": 0}),
]


@pytest.mark.parametrize("harm", [_append_by_hand, _change_end])
def test_a_copy_that_is_not_the_databases_journal_is_refused_until_it_is_moved_aside(
    machine: Machine, database: Database, name: str, harm: Callable[[Path], object]
) -> None:
    one = machine("a")
    for number in range(3):
        one.append("R", str(number), "t", {"n": number})
    before = rows(database, name)
    harm(one.path)
    there = one.path.read_bytes()
    for journal in (one, machine("a")):
        for use in USES:
            with raises_code(JournalError, "JRN741"):
                use(journal)
    assert (rows(database, name), one.path.read_bytes()) == (before, there)
    found = one.difference()
    assert found is not None
    assert (found.code, found.line) == ("JRN741", 4 if harm is _append_by_hand else 3)
    one.path.rename(one.path.with_name("aside"))
    assert one.append("R", "new", "t", {}).seq == 4
    check_whole(database, name, one)


def test_a_database_that_was_put_back_to_an_earlier_time_is_noticed_by_whoever_has_more(
    machine: Machine, database: Database, name: str
) -> None:
    one, two = machine("a"), machine("b")
    for number in range(4):
        one.append("R", str(number), "t", {"n": number})
    lost = rows(database, name)[2:]
    statement = "DELETE FROM interlock.line WHERE journal = %s AND start >= %s"
    database.transact(lambda link: link.execute(statement, (name, lost[0][0])))
    assert two.append("R", "2", "t", {"n": "other"}).seq == 3
    for _ in range(2):
        with raises_code(JournalError, "JRN741"):
            one.head("R")
        two.append("R", "4", "t", {"text": "as long as what was lost"})
    found = one.difference()
    assert found is not None
    assert (found.code, found.line) == ("JRN741", 3)
    one.path.rename(one.path.with_name("aside"))
    assert [entry.key for entry in one.entries("R")] == ["0", "1", "2", "4"]
    assert one.append("R", "5", "t", {}).seq == 5
    check_whole(database, name, one, two)


@pytest.mark.parametrize("gone", [0, 1])
def test_a_database_from_which_a_line_was_taken_makes_no_copy(
    machine: Machine, database: Database, name: str, gone: int
) -> None:
    one = machine("a")
    for number in range(3):
        one.append("R", str(number), "t", {"n": number})
    statement = "DELETE FROM interlock.line WHERE journal = %s AND start = %s"
    database.transact(lambda link: link.execute(statement, (name, rows(database, name)[gone][0])))
    for use in USES:
        with raises_code(JournalError, "JRN741"):
            use(machine("b"))
    found = one.difference()
    assert found is not None
    assert (found.code, found.line) == ("JRN741", gone + 1)


def test_a_line_that_was_edited_further_up_is_named_by_its_number(
    machine: Machine, database: Database, name: str
) -> None:
    one = machine("a")
    for number in range(5):
        one.append("R", str(number), "t", {"n": number})
    one.path.write_bytes(one.path.read_bytes().replace(b'"n":1', b'"n":8'))
    found = one.difference()
    assert found is not None
    assert (found.code, found.line, found.path) == ("JRN741", 2, str(one.path))
    machine("b").append("R", "5", "t", {})
    assert one.difference() == found
    assert Journal(one.path).difference() is None


def test_a_file_is_put_into_an_empty_database_once(machine: Machine, database: Database, name: str) -> None:
    one, upstream = machine("a"), Upstream(database, name)
    alone = Journal(one.path)
    with pytest.raises(FileNotFoundError):
        upstream.upload(one.path)
    alone.extend("R", [(str(number), "t", {}) for number in range(1201)])
    with one.path.open("ab") as file:
        file.write(b'{"at":"2026')
    assert [upstream.upload(one.path), upstream.upload(one.path)] == [1201, 0]
    assert one.append("R", "new", "t", {}).seq == 1202
    check_whole(database, name, one, machine("b"))


def test_a_file_with_more_lines_completes_the_database_and_one_with_fewer_changes_nothing(
    machine: Machine, database: Database, name: str, tmp_path: Path
) -> None:
    upstream, path = Upstream(database, name), tmp_path / "old.jsonl"
    alone = Journal(path)
    alone.append("R", "1", "t", {})
    assert upstream.upload(path) == 1
    alone.append("R", "2", "t", {})
    assert upstream.upload(path) == 1
    machine("a").append("R", "3", "t", {})
    assert upstream.upload(path) == 0
    check_whole(database, name, machine("a"), machine("b"))


@pytest.mark.parametrize("other", ["", "more"], ids=["of the same length", "longer"])
def test_a_file_is_not_put_into_a_database_that_has_another_journal(
    machine: Machine, database: Database, name: str, tmp_path: Path, other: str
) -> None:
    machine("a").append("R", "1", "t", {"n": 1})
    before = rows(database, name)
    file = Journal(tmp_path / "other.jsonl")
    file.append("R", "1", "t", {"n": f"2{other}"})
    with raises_code(JournalError, "JRN742"):
        Upstream(database, name).upload(file.path)
    assert rows(database, name) == before


@contextmanager
def fresh(address: str, patience: float) -> Generator[Database]:
    """Give another connection to a database, whose user waits so many seconds for the server."""
    database = Database(address, checked=False)
    database.patience = patience
    yield database
    database.close()


class Cutting:
    """A way to a server that is cut at a COMMIT: before the server has it, or instead of the answer."""

    def __init__(self, port: int, *, is_committed: bool) -> None:
        self._server_port, self._is_committed = port, is_committed
        self.cuts_left = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Let nobody in any more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._server_port)) as server:
            while True:
                for end in select.select([client, server], [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    if end is client and b"COMMIT" in data and self.cuts_left:
                        self.cuts_left -= 1
                        if self._is_committed:
                            server.sendall(data)
                            server.recv(65536)
                        return
                    (server if end is client else client).sendall(data)


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("cuts", [1, 3])
def test_an_append_whose_connection_is_lost_at_commit_is_there_once(
    machine: Machine, postgres: Server, lines: str, name: str, tmp_path: Path, *, is_committed: bool, cuts: int
) -> None:
    cutting = Cutting(postgres.port, is_committed=is_committed)
    address = f"postgresql://postgres@127.0.0.1:{cutting.port}/{name_of(lines)}?sslmode=disable&gssencmode=disable"
    with fresh(address, 30.0) as database:
        one = Journal(tmp_path / "a" / "events.jsonl", Upstream(database, name))
        one.append("R", "1", "t", {})
        machine("b").append("R", "2", "t", {})
        cutting.cuts_left = cuts
        batch = one.extend("R", [("3", "t", {}), ("4", "t", {})])
        assert (cutting.cuts_left, [entry.seq for entry in batch]) == (0, [3, 4])
        assert machine("b").append("R", "5", "t", {}).prev == batch[-1].hash
        check_whole(database, name, one, machine("b"))
    cutting.close()


def test_while_the_server_is_away_nothing_is_acknowledged_and_nothing_waits_for_long(
    postgres: Server, lines: str, name: str, tmp_path: Path
) -> None:
    with fresh(lines, 0.5) as database:
        one = Journal(tmp_path / "a" / "events.jsonl", Upstream(database, name))
        one.append("R", "1", "t", {})
        before = one.path.read_bytes()
        postgres.stop()
        try:
            for use in (READS[0], USES[-2], USES[-1]):
                with raises_code(DatabaseError, "DBA901"):
                    use(one)
        finally:
            postgres.start()
        assert one.path.read_bytes() == before
    with fresh(lines, 30.0) as database:
        one = Journal(one.path, Upstream(database, name))
        assert one.append("R", "2", "t", {}).seq == 2
        postgres.restart(immediate=True)
        assert one.append("R", "3", "t", {}).seq == 3
        check_whole(database, name, one)


def test_a_server_whose_disk_is_full_acknowledges_nothing(
    machine: Machine, lines: str, name: str, database: Database, tmp_path: Path
) -> None:
    """The server raises what it raises for a full disk; the disk is not really full."""
    refuse = f"""
        CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON interlock.line FOR EACH ROW
        WHEN (NEW.journal = '{name}') EXECUTE FUNCTION full_disk()
    """
    one = machine("a")
    one.append("R", "1", "t", {})
    before = one.path.read_bytes()
    run_sql(database, refuse)
    with fresh(lines, 0.5) as impatient, raises_code(DatabaseError, "DBA901", "cannot write"):
        Journal(one.path, Upstream(impatient, name)).append("R", "2", "t", {})
    assert (one.path.read_bytes(), [entry.key for entry in machine("b").entries()]) == (before, ["1"])
    run_sql(database, "DROP FUNCTION full_disk CASCADE")
    assert one.append("R", "2", "t", {}).seq == 2
    check_whole(database, name, one, machine("b"))


def test_a_copy_for_which_this_machine_has_no_space_is_completed_later(
    machine: Machine, lines: str, name: str, database: Database, tmp_path: Path
) -> None:
    program = f"""{OPENED}
import resource, signal
from interlock.journal import JournalError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = opened(*sys.argv[2:])
journal.append("R", "1", "t", {{}})
resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + int(sys.argv[1]), resource.RLIM_INFINITY))
for use in (lambda: journal.append("R", "2", "t", {{"text": "x" * 1000}}), lambda: journal.head("R")):
    try:
        use()
    except JournalError as error:
        print(error.code)
"""
    one = machine("a")
    writer = python(program, 500, one.path, lines, name)
    assert writer.communicate()[0].split() == ["JRN733", "JRN733"]
    assert one.append("R", "2", "t", {"text": "x" * 1000}).seq == 2
    check_whole(database, name, one)


def test_a_process_whose_leg_is_lost_writes_nothing_and_may_read(
    machine: Machine, name: str, database: Database
) -> None:
    tables = """
        CREATE TABLE interlock.run (run text, leg text);
        CREATE SCHEMA dbos;
        CREATE TABLE dbos.workflow_status (workflow_uuid text, owner_xid text, status text);
        INSERT INTO interlock.run VALUES ('R', 'R#1');
        INSERT INTO dbos.workflow_status VALUES ('R#1', 'first', 'PENDING');
    """
    run_sql(database, tables)
    one, two = machine("a"), machine("b")
    with driving(Leg("R", "R#1", "first")):
        one.append("R", "1", "t", {})
    run_sql(database, "UPDATE dbos.workflow_status SET owner_xid = 'second'")
    with driving(Leg("R", "R#1", "first")), raises_code(LegLost, "DBA908"):
        one.append("R", "2", "t", {})
    two.append("R", "3", "t", {})
    with driving(Leg("R", "R#1", "first")):
        assert [entry.key for entry in one.entries()] == ["1", "3"]
    check_whole(database, name, one, two)
    run_sql(database, "DROP SCHEMA dbos CASCADE; DROP TABLE interlock.run")


def test_two_copies_are_kept_over_pgbouncer(
    machine: Machine, postgres: Server, lines: str, name: str, tmp_path: Path
) -> None:
    with pgbouncer(postgres, lines, pool_size=2) as address, fresh(address, 5.0) as behind:
        one = Journal(tmp_path / "a" / "events.jsonl", Upstream(behind, name))
        for number in range(10):
            one.append("R", f"a{number}", "t", {})
            machine("b").append("R", f"b{number}", "t", {})
        check_whole(behind, name, one, machine("b"))


FROZEN = f"""{OPENED}
import os, signal
from interlock.core import database
database._HELD = "SET LOCAL idle_in_transaction_session_timeout = '300ms'"
insert = Upstream.insert
def frozen(self, link, start, lines):
    Upstream.insert = insert
    insert(self, link, start, lines)
    print("inserted", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
Upstream.insert = frozen
print(opened(*sys.argv[1:]).append("R", "frozen", "t", {{}}).seq)
"""


def test_a_writer_that_is_frozen_before_it_commits_keeps_nobody_waiting_for_ever_and_repeats_itself(
    machine: Machine, lines: str, name: str, database: Database
) -> None:
    one, two = machine("a"), machine("b")
    one.append("R", "1", "t", {})
    writer = python(FROZEN, one.path, lines, name)
    assert writer.line() == "inserted\n"
    assert two.append("R", "2", "t", {}).seq == 2
    writer.send_signal(signal.SIGCONT)
    assert writer.rest() == "3\n"
    check_whole(database, name, one, two)


WRITER = f"""{OPENED}
letter, count, *rest = sys.argv[1:]
journal = opened(*rest)
sys.stdin.readline()
for number in range(int(count)):
    journal.append("shared", f"{{letter}}/{{number}}", "step", {{"number": number}})
    journal.extend("once", [(f"{{number}}/{{part}}", "step", {{"part": part}}) for part in range(3)])
    assert journal.find("once", f"{{number}}/2").seq >= 3
"""


def _write_from_four(machine: Machine, database: Database, name: str, rounds: int) -> None:
    one, two = machine("a"), machine("b")
    writers = [
        python(WRITER, letter, rounds, copy.path, database.address, name)
        for letter, copy in zip("wxyz", (one, two, one, two), strict=True)
    ]
    for writer in writers:
        writer.say("go")
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    check_whole(database, name, one, two, machine("c"))
    assert len(list(one.entries("shared"))) == 4 * rounds
    assert {entry.key for entry in one.entries("shared")} == {f"{each}/{n}" for each in "wxyz" for n in range(rounds)}
    assert [entry.key for entry in two.entries("once")] == [f"{n}/{part}" for n in range(rounds) for part in range(3)]


def test_four_processes_on_two_machines_write_one_journal(machine: Machine, database: Database, name: str) -> None:
    _write_from_four(machine, database, name, 15)


@pytest.mark.long
def test_four_processes_on_two_machines_write_one_journal_for_seconds(
    machine: Machine, database: Database, name: str
) -> None:
    _write_from_four(machine, database, name, 400)


KILLED = f"""{OPENED}
import os, signal
at, *rest = sys.argv[1:]
journal = opened(*rest)
run = f"killed at {{at}}"
journal.append(run, "first", "t", {{}})
done = 0
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def step(frame, event, argument):
    global done
    if event == "line" and ("/journal/" in frame.f_code.co_filename or "database.py" in frame.f_code.co_filename):
        if str(done) == at:
            kill()
        done += 1
    return step
if at == "before the commit":
    insert = Upstream.insert
    Upstream.insert = lambda *given: (insert(*given), kill())
elif at == "behind the commit":
    Journal._write = kill
elif at.startswith("behind byte"):
    write = os.write
    os.write = lambda fd, data: (write(fd, data[:int(at.split()[-1])]), kill())
else:
    sys.settrace(step)
journal.extend(run, [(str(number), "t", {{"text": "x" * 500}}) for number in range(4)])
sys.settrace(None)
print(done)
"""


def _kill_at(machine: Machine, database: Database, name: str, at: str) -> int:
    """Kill a writer of five lines somewhere behind the first; return how many of them are there at once."""
    one, two = machine("a"), machine("b")
    writer = python(KILLED, at, one.path, database.address, name)
    writer.communicate()
    assert writer.returncode == -signal.SIGKILL, at
    run = f"killed at {at}"
    there = [entry.key for entry in two.entries(run)]
    assert there in (["first"], ["first", "0", "1", "2", "3"])
    check_whole(database, name, one, two)
    copy = random.Random(at).choice([one, two])
    events = [(str(number), "t", {"text": "x" * 500}) for number in range(4)]
    assert [entry.seq for entry in copy.extend(run, events)] == [2, 3, 4, 5]
    check_whole(database, name, one, two)
    return len(there)


@pytest.mark.sample("before the commit", "behind the commit", "behind byte 300")
@pytest.mark.parametrize(
    "at", ["before the commit", "behind the commit", "behind byte 0", "behind byte 300", "behind byte 1500"]
)
def test_what_a_killed_writer_committed_and_did_not_write_its_machine_gets(
    machine: Machine, database: Database, name: str, at: str
) -> None:
    assert _kill_at(machine, database, name, at) == (1 if at == "before the commit" else 5)


@pytest.mark.long
def test_wherever_a_writer_is_killed_all_of_its_lines_are_there_or_none(
    machine: Machine, database: Database, name: str
) -> None:
    whole = python(KILLED, -1, machine("a").path, database.address, name)
    steps, rng = int(whole.communicate()[0]), random.Random(1)
    # One in each part of the way, so that some lie behind the commit.
    parts = [steps * part // 30 for part in range(31)]
    found = {_kill_at(machine, database, name, str(rng.randrange(*part))) for part in pairwise(parts)}
    assert found == {1, 5}


ACTS = st.one_of(
    st.tuples(st.just("extend"), st.sampled_from("AB"), st.lists(st.integers(0, 12), min_size=1, max_size=4)),
    st.tuples(st.just("conflict"), st.sampled_from("AB"), st.integers(0, 12)),
    st.tuples(st.just("read"), st.sampled_from("AB"), st.integers(0, len(READS) - 1)),
    st.tuples(st.just("cut"), st.floats(0, 1), st.none()),
    st.tuples(st.just("remove"), st.none(), st.none()),
    st.tuples(st.just("reopen"), st.none(), st.none()),
)


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 1]), ACTS), min_size=4, max_size=30))
def test_however_uses_of_two_copies_follow_each_other_they_are_one_journal(
    database: Database, acts: list[tuple[int, tuple[str, Any, Any]]]
) -> None:
    name, wanted = f"journal {next(_names)}", dict[str, list[str]](A=[], B=[])
    with TemporaryDirectory() as folder:

        def opened(number: int) -> Journal:
            return Journal(Path(folder) / str(number) / "events.jsonl", Upstream(database, name))

        copies = [opened(0), opened(1)]
        for number, (act, run, rest) in acts:
            copy = copies[number]
            if act == "extend":
                entries = copy.extend(run, [(str(key), "t", {"key": key}) for key in rest])
                wanted[run] += [key for key in dict.fromkeys(map(str, rest)) if key not in wanted[run]]
                assert [wanted[run][entry.seq - 1] for entry in entries] == [str(key) for key in rest]
            elif act == "conflict" and str(rest) in wanted[run]:
                with raises_code(JournalError, "JRN731"):
                    copy.append(run, str(rest), "t", {"key": "other"})
            elif act == "read":
                assert [entry.key for entry in copy.entries(run)] == wanted[run]
                assert (copy.head(run) or START).seq == len(wanted[run])
                assert {entry.run for _, entry in copy.follow()} == {each for each in wanted if wanted[each]}
            elif act == "cut" and copy.path.exists():
                os.truncate(copy.path, int(run * copy.path.stat().st_size))
            elif act == "remove":
                copy.path.unlink(missing_ok=True)
            elif act == "reopen":
                copies[number] = opened(number)
        if any(wanted.values()):
            check_whole(database, name, *copies)
        for run in wanted:
            assert [[entry.key for entry in copy.entries(run)] for copy in copies] == [wanted[run]] * 2
