"""Measures reservations side by side, in one run, on one machine: ratios count, seconds do not.

    python -m benchmarks.reservations            # a table
    python -m benchmarks.reservations --json     # the same as JSON
    python -m benchmarks.reservations --quick    # fewer rounds
    python -m benchmarks.reservations --database postgresql://USER@HOST/DATABASE     # in PostgreSQL, where two are made

Every store is a real file, every worker and every hook a process of its own. It never fails by the clock.
"""

import argparse
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, LiteralString, cast
from urllib.parse import urlsplit, urlunsplit

from interlock.core.database import Database
from interlock.core.patterns import Pattern, canonical
from interlock.reservations import Agent, Caller, Lease, PostgresStore, Reservations, Runtime, SqliteStore, Transaction

WORKERS: Final = 8
KINDS: Final = {"interlock": "reserve_files", "bare": "bare", "quick": "bare that waits as we do"}
HOLDERS: Final = 20
IN_A_FOLDER: Final = 10
AUTO_RELEASE: Final = "INTERLOCK_AUTO_RELEASE"


def calls(store: Any, name: str, root: str = "/bench") -> Reservations:
    """Return the calls of an agent whose process lives."""
    runtime = Runtime(store, is_running=lambda _host, _pid, _started: True)
    return Reservations(runtime, Caller(name, "agent", root, "cli", "bench", os.getpid(), "now"))


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, 95th percentile and maximum in milliseconds."""
    ordered = sorted(seconds)
    at = {"median": statistics.median(ordered), "p95": ordered[int(len(ordered) * 0.95)], "max": ordered[-1]}
    return {name: round(value * 1000, 3) for name, value in at.items()}


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# -- a: a conflict check among few and among many leases -----------------------------------------------------------


def pattern_of(text: str) -> Pattern:
    """Return a pattern that is known to be right."""
    pattern = canonical(text)
    assert isinstance(pattern, Pattern), pattern
    return pattern


def live(number: int, pattern: Pattern, token: int, now: float) -> Lease:
    """Return an exclusive lease that lives for hours."""
    return Lease(
        reservation_id=f"rsv_{number:016x}",
        agent=f"holder-{number % HOLDERS}",
        pattern=pattern.text,
        prefix=pattern.prefix,
        exclusive=True,
        no_force=False,
        claim=False,
        reason="bench",
        token=token,
        granted_at=now,
        renewed_at=now,
        expires_at=now + 36_000,
    )


def leased(store: SqliteStore | PostgresStore, leases: int) -> SqliteStore | PostgresStore:
    """Fill a store with live leases: ten to a folder, every tenth of them a glob, each of `HOLDERS` in turn."""
    now = time.time()
    with store.transaction() as tx:
        for number in range(HOLDERS):
            tx.put_agent(Agent(f"holder-{number}", "agent", "bench", 1, "now", "mcp", now, now))
        for number in range(leases):
            folder, place = divmod(number, IN_A_FOLDER)
            pattern = pattern_of(f"src/part_{folder:04}/" + (f"*_{place}.[ch]" if place == 0 else f"file_{place}.py"))
            tx.put_lease(live(number, pattern, tx.next_number("token"), now))
    return store


def questions(leases: int, count: int) -> list[list[str]]:
    """Return what is asked: files that are held and free, globs inside a folder, and now and then a whole folder."""
    rng = random.Random(7)
    kinds = (
        "file_{place}.py",
        "file_{place}.py",
        "new_{place}.py",
        "other/new_{place}.py",
        "*.c",
        "file_[0-3].py",
        "**",
    )
    folders = leases // IN_A_FOLDER
    return [
        [
            f"src/part_{rng.randrange(folders):04}/{rng.choice(kinds).format(place=rng.randrange(IN_A_FOLDER))}"
            for _ in range(rng.choice((1, 1, 1, 3)))
        ]
        for _ in range(count)
    ]


def conflict_checks(named: Callable[[str], SqliteStore | PostgresStore], rounds: int) -> dict[str, Any]:
    """Compare the check of the same kinds of patterns among 100 and among 10,000 leases, in turns."""
    sizes = {"100": 100, "10000": 10_000}
    ours = {name: calls(leased(named(name), size), "asker") for name, size in sizes.items()}
    asked = {name: questions(size, rounds) for name, size in sizes.items()}
    times: dict[str, list[float]] = {name: [] for name in sizes}
    wide: dict[str, list[float]] = {name: [] for name in sizes}
    for name in sizes:
        for patterns in asked[name][:20]:
            ours[name].check_conflicts(patterns)
    for number in range(rounds):
        for name in sizes if number % 2 else reversed(sizes):
            patterns = asked[name][number]
            times[name].append(timed(lambda name=name, patterns=patterns: ours[name].check_conflicts(patterns)))
    for _ in range(max(rounds // 100, 3)):
        for name in sizes:
            wide[name].append(timed(lambda name=name: ours[name].check_conflicts(["**/*.rs"])))
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "check_ms": {name: spread(values) for name, values in times.items()},
        "ratio": round(medians["10000"] / medians["100"], 2),
        "without_a_beginning_ms": {name: spread(values) for name, values in wide.items()},
    }


def in_database(address: str, rounds: int) -> dict[str, Any]:
    """Do the same in databases that are made on a server, and measure a grant and a poll of who waits."""
    import psycopg  # noqa: PLC0415 - an extra

    from tests.reservations.databases import set_up  # noqa: PLC0415 - it needs the extra

    made: list[PostgresStore] = []

    def store(name: str) -> PostgresStore:
        link.execute(cast("LiteralString", f"CREATE DATABASE interlock_bench_{name}"))
        own = urlunsplit(urlsplit(address)._replace(path=f"/interlock_bench_{name}"))
        set_up(own)
        made.append(PostgresStore(Database(own), ""))
        return made[-1]

    with psycopg.connect(address, autocommit=True) as link:
        try:
            results = conflict_checks(store, rounds)
            ours, grants = calls(made[0], "alone"), list[float]()
            for number in range(rounds):
                grants.append(timed(lambda number=number: ours.reserve_files([f"own/{number % 5}.py"], "bench")))
                ours.release_all()
            polls = [timed(made[0].stamp) for _ in range(rounds)]
        finally:
            for name in ("100", "10000"):
                link.execute(f"DROP DATABASE IF EXISTS interlock_bench_{name} WITH (FORCE)")
    return results | {"grant_ms": spread(grants), "poll_ms": spread(polls)}


# -- b: grants, beside a bare check and insert ---------------------------------------------------------------------


class Bare:
    """A check and insert with nothing around it: the same pragmas, the same indexes, as many rows.

    Args:
        path: The file.
        rows: How many rows a grant and a release write.
        quick: Try again after at most 4 ms, as our store does; SQLite itself waits up to 100 ms.
    """

    def __init__(self, path: str, rows: tuple[int, int], *, quick: bool = False) -> None:
        self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._quick = quick
        self._db.execute("PRAGMA journal_mode = PERSIST")
        self._db.execute("PRAGMA synchronous = FULL")
        self._rows = rows

    def make(self) -> None:
        """Make the tables."""
        self._db.execute("CREATE TABLE lease (id TEXT PRIMARY KEY, prefix TEXT, holder TEXT, expires REAL)")
        for column in ("prefix", "holder", "expires"):
            self._db.execute(f"CREATE INDEX lease_{column} ON lease ({column})")
        self._db.execute("CREATE TABLE log (number INTEGER PRIMARY KEY AUTOINCREMENT, root TEXT, text TEXT)")

    def grant(self, name: str, file: str) -> None:
        """Check and insert."""
        self._begin()
        found = self._db.execute("SELECT id FROM lease WHERE prefix IN ('', 'src/', ?)", (file,)).fetchall()
        assert not found
        self._db.execute("INSERT INTO lease VALUES (?, ?, ?, ?)", (f"{name}/{file}", file, name, time.time() + 900))
        self._log(self._rows[0] - 1)

    def release(self, name: str, file: str) -> None:
        """Delete what `grant` inserted."""
        self._begin()
        self._db.execute("DELETE FROM lease WHERE id = ?", (f"{name}/{file}",))
        self._log(self._rows[1] - 1)

    def _begin(self) -> None:
        if not self._quick:
            self._db.execute("BEGIN IMMEDIATE")
            return
        self._db.execute("PRAGMA busy_timeout = 0")
        pause = 0.0005
        while True:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError:
                time.sleep(pause)
                pause = min(pause * 2, 0.004)
        self._db.execute("PRAGMA busy_timeout = 60000")

    def _log(self, rows: int) -> None:
        for _ in range(rows):
            self._db.execute("INSERT INTO log (root, text) VALUES ('/bench', ?)", ("x" * 150,))
        self._db.execute("COMMIT")


def rows_written(folder: Path) -> tuple[int, int]:
    """Return how many rows a grant and a release of ours write, the agent being known."""
    store = SqliteStore(str(folder / "counted.sqlite"))
    ours = calls(store, "counter")
    ours.release_files([ours.reserve_files(["src/first.py"])["reservations"][0]["reservation_id"]])
    before = changes(store)
    held = ours.reserve_files(["src/counted.py"])["reservations"][0]["reservation_id"]
    between = changes(store)
    ours.release_files([held])
    return between - before, changes(store) - between


def changes(store: SqliteStore) -> int:
    """Return how many rows the connection of a store has written so far."""
    with store.transaction() as tx:
        rows: Any = tx
        return rows._run("SELECT total_changes()").fetchone()[0]  # noqa: SLF001 - no promise of a store


def work_loop(kind: str, path: str, name: str, count: int, rows: tuple[int, int]) -> list[float]:
    """Grant and release `count` times, when a line comes in; return the seconds of each grant."""
    print("ready", flush=True)
    sys.stdin.readline()
    times: list[float] = []
    if kind != "interlock":
        bare = Bare(path, rows, quick=kind == "quick")
        for number in range(count):
            times.append(timed(lambda number=number: bare.grant(name, f"src/{name}_{number % 5}.py")))
            bare.release(name, f"src/{name}_{number % 5}.py")
        return times
    ours = calls(SqliteStore(path), name)
    for number in range(count):
        start = time.perf_counter()
        answer = ours.reserve_files([f"src/{name}_{number % 5}.py"], "bench")
        times.append(time.perf_counter() - start)
        assert not answer["errors"], answer
        ours.release_files([answer["reservations"][0]["reservation_id"]])
    return times


def together(kind: str, path: Path, workers: int, count: int, rows: tuple[int, int]) -> tuple[float, list[float]]:
    """Let processes grant and release at once; return the seconds of the whole, and of each grant."""
    if kind != "interlock":
        Bare(str(path), rows).make()
    command = [sys.executable, "-m", "benchmarks.reservations", "--worker", kind, str(path)]
    running = [
        subprocess.Popen(
            [*command, f"w{number}", str(count), *map(str, rows)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        for number in range(workers)
    ]
    for worker in running:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    start = time.perf_counter()
    for worker in running:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    answers = [worker.communicate()[0] for worker in running]
    taken = time.perf_counter() - start
    assert [worker.returncode for worker in running] == [0] * workers
    return taken, [seconds for answer in answers for seconds in json.loads(answer)]


def grants(folder: Path, rounds: int, count: int) -> dict[str, Any]:
    """Compare reserving and releasing with a bare check and insert, by 8 processes and by one, in turns."""
    rows = rows_written(folder)
    results: dict[str, Any] = {"rows": {"grant": rows[0], "release": rows[1]}}
    for workers in (WORKERS, 1):
        seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
        single: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for number in range(rounds):
            for kind in KINDS if number % 2 else reversed(KINDS):
                path = folder / f"{kind}-{workers}-{number}.sqlite"
                taken, each = together(kind, path, workers, count, rows)
                seconds[kind].append(taken)
                single[kind] += each
        results[f"{workers} processes" if workers > 1 else "1 process"] = {
            "grants_per_second": {
                kind: round(workers * count / statistics.median(taken)) for kind, taken in seconds.items()
            },
            "grant_ms": {kind: spread(taken) for kind, taken in single.items()},
            "ratio": {
                kind: round(statistics.median(seconds["interlock"]) / statistics.median(seconds[kind]), 2)
                for kind in ("bare", "quick")
            },
        }
    return results


class TimedStore:
    """A store that counts the time spent in it.

    Args:
        store: The real one.
    """

    is_shared = False

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.seconds = 0.0

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """Open a transaction whose beginning, end and questions are counted."""
        real = self._store.transaction()
        start = time.perf_counter()
        tx = real.__enter__()
        self.seconds += time.perf_counter() - start
        yield cast("Transaction", _TimedRows(self, tx))
        start = time.perf_counter()
        real.__exit__(None, None, None)
        self.seconds += time.perf_counter() - start


class _TimedRows:
    def __init__(self, counted: TimedStore, rows: object) -> None:
        self._counted = counted
        self._rows = rows

    def __getattr__(self, name: str) -> Callable[..., object]:
        real = getattr(self._rows, name)

        def ask(*values: Any, **options: Any) -> object:
            start = time.perf_counter()
            try:
                return real(*values, **options)
            finally:
                self._counted.seconds += time.perf_counter() - start

        return ask


def store_share(folder: Path, rounds: int) -> dict[str, Any]:
    """Take a grant and a release apart, in this process: how much of it is spent in the store."""
    counted = TimedStore(SqliteStore(str(folder / "share.sqlite")))
    ours = calls(counted, "alone")
    whole = 0.0
    for number in range(rounds + 20):
        if number == 20:
            counted.seconds = whole = 0.0
        start = time.perf_counter()
        answer = ours.reserve_files([f"src/{number % 5}.py"], "bench")
        ours.release_files([answer["reservations"][0]["reservation_id"]])
        whole += time.perf_counter() - start
    return {
        "grant_and_release_ms": round(whole / rounds * 1000, 3),
        "in_the_store_ms": round(counted.seconds / rounds * 1000, 3),
        "share": round(counted.seconds / whole, 2),
    }


# -- c: the hook ---------------------------------------------------------------------------------------------------


def project(root: Path) -> Path:
    """Make a git checkout with some files."""
    for number in range(20):
        file = root / f"src/module_{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"value = {number}\n")
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run([*git, *command], cwd=root, check=True)
    return root


def edit(root: Path, session: str, number: int, name: str = "PreToolUse") -> bytes:
    """Return the input of a client's hook before an edit, or at another event."""
    tool = {"file_path": str(root / f"src/module_{number}.py"), "old_string": "a", "new_string": "b"}
    event = {"session_id": session, "cwd": str(root), "hook_event_name": name, "tool_name": "Edit"}
    return json.dumps({**event, "tool_input": tool}).encode()


