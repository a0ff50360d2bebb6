"""A worker: it drives legs, says that it is alive, and takes over what dead workers left.

A worker is a process with some kinds of threads. DBOS's own take legs from the queues and run them, each in `_leg`:
the work itself is done by a process in the tree of the run, so that a worker can end it. One thread, `_live`, writes
the row by which others know that this worker is alive, and ends processes whose leg this worker has lost, which it
learns as soon as it is thawed. Another one, `_take_over`, has legs of dead workers queued again. The main thread waits
for a signal.

Answers T1. What a process of a lost leg still writes is refused by the fence of `core.database`; ending it saves what
its agents would spend.
"""

import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import uuid4

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer
from dbos._context import current_owner_xid  # no public name has it; tests hold it to what it must be

from interlock import __version__
from interlock.core.database import PATIENCE_SECONDS as COMMAND_PATIENCE_SECONDS
from interlock.core.database import Database, DatabaseError, Leg, LegLost, Link, driving
from interlock.core.errors import InterlockError
from interlock.core.process import signal_group
from interlock.gates.config import Config, load_config
from interlock.graph.engine import legs
from interlock.graph.errors import GraphError, RunBusyError
from interlock.graph.landing.land import land
from interlock.graph.task.apart import Start, drive_inside, start_apart
from interlock.graph.task.carried import bring_tree, check_remote, fetch_objects, remote_of
from interlock.graph.task.machine import COMMAND_GATES
from interlock.graph.task.nodes import EVIDENCE_SUFFIX
from interlock.graph.task.runs import view_run
from interlock.graph.task.task import Task
from interlock.graph.team.asking import queue_of, submit
from interlock.graph.team.schema import check_rights

BEAT_SECONDS: Final = 1.0
POLL_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 86_400.0
"""How long a worker waits for a database that is away: a leg that gave up would leave its run to a person."""
GRACE_SECONDS: Final = 60.0
"""How long the running steps may take to end once the worker is to end."""
DBOS_CONNECTIONS: Final = 5

Said: TypeAlias = Callable[[str], object]
_Onward: TypeAlias = tuple[str, dict[str, Any]]
"""The queue that a run goes on in, and what its next leg is given."""


