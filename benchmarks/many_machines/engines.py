# ruff: noqa: D102, D103, PLC0415, SLF001
# pyright: basic, reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""The same graph of six nodes under three engines and the same faults, to compare; see `benchmarks/README.md`.

    python -m benchmarks.many_machines engines --rounds 10     # needs: pip install absurd-sdk absurdctl

`lock`    LangGraph's own PostgreSQL saver. A worker has a run while a session of its holds an advisory lock; the server
          ends a session that was silent for two seconds, so that the runs of a frozen worker go on.
`absurd`  the same saver in a task of Absurd, with its heartbeat.
`fenced`  the same, and each write of the saver first renews the claim in its transaction: what Absurd could do.
`ours`    `FencedSaver` in a leg, by our worker, whose time-out is two seconds as well.

What a node does is a row in a table that nothing guards: it shows how often it was done.
"""

import hashlib
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row

from interlock.graph.engine.saver import FencedSaver
from tests.postgres import Server

NODES: Final = tuple(f"n{number}" for number in range(6))
SECONDS: Final = 0.5
"""How long a node takes."""
TIMEOUT_SECONDS: Final = 2
CONCURRENCY: Final = 4
_NAME, _DATABASE, _ROOT = "ENGINE_WORKER", "ENGINE_DATABASE", "ENGINE_ROOT"
_QUEUE: Final = "drive"


class State(TypedDict):
    """The names of the nodes that were done."""

    log: Annotated[list[str], operator.add]


def connect(**options: Any) -> Any:
    """Return a connection to the database of the workers."""
    address, given = os.environ[_DATABASE], {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}
    return psycopg.connect(address, **(given | options))


def drive(run: str, saver: Any) -> None:
    """Take a run from where it is to its end."""

    def node(name: str) -> Callable[[State], Mapping[str, Any]]:
        def work(_state: State) -> Mapping[str, Any]:
            time.sleep(SECONDS)
            with connect() as link:
                link.execute("INSERT INTO public.effect VALUES (%s, %s, %s)", (run, name, os.environ[_NAME]))
            return {"log": [name]}

        return work

    graph = StateGraph(State)
    for before, name in zip((START, *NODES), NODES, strict=False):
        graph.add_node(name, node(name))
        graph.add_edge(before, name)
    graph.add_edge(NODES[-1], END)
    made, config = graph.compile(checkpointer=saver), {"configurable": {"thread_id": run}}
    state = made.get_state(config)
    if state.created_at is None or state.next:
        made.invoke({"log": []} if state.created_at is None else None, config, durability="sync")


# -- the engines: what makes their tables, puts runs into a queue, and works ----------------------------------------


def lock_setup() -> None:
    with connect() as link:
        PostgresSaver(link).setup()
        link.execute("CREATE TABLE public.job (run text PRIMARY KEY, ended boolean NOT NULL DEFAULT false)")


def lock_submit(runs: list[str]) -> None:
    with connect() as link:
        for run in runs:
            link.execute("INSERT INTO public.job (run) VALUES (%s)", (run,))


def lock_work() -> None:
    """Look for runs that nobody has, and drive each under a lock of a session that says every half second it lives."""
    while True:
        with suppress(psycopg.Error), connect() as link:
            link.execute(f"SET idle_session_timeout = '{TIMEOUT_SECONDS}s'")
            rows = link.execute("SELECT run FROM public.job WHERE NOT ended ORDER BY random()").fetchall()
            for run in (row["run"] for row in rows):
                number = int.from_bytes(hashlib.sha256(run.encode()).digest()[:7])
                row = link.execute("SELECT pg_try_advisory_lock(%s) AS has", (number,)).fetchone()
                if row and row["has"]:
                    with living(lambda: link.execute("SELECT 1"), 0.5), connect() as own:
                        drive(run, PostgresSaver(own))
                        own.execute("UPDATE public.job SET ended = true WHERE run = %s", (run,))
                    break
        time.sleep(0.25)


@contextmanager
def living(beat: Callable[[], object], seconds: float) -> Any:
    """Call something every so many seconds, in a thread."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(seconds):
            with suppress(Exception):
                beat()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def absurd_setup() -> None:
    from absurd_sdk import Absurd
    from absurdctl import BUNDLED_SCHEMA_SQL

    with connect() as link:
        PostgresSaver(link).setup()
        link.execute(BUNDLED_SCHEMA_SQL)
    Absurd(os.environ[_DATABASE], queue_name=_QUEUE).create_queue(_QUEUE)