def command(root: Path, line: str) -> bytes:
    """Return the input of a client's hook before a shell command."""
    event = {"session_id": "shell", "cwd": str(root), "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    return json.dumps({**event, "tool_use_id": "toolu_1", "tool_input": {"command": line}}).encode()


def process_seconds(command: Sequence[str], data: bytes, cwd: Path, **env: str) -> float:
    """Return the seconds from the start of a process to its end."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    done = subprocess.run(command, input=data, cwd=cwd, env={**kept, **env}, capture_output=True, check=False)
    taken = time.perf_counter() - start
    assert done.returncode == 0, done.stderr.decode()
    return taken


def hook_latency(folder: Path, rounds: int) -> dict[str, Any]:
    """Compare the pre-edit hook with a Python that imports sqlite3 and json alone, with and without requests."""
    hook = [str(Path(sys.executable).with_name("interlock")), "hook", "pre-edit"]
    quiet, asked = project(folder / "quiet"), project(folder / "asked")
    for number in range(5):
        process_seconds(hook, edit(asked, "holder", number), asked)
        ask = [hook[0], "negotiate", f"src/module_{number}.py", "--reason", "needed", "--urgency", "low"]
        process_seconds(ask, b"", asked, INTERLOCK_AGENT_ID=f"asker-{number}")
    contenders: dict[str, Callable[[int], float]] = {
        "import sqlite3, json": lambda _: process_seconds([sys.executable, "-c", "import sqlite3, json"], b"", folder),
        "first edit of a file": lambda number: process_seconds(hook, edit(quiet, f"s{number}", number % 20), quiet),
        "another edit of it": lambda number: process_seconds(hook, edit(quiet, f"s{number}", number % 20), quiet),
        "five requests wait": lambda number: process_seconds(hook, edit(asked, "holder", number % 5), asked),
        "five requests shown": lambda number: process_seconds(
            hook, edit(asked, "holder", number % 5), asked, **{AUTO_RELEASE: "1"}
        ),
        "a shell command": lambda _: process_seconds(hook, command(asked, "ls -la"), asked),
        "a git command": lambda number: process_seconds(
            hook, command(asked, ("git status", "git add src/module_9.py")[number % 2]), asked
        ),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 2):
        for name, contender in contenders.items():
            taken = contender(number)
            if number >= 2:
                times[name].append(taken)
        # The file is free again for the next session.
        stop = [*hook[:2], "stop"]
        process_seconds(stop, edit(quiet, f"s{number}", number % 20, "SessionEnd"), quiet)
    found = {name: spread(taken) for name, taken in times.items()}
    base = found["import sqlite3, json"]
    return {
        "ms": found,
        "ratio": {name: round(each["median"] / base["median"], 2) for name, each in found.items()},
        "inbox_adds_ms": round(found["five requests shown"]["median"] - found["another edit of it"]["median"], 1),
    }


# -- all of it -----------------------------------------------------------------------------------------------------


def table(results: dict[str, Any]) -> str:
    """Return the results as lines for a terminal."""

    def row(name: str, found: dict[str, float]) -> str:
        return f"  {name:38}{found['median']:10.2f} ms   p95 {found['p95']:8.2f} ms   max {found['max']:8.2f} ms"

    checks, granted, share, hook = (results[name] for name in ("conflict checks", "grants", "share", "hook"))
    lines = ["A conflict check among live leases (10,000 cost at most twice what 100 cost)"]
    lines += [row(f"{name} leases", found) for name, found in checks["check_ms"].items()]
    lines += [f"  {'ratio':38}{checks['ratio']:10.2f}"]
    lines += [row(f"`**/*.rs`, {name} leases", found) for name, found in checks["without_a_beginning_ms"].items()]
    rows = granted["rows"]
    lines += [
        "",
        f"Grants beside a bare check and insert of as many rows ({rows['grant']} and {rows['release']}; at most 3)",
    ]
    for name, found in granted.items():
        if name == "rows":
            continue
        for kind, label in KINDS.items():
            rate, ratio = found["grants_per_second"][kind], found["ratio"].get(kind)
            against = "" if ratio is None else f"   ours takes {ratio:.2f} times as long"
            lines += [f"{row(f'{name}, {label}', found['grant_ms'][kind])} {rate:8} a second{against}"]
    lines += [f"  {'share of the store, 1 process':38}{share['share']:10.2f} of {share['grant_and_release_ms']} ms"]
    lines += ["", "The pre-edit hook from start to exit (p95 under 100 ms, at most 4 times the first line)"]
    lines += [f"{row(name, found)}  {hook['ratio'][name]:6.2f}" for name, found in hook["ms"].items()]
    lines += [f"  {'the inbox adds':38}{hook['inbox_adds_ms']:10.1f} ms"]
    return "\n".join(lines)


def main() -> None:
    """Run every measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--database", help="measure the checks in databases that are made on this server; prints JSON")
    parser.add_argument("--worker", nargs=6, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        kind, path, name, count, *rows = args.worker
        print(json.dumps(work_loop(kind, path, name, int(count), (int(rows[0]), int(rows[1])))))
        return
    few = args.quick
    if args.database:
        print(json.dumps(in_database(args.database, 200 if few else 2000), indent=2))
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        results = {
            "conflict checks": conflict_checks(
                lambda name: SqliteStore(str(folder / f"{name}.sqlite")), 200 if few else 2000
            ),
            "grants": grants(folder, 2 if few else 5, 50 if few else 200),
            "share": store_share(folder, 100 if few else 1000),
            "hook": hook_latency(folder, 10 if few else 60),
        }
    print(json.dumps(results, indent=2) if args.json else table(results))


if __name__ == "__main__":
    main()