class Worker:
    """A worker of a project.

    Args:
        root: The root of a checkout of its own.
        queues: What it does; see `legs.QUEUES`.
        concurrency: How many legs of each queue it drives at once.
        say: Takes what happens, a line each.
    """

    def __init__(self, root: Path, queues: Sequence[str], concurrency: int, say: Said) -> None:
        self.root, self.queues, self.concurrency, self.say = root, tuple(queues), concurrency, say
        self.database = legs.needed(root)
        self.id = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:6]}"
        self._stop = threading.Event()
        self._draining = False
        self._guard = threading.Lock()
        self._processes: dict[Leg, int] = {}
        self._alone = dict[str, threading.Lock]()
        self._mine = set[str]()
        """The executions of legs that were begun here and have not ended, each by its id and its token."""
        self._beaten = self._steady = -math.inf
        """When this worker said last that it is alive, and since when it has said so without a gap."""

    def work(self) -> None:
        """Work until SIGTERM or SIGINT; a second one ends it at once.

        Raises:
            DatabaseError, GraphError: The database, or the remote, cannot be used.
        """
        config = load_config(self.root)
        self.database.transact(check_rights)
        check_remote(self.root, self.database)
        self.database.transact(_forget)
        # From here on the database may be away for a while.
        self.database.patience = PATIENCE_SECONDS
        self._beat()
        names = self._names(config)
        settings: DBOSConfig = {
            "name": "interlock",
            "system_database_url": self.database.address,
            "system_database_engine": legs.engine(self.database.address, DBOS_CONNECTIONS),
            "application_version": legs.PROTOCOL,
            "executor_id": self.id,
            "serializer": DBOSPortableJSONSerializer(),
            "use_listen_notify": False,
            "run_migrations": False,
            "log_level": "CRITICAL",  # what was cancelled or taken over is no error here
            "scheduler_polling_interval_sec": 5.0,
        }
        DBOS(config=settings)

        @DBOS.workflow(name=legs.NAME)
        def leg(run: str, given: dict[str, Any]) -> dict[str, Any]:  # pyright: ignore[reportUnusedFunction]
            return self._leg(run, given)

        @DBOS.workflow(name="scheduled")
        def scheduled(at: datetime, context: Any) -> None:
            self._scheduled(at, context)

        DBOS.listen_queues(names)
        DBOS.launch()
        for name in names:
            rate = config.workers.rates.get(name.removeprefix("llm-"))
            DBOS.register_queue(
                name,
                worker_concurrency=None if name == legs.LANDING else self.concurrency,
                global_concurrency=1 if name == legs.LANDING else None,
                polling_interval_sec=POLL_SECONDS,
                limiter={"limit": rate.calls, "period": rate.seconds} if rate else None,
                on_conflict="always_update",
            )
        self._schedule(config, scheduled)
        # Taking over may have to wait for a transaction of a frozen process, and no beat waits for that.
        for each in (self._live, self._take_over):
            threading.Thread(target=self._repeat, args=(each,), daemon=True).start()
        self.say(f"worker {self.id} does {', '.join(names)}; {self.concurrency} at once of each")
        self._wait()
        self._end()

    def _names(self, config: Config) -> list[str]:
        rated = [f"llm-{provider}" for provider in config.workers.rates] if "llm" in self.queues else []
        return [*self.queues, *rated, *([legs.LANDING] if "drive" in self.queues else [])]

    # -- legs ----------------------------------------------------------------------------------------------------------

    def _leg(self, run: str, given: dict[str, Any]) -> dict[str, Any]:
        """Drive a run in a leg; return JSON: what became of it, or the error that it was refused with."""
        workflow = DBOS.workflow_id
        assert workflow is not None
        token = current_owner_xid(workflow)
        assert token is not None
        leg = Leg(run, workflow, token, remote_of(self.root))
        self._mine.add(name := leg.workflow + leg.token)
        with self._guard:
            alone = self._alone.setdefault(run, threading.Lock())
        try:
            # Its own execution before this one, which it has lost, may not have ended yet, and works in the same tree.
            with alone:
                return self._taken(leg, given)
        finally:
            self._mine.discard(name)

    def _taken(self, leg: Leg, given: Mapping[str, Any]) -> dict[str, Any]:
        queue = take(self.database, leg)
        if not queue:
            # Whoever has the run looks again when it ends; an answer is for whoever gives it to bring again.
            if given.get("answers"):
                busy = RunBusyError(
                    f"run {leg.run} is driven at this moment", "Wait for it, and hand the answer in then."
                )
                return {"error": [busy.code, busy.message, busy.fix]}
            return {"later": True}
        # What is done here beside the process in the tree, such as landing, is fenced like that.
        with driving(leg):
            result, onward = self._done(leg, queue, given)
            # First given up, then handed on: whoever gets it finds it free. A kill between the two does this leg again.
            if left(self.database, leg):
                onward = onward or ("drive", {})
        if onward:
            legs.enqueue(self.database, leg.run, onward[1], queue=onward[0])
        return result

    def _done(self, leg: Leg, here: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], _Onward | None]:
        """Do what a leg is given; return JSON of what became of it, and where it goes on."""
        until = {"until": given["until"]} if given.get("until") else {}
        try:
            if begin := given.get("begin"):
                self._begin(leg, begin)
                if not given.get("drive"):
                    return {"run": leg.run}, None
            if here != legs.LANDING and (queue := self._drive(leg, here, given)):
                return {"run": leg.run}, (queue, until)
            landings = 0 if until else legs.landings_left(self.database, leg.run)
            if landings and view_run(leg.run, root=self.root).status == "APPROVED":
                if here != legs.LANDING:
                    return {"run": leg.run}, (legs.LANDING, {})
                # What conflicts with what has landed meanwhile is taken up by another run, which lands by itself.
                (landing,) = land(
                    self.root, [leg.run], notice=lambda step: self._notice(leg, step), rebuilds=landings > 1
                )
                self.say(f"{leg.run}: {landing.state} {landing.error or landing.commit[:12]}")
                if (error := landing.error) and not landing.rebuilt:
                    return {"run": leg.run, "not_landed": [error.code, error.message, error.fix]}, None
        except LegLost:
            raise
        except InterlockError as error:
            self.say(f"{leg.run}: {error.code} {error.message}")
            if error.code == DatabaseError.code:  # it was away for longer than the process in the tree waits
                return {"run": leg.run}, (here, dict(given))
            return {"error": [error.code, error.message, error.fix]}, None
        return {"run": leg.run}, None

    def _begin(self, leg: Leg, begin: Mapping[str, Any]) -> None:
        """Begin a run, unless an execution that was cut off has begun it."""
        with suppress(GraphError):
            view_run(leg.run, root=self.root)
            return
        fetch_objects(self.root, [begin["commit"], begin["files"]])
        task = Task.from_json(begin["task"] | {"base": os.fspath(self.root / begin["base"])})
        start = Start(begin["commit"], begin["note"], begin["files"], accept_base=begin["accept_base"])

        def noticing(kind: str) -> Callable[[str], None]:
            return lambda text: self._notice(leg, {"kind": kind, "text": text})

        start_apart(
            self.root, task, start, warn=noticing("warning"), progress=noticing("progress"), run_id=leg.run, leg=leg
        )
        self.say(f"{leg.run}: begun")

    def _drive(self, leg: Leg, here: str, given: Mapping[str, Any]) -> str:
        """Take the run on, and return the queue that it has to go on in; empty where it waits or is over."""
        config, mine, until = load_config(self.root), {"drive", *self.queues}, given.get("until", "")

        def needed() -> str:
            queues = [queue_of(view.policy, node, config) for node in view.next]
            elsewhere = [queue for queue in queues if queue not in mine and queue != here]
            return elsewhere[0] if elsewhere and view.phase in ("new", "running") else ""

        view = view_run(leg.run, root=self.root)
        if until in view.next:
            return ""
        if queue := needed():
            return queue
        tree = bring_tree(self.root, leg.run)
        roles = view.policy.protocol.roles
        nodes = [*roles, *(f"{role}{EVIDENCE_SUFFIX}" for role in roles), COMMAND_GATES]
        asked = {name: given.get(name, {}) for name in ("answers", "asks")}
        # A queue with a rate counts each step: the run comes back to it before the next one.
        stops = [node for node in nodes if (queue := queue_of(view.policy, node, config)) not in mine]
        try:
            drive_inside(
                leg.run,
                self.root,
                tree.name,
                {**asked, "until": until, "stops": stops},
                lambda step: self._notice(leg, step),
                leg=leg,
                at_start=lambda pid: self._note(leg, pid),
            )
        finally:
            self._note(leg, 0)
        view = view_run(leg.run, root=self.root)
        self.say(f"{leg.run}: {view.status or 'begun'}, {view.phase}")
        if until in view.next:
            return ""
        if queue := needed():
            return queue
        # A step was cut off, since this worker is to end: any worker that does the next step goes on.
        return next((queue_of(view.policy, node, config) for node in view.next), "") if self._draining else ""

    def _note(self, leg: Leg, pid: int) -> None:
        with self._guard:
            if pid:
                self._processes[leg] = pid
            else:
                self._processes.pop(leg, None)

    def _notice(self, leg: Leg, step: Mapping[str, Any]) -> None:
        from psycopg.types.json import Jsonb  # noqa: PLC0415

        # What is not shown does no harm: the journal has what counts.
        with suppress(DatabaseError):
            row = (leg.run, Jsonb({**step}))
            self.database.transact(
                lambda link: link.execute("INSERT INTO interlock.notice (run, step) VALUES (%s, %s)", row)
            )

    # -- schedules -----------------------------------------------------------------------------------------------------

    def _schedule(self, config: Config, scheduled: Any) -> None:
        wanted = {
            name: {
                "schedule_name": name,
                "workflow_fn": scheduled,
                "schedule": row.cron,
                "context": {"task": row.task, "land": row.land},
                "cron_timezone": row.timezone,
                "queue_name": "drive",
            }
            for name, row in config.schedule.items()
        }
        for row in DBOS.list_schedules():
            if row["schedule_name"] not in wanted:
                DBOS.delete_schedule(row["schedule_name"])
        if wanted:
            DBOS.apply_schedules([*wanted.values()])  # pyright: ignore[reportArgumentType]

    def _scheduled(self, at: datetime, context: Any) -> None:
        """Submit the task of a schedule."""
        run = submit(self.root, self.root / context["task"], land=context["land"])
        self.say(f"{run}: submitted by the schedule for {at.isoformat()}")

    # -- being alive ---------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        values = (self.id, [*self.queues], self.concurrency, __version__, self._draining)

        def work(link: Link) -> None:
            link.execute(
                "INSERT INTO interlock.worker (id, queues, concurrency, version, draining) VALUES (%s, %s, %s, %s, %s) "
                "ON CONFLICT (id) DO UPDATE SET beat_at = clock_timestamp(), draining = excluded.draining",
                values,
            )

        self.database.transact(work)
        now = time.monotonic()
        if now - self._beaten > 2 * BEAT_SECONDS:
            self._steady = now
        self._beaten = now

    def _repeat(self, each: Callable[[], None]) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            try:
                each()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next beat tries again
                self.say(f"worker {self.id}: {error}")

    def _live(self) -> None:
        self._end_lost()
        self._beat()

    def _end_lost(self) -> None:
        """End the processes of legs that this worker does not have any more: taken over, or cancelled."""
        with self._guard:
            mine = dict(self._processes)
        if not mine:
            return
        statement = (
            "SELECT workflow_uuid, owner_xid FROM dbos.workflow_status "
            "WHERE workflow_uuid = ANY(%s) AND status = 'PENDING'"
        )
        ids = [leg.workflow for leg in mine]
        rows = self.database.transact(lambda link: link.execute(statement, (ids,)).fetchall())
        owned = {(row["workflow_uuid"], row["owner_xid"]) for row in rows}
        for leg, pid in mine.items():
            if (leg.workflow, leg.token) not in owned:
                self.say(f"{leg.run}: this worker has it no more")
                signal_group(pid)

    def _take_over(self) -> None:
        """Queue the legs of workers that are dead again, and those that this worker was given and never heard of."""
        seconds = load_config(self.root).workers.timeout_seconds
        statement = (
            "SELECT w.workflow_uuid, w.queue_name FROM dbos.workflow_status AS w WHERE w.status = 'PENDING' "
            "AND w.name = %(name)s AND (NOT EXISTS (SELECT 1 FROM interlock.worker AS x WHERE x.id = w.executor_id "
            "AND x.beat_at > clock_timestamp() - make_interval(secs => %(seconds)s)) "
            "OR (w.executor_id = %(id)s AND w.workflow_uuid || w.owner_xid <> ALL(%(mine)s) "
            "AND w.started_at_epoch_ms < (extract(epoch FROM clock_timestamp()) - %(seconds)s) * 1000))"
        )

        def work(link: Link) -> None:
            now = time.monotonic()
            values = {"name": legs.NAME, "seconds": seconds, "id": self.id, "mine": [*self._mine]}
            # While the database was away, nobody could say that they are alive.
            if now - self._beaten > 2 * BEAT_SECONDS or now - self._steady < seconds:
                return
            for row in link.execute(statement, values).fetchall():
                DBOS.resume_workflows([row["workflow_uuid"]], queue_name=row["queue_name"])
                self.say(f"{row['workflow_uuid']}: its worker is dead; queued again")

        # One after another: who looks later finds a leg that is driven again.
        self.database.transact(work, lock="take over")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        asked = threading.Event()

        def end(_number: int, _frame: object) -> None:
            if asked.is_set():
                os._exit(1)  # the legs are taken over, as after a kill
            asked.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        while not asked.wait(1.0):
            pass

    def _end(self) -> None:
        """Let the running steps end, hand their runs on, and go."""
        self.say(f"worker {self.id} ends; the running steps may take {GRACE_SECONDS:.0f} s more")
        self._draining = True  # the next beat says so
        DBOS.destroy(workflow_completion_timeout_sec=int(GRACE_SECONDS))
        self._stop.set()
        # Until here a leg waits for the database as ever: one that gave up would have ended for good.
        self.database.patience = COMMAND_PATIENCE_SECONDS
        with self._guard:
            for pid in self._processes.values():
                signal_group(pid)
        with suppress(DatabaseError):
            self.database.transact(lambda link: link.execute("DELETE FROM interlock.worker WHERE id = %s", (self.id,)))
        if self._mine:
            os._exit(1)  # a leg that still waits for the database is taken over, as after a kill