def absurd_submit(runs: list[str]) -> None:
    from absurd_sdk import Absurd

    app, again = Absurd(os.environ[_DATABASE], queue_name=_QUEUE), {"kind": "fixed", "base_seconds": 1}
    for run in runs:
        app.spawn("drive", {"run": run}, queue=_QUEUE, max_attempts=50, retry_strategy=again)


class ClaimingSaver(PostgresSaver):
    """LangGraph's saver, whose writes first renew the claim of a task, in their own transaction."""

    claim: tuple[str, str, int] | None = None

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Any:
        link: Any = self.conn
        with self.lock, link.transaction(), link.cursor(row_factory=dict_row) as cursor:
            if pipeline and self.claim:
                cursor.execute("SELECT absurd.extend_claim(%s, %s, %s)", self.claim)
            yield cursor


def absurd_work(*, fenced: bool = False) -> None:
    from absurd_sdk import Absurd

    while True:
        with suppress(Exception):
            app = Absurd(os.environ[_DATABASE], queue_name=_QUEUE)

            @app.register_task(name="drive", default_max_attempts=50)
            def task(given: Any, context: Any) -> None:
                claim = (_QUEUE, str(context._task["run_id"]), TIMEOUT_SECONDS)
                with connect() as own, connect() as beats:
                    saver = ClaimingSaver(own)
                    saver.claim = claim if fenced else None
                    with living(lambda: beats.execute("SELECT absurd.extend_claim(%s, %s, %s)", claim), 0.5):
                        drive(given["run"], saver)

            name = f"{os.environ[_NAME]}-{threading.get_ident()}"
            app.start_worker(worker_id=name, claim_timeout=TIMEOUT_SECONDS, poll_interval=0.25)
        time.sleep(0.5)


def ours_submit(runs: list[str]) -> None:
    from interlock.core.database import database
    from interlock.graph.engine import legs

    ours = database(os.environ[_DATABASE])
    for run in runs:
        ours.transact(lambda link, run=run: link.execute("INSERT INTO interlock.run (run) VALUES (%s)", (run,)))
        legs.enqueue(ours, run, {})


def ours_work() -> None:
    from interlock.graph.team.worker import Worker

    class GraphWorker(Worker):
        """Our worker, with this graph in the place of a task."""

        def _done(self, leg: Any, here: str, given: Any) -> Any:  # noqa: ARG002 - as it is called
            drive(leg.run, FencedSaver(self.database))
            return {"run": leg.run}, None

    GraphWorker(Path(os.environ[_ROOT]), ("drive",), CONCURRENCY, print).work()


def threads(work: Callable[[], None]) -> None:
    """Have as many threads work as our worker has."""
    for _ in range(CONCURRENCY):
        threading.Thread(target=work, daemon=True).start()
    threading.Event().wait()


ENGINES: Final[Mapping[str, tuple[Callable[[], None], Callable[[list[str]], None], Callable[[], None]]]] = {
    "lock": (lock_setup, lock_submit, lambda: threads(lock_work)),
    "absurd": (absurd_setup, absurd_submit, lambda: threads(absurd_work)),
    "fenced": (absurd_setup, absurd_submit, lambda: threads(lambda: absurd_work(fenced=True))),
    "ours": (lambda: None, ours_submit, ours_work),
}


# -- the faults -------------------------------------------------------------------------------------------------------


