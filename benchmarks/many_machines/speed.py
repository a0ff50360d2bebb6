"""How fast workers are, how many connections they take, and what ten thousand runs cost that wait for a person."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import psutil
import psycopg

from benchmarks.many_machines.campaign import world
from benchmarks.many_machines.world import Machine, World
from interlock.journal.line import START, Event, make
from tests.postgres import Server

Row: TypeAlias = dict[str, Any]
_SECONDS: Final = 600.0


def two(server: Server, folder: Path, count: int) -> Row:
    """Have runs that wait for models driven by one worker, and as many more by two, one run at once each."""
    seconds, took = 20.0, dict[int, float]()
    for workers in (1, 2):
        with world(server, folder / str(workers), call_seconds=seconds) as made:
            made.start(workers, concurrency=1)
            began = time.monotonic()
            made.submit(*(f"T-{number}" for number in range(count)))
            made.settle(_SECONDS)
            took[workers] = time.monotonic() - began
    return {
        "runs": count,
        "a paid call takes": f"{seconds:.0f} s",
        "one worker": f"{took[1]:.1f} s",
        "two": f"{took[2]:.1f} s",
        "ratio": f"{took[1] / took[2]:.2f}",
    }


def connections(server: Server, folder: Path, count: int) -> Row:
    """Count the connections of a worker, idle and with runs that wait for models."""
    with world(server, folder, call_seconds=30.0) as made:
        made.start(1, concurrency=count)
        most = _most(made, 10.0)
        made.submit(*(f"T-{number}" for number in range(count)))
        beginning = 0
        while len(made.provider.calls) < count:
            beginning = max(beginning, _most(made, 0.5))
        waiting = _most(made, 15.0)
        return {"idle": most, "running runs": count, "while they begin": beginning, "while they wait": waiting}


def _most(made: World, seconds: float) -> int:
    """Return the most connections that the database had in so many seconds, without ours."""
    end, most = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        asked = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name IN ('interlock', 'dbos')"
        most = max(most, made.ask(asked)[0]["n"])
        time.sleep(0.05)
    return most


def taking_over(server: Server, folder: Path, count: int) -> Row:
    """Kill a worker in a paid call, and measure until a warm one has the run, and until it makes the call again."""
    has, calls = list[float](), list[float]()
    with world(server, folder, call_seconds=8.0) as made:
        made.start(2)
        for number in range(count):
            (run,) = made.submit(f"T-{number}")
            made.provider.wait_for(lambda call, run=run: call.run == run and "builder" in call.ask, _SECONDS)
            machine = made.owner(run)
            assert machine is not None
            machine.kill()
            killed, at = time.monotonic(), time.time()
            made.until(lambda run=run, machine=machine: made.owner(run) not in (None, machine), _SECONDS)
            has.append(time.monotonic() - killed)
            made.provider.wait_for(lambda call, run=run, at=at: call.run == run and call.began > at, _SECONDS)
            calls.append(time.monotonic() - killed)
            machine.start()
            made.settle()
            made.wait_for_workers(2)
    return {
        "time-out": "3 s",
        "has the run": f"{statistics.median(has):.1f} s, at most {max(has):.1f}",
        "asks again": f"{statistics.median(calls):.1f} s, at most {max(calls):.1f}",
    }


def waiting(server: Server, folder: Path, count: int) -> Row:
    """Measure a worker without, and with so many runs that wait for a person."""
    with world(server, folder, call_seconds=0.2) as made:
        (machine,) = made.start(1)
        made.submit("T-0")
        made.settle()
        found = {"runs that wait": count, "idle before": _idle(machine), "new run before": _latency(made, "A")}
        (waits,) = made.submit("T-1", more='[agents.planner]\nrunner = "remote"\n')
        made.settle()
        _multiply(made, waits, count)
        began = time.monotonic()
        machine.interlock("status", timeout=_SECONDS)
        found["first status"] = f"{time.monotonic() - began:.1f} s"
        return found | {"idle after": _idle(machine), "new run after": _latency(made, "B")}


def _idle(machine: Machine, seconds: float = 30.0) -> str:
    """Return which part of a core a worker takes that has nothing to do."""
    process = psutil.Process(machine.worker.pid)
    before = process.cpu_times()
    time.sleep(seconds)
    after = process.cpu_times()
    return f"{(after.user + after.system - before.user - before.system) / seconds:.1%}"


def _latency(made: World, name: str, count: int = 5) -> str:
    """Return how long it takes until a run that is submitted makes its first paid call."""
    found = list[float]()
    for number in range(count):
        began = time.monotonic()
        (run,) = made.submit(f"{name}-{number}")
        made.provider.wait_for(lambda call, run=run: call.run == run, _SECONDS)
        found.append(time.monotonic() - began)
        made.settle()
    return f"{statistics.median(found):.1f} s ({min(found):.1f} to {max(found):.1f})"


_COPIES: Final = (
    """INSERT INTO interlock.run (run, saved)
        SELECT 'W-' || n || '.1', saved FROM interlock.run, numbers WHERE run = %(run)s""",
    """INSERT INTO interlock.run_file (run, name, data, version)
        SELECT 'W-' || n || '.1', name, data,
            (SELECT max(version) FROM interlock.run_file) + row_number() OVER ()
        FROM interlock.run_file, numbers WHERE run = %(run)s AND name = 'run.json'""",
    """INSERT INTO interlock.checkpoints
        SELECT (jsonb_populate_record(c, jsonb_build_object('thread_id', 'W-' || n || '.1'))).*
        FROM interlock.checkpoints AS c, numbers WHERE thread_id = %(run)s""",
    """INSERT INTO dbos.workflow_status
        SELECT (jsonb_populate_record(w, jsonb_build_object('workflow_uuid', 'W-' || n || '.1#1'))).*
        FROM dbos.workflow_status AS w, numbers WHERE workflow_uuid = %(run)s || '#1'""",
)


def _multiply(made: World, run: str, count: int) -> None:
    """Copy a run so many times, with its lines of the journal, as if each had been begun."""
    lines = [line for line in made.lines() if line["run"] == run]
    start = made.ask("SELECT max(start + length(bytes)) AS n FROM interlock.line")[0]["n"]
    with psycopg.connect(made.address) as link:
        link.execute("CREATE TEMPORARY TABLE numbers AS SELECT generate_series(1, %s) AS n", (count,))
        for statement in _COPIES:
            link.execute(statement, {"run": run})  # type: ignore[arg-type]
        with link.cursor().copy("COPY interlock.line (journal, start, bytes) FROM STDIN") as copy:
            journal = made.ask("SELECT journal FROM interlock.line LIMIT 1")[0]["journal"]
            for number in range(1, count + 1):
                head = START
                for line in lines:
                    event = Event(f"W-{number}.1", line["key"], line["type"], line["data"])
                    entry, data = make(event, after=head, at=line["at"])
                    head = type(head)(entry.seq, entry.hash)
                    copy.write_row((journal, start, data))
                    start += len(data)


MEASURED: Final[dict[str, tuple[Callable[[Server, Path, int], Row], int]]] = {
    "two": (two, 6),
    "connections": (connections, 8),
    "taking-over": (taking_over, 5),
    "waiting": (waiting, 10_000),
}
"""What is measured, and of how many runs."""