def _forget(link: Link) -> None:
    """Remove what nobody looks at any more: steps that were shown, and workers that are long dead."""
    link.execute("DELETE FROM interlock.notice WHERE at < clock_timestamp() - interval '1 day'")
    link.execute("DELETE FROM interlock.worker WHERE beat_at < clock_timestamp() - interval '1 hour'")


def take(database: Database, leg: Leg) -> str:
    """Have a leg drive its run, and return its queue; empty where another one does, which then looks again."""

    def work(link: Link) -> str:
        others = "SELECT 1 FROM dbos.workflow_status WHERE workflow_uuid = run.leg AND status = ANY(%s)"
        took = link.execute(
            "UPDATE interlock.run SET leg = %s, wanted = false "  # noqa: S608 - a constant
            f"WHERE run = %s AND (leg = %s OR NOT EXISTS ({others}))"
            " AND EXISTS (SELECT 1 FROM dbos.workflow_status WHERE workflow_uuid = %s AND owner_xid = %s)"
            " RETURNING (SELECT queue_name FROM dbos.workflow_status WHERE workflow_uuid = leg) AS queue",
            (leg.workflow, leg.run, leg.workflow, [*legs.ACTIVE], leg.workflow, leg.token),
        ).fetchone()
        if took is None:
            link.execute("UPDATE interlock.run SET wanted = true WHERE run = %s", (leg.run,))
        return took["queue"] if took else ""

    return database.transact(work)


def left(database: Database, leg: Leg) -> bool:
    """Have a leg give its run up, and return whether somebody wants it driven again."""
    statement = (
        "WITH before AS (SELECT wanted FROM interlock.run WHERE run = %s AND leg = %s FOR UPDATE) "
        "UPDATE interlock.run SET leg = '', wanted = false FROM before WHERE run = %s AND leg = %s "
        "RETURNING before.wanted"
    )
    values = (leg.run, leg.workflow, leg.run, leg.workflow)
    row = database.transact(lambda link: link.execute(statement, values).fetchone())
    return row is not None and bool(row["wanted"])