class Trial:
    """Rounds of one fault under one engine."""

    def __init__(self, engine: str, server: Server, address: str, root: Path) -> None:
        self.engine, self.server, self.address = engine, server, address
        self.environment = {**os.environ, _DATABASE: address, _ROOT: str(root), "INTERLOCK_STATE": str(root / "state")}
        self.log = (root / f"{engine}.log").open("ab")
        os.environ[_DATABASE] = address
        with connect() as link:
            link.execute("CREATE TABLE public.effect (run text, node text, worker text)")
        ENGINES[engine][0]()

    def worker(self, name: str) -> "subprocess.Popen[bytes]":
        """Start a worker, and return it when it has begun to work."""
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.many_machines.engines", self.engine],
            env={**self.environment, _NAME: name},
            stdout=self.log,
            stderr=self.log,
        )

    def submit(self, runs: list[str]) -> None:
        ENGINES[self.engine][1](runs)

    def count(self, where: str, *values: Any) -> int:
        """Return how many runs have an effect for which something holds."""
        try:
            with connect() as link:
                row = link.execute(
                    f"SELECT count(DISTINCT run) AS n FROM public.effect WHERE {where}", values
                ).fetchone()
        except psycopg.Error:
            return 0
        return row["n"] if row else 0

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def round(self, fault: str, number: int) -> None:
        """Submit runs, let a fault happen to the worker that drives them, and wait until they have ended."""
        runs = [f"{fault}-{number}-{each}" for each in range(CONCURRENCY if fault in ("kill", "restart") else 2)]
        first = self.worker("a")
        self.submit(runs)
        mine = "run = ANY(%s)"
        self.until(lambda: self.count(f"{mine} AND node = 'n1'", runs) == len(runs), 60)
        second = None if fault == "restart" else self.worker("b")
        if fault == "restart":
            self.server.restart(immediate=True)
        elif fault == "kill":
            first.kill()
        else:
            first.send_signal(signal.SIGSTOP)
            self.until(lambda: self.count(f"{mine} AND worker = 'b'", runs) > 0, 60)
            time.sleep(0.2)
            first.send_signal(signal.SIGCONT)
        third = None
        if fault == "frozen, both die" and second is not None:
            time.sleep(0.8)
            first.kill()
            second.kill()
            third = self.worker("c")
        self.until(lambda: self.count(f"{mine} AND node = 'n5'", runs) == len(runs), 60)
        time.sleep(2.5)  # what a stale worker still does
        for each in filter(None, (first, second, third)):
            each.kill()
            each.wait()

    def row(self, fault: str, rounds: int) -> dict[str, Any]:
        """Do rounds of a fault, and return what became of the runs."""
        for number in range(rounds):
            self.round(fault, number)
        schema = "interlock." if self.engine == "ours" else ""
        with connect() as link:

            def count(statement: str) -> int:
                row = link.execute(statement, (f"{fault}-%",)).fetchone()
                return row["n"] if row else 0

            begun = rounds * (CONCURRENCY if fault in ("kill", "restart") else 2)
            ended = count("SELECT count(DISTINCT run) AS n FROM effect WHERE node = 'n5' AND run LIKE %s")
            return {
                "engine": self.engine,
                "fault": fault,
                "runs": begun,
                "lost": begun - ended,
                "forked": count(
                    "SELECT count(DISTINCT thread_id) AS n FROM (SELECT thread_id, parent_checkpoint_id FROM "
                    f"{schema}checkpoints WHERE thread_id LIKE %s GROUP BY 1, 2 HAVING count(*) > 1) AS x"
                ),
                "last node again": count("SELECT count(*) AS n FROM effect WHERE node = 'n5' AND run LIKE %s") - ended,
                "nodes done twice": count(
                    "SELECT count(*) AS n FROM (SELECT run, node FROM effect WHERE run LIKE %s "
                    "GROUP BY 1, 2 HAVING count(*) > 1) AS x"
                ),
            }


FAULTS: Final = ("kill", "frozen", "frozen, both die", "restart")

if __name__ == "__main__":
    ENGINES[sys.argv[1]][2]()
