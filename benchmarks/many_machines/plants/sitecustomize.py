# ruff: noqa: ARG005, D401, ICN001, PLC0415, SLF001
# pyright: basic, reportAttributeAccessIssue=false, reportPrivateUsage=false
"""A clock that is `HOURS_OFF`, and bugs for the checker to find, planted by `PLANT`, in a worker and what it starts.

Python imports a module of this name at its start, where this folder is on `PYTHONPATH`.
"""

import datetime as dates
import os
import threading
import time
from collections.abc import Callable
from typing import Any

JUDGE_SECONDS = 12.0
APPEND_SECONDS = 8.0


def fence() -> None:
    """No transaction asks whether the leg still has its run."""
    from interlock.core import database

    database.check_leg = lambda link, leg: None


def journal() -> None:
    """A line of the journal is written without asking, and late."""
    from interlock.journal import log

    extend = log.Journal._extend_shared

    def late(self: Any, upstream: Any, *arguments: Any) -> Any:
        time.sleep(APPEND_SECONDS)
        leg, upstream.database._leg = upstream.database._leg, None
        try:
            return extend(self, upstream, *arguments)
        finally:
            upstream.database._leg = leg

    log.Journal._extend_shared = late


def answer() -> None:
    """An answer is kept when it has been judged, which takes a while."""
    from interlock.graph.task import asking
    from interlock.graph.task.store import RunStore

    waiting, keep, judge = list[Callable[[], None]](), RunStore.keep_answer, asking.judge

    def later(*arguments: Any, **options: Any) -> None:
        waiting.append(lambda: keep(*arguments, **options))

    def slow(*arguments: Any, **options: Any) -> Any:
        time.sleep(JUDGE_SECONDS)
        reply = judge(*arguments, **options)
        while waiting:
            waiting.pop()()
        return reply

    RunStore.keep_answer, asking.judge = later, slow


def tree() -> None:
    """A tree is made anew from its commit alone."""
    from interlock.gates.sealed import Store

    unpack = Store.unpack
    Store.unpack = lambda self, commit, name, folder: None if name == "files" else unpack(self, commit, name, folder)


def wakeup() -> None:
    """A worker that ends does not put its runs into the queue again."""
    from interlock.graph.engine import legs

    legs.enqueue = lambda *_arguments, **_options: ""


def resumed() -> None:
    """Legs of living workers are queued again, once each, and nobody ends what drove them."""
    from interlock.graph.team import worker

    known, guard = set[str](), threading.Lock()

    def take_over(self: Any) -> None:
        statement = (
            "SELECT DISTINCT leg, queue_name FROM interlock.run JOIN interlock.run_file AS f USING (run) "
            "JOIN dbos.workflow_status ON workflow_uuid = leg "
            "WHERE f.name LIKE 'answers/%%' AND status = 'PENDING' AND executor_id <> %s"
        )
        for row in self.database.read(lambda link: link.execute(statement, (self.id,)).fetchall()):
            with guard:
                if row["leg"] not in known:
                    known.add(row["leg"])
                    worker.DBOS.resume_workflows([row["leg"]], queue_name=row["queue_name"])

    worker.Worker._take_over = take_over
    worker.Worker._end_lost = lambda self: None


def impatient() -> None:
    """No bug: the process in a tree waits for a database that is away for a second, and not for two minutes."""
    from interlock.core import database

    database.LEG_PATIENCE_SECONDS = 1.0


PLANTS = {each.__name__: each for each in (fence, journal, answer, tree, wakeup, resumed, impatient)}


def turn_clock(hours: float) -> None:
    """Change the clock of this process; libfaketime, which would do so for git as well, breaks the waits of Python."""
    seconds, now, now_ns, real = hours * 3600, time.time, time.time_ns, dates.datetime

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

    class Turned(real, metaclass=Kind):
        @classmethod
        def now(cls, tz: dates.tzinfo | None = None) -> dates.datetime:
            return real.now(tz) + dates.timedelta(seconds=seconds)

        @classmethod
        def utcnow(cls) -> dates.datetime:
            return real.utcnow() + dates.timedelta(seconds=seconds)

    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + int(seconds * 10**9)
    dates.datetime = Turned


if hours := os.environ.get("HOURS_OFF"):
    turn_clock(float(hours))
if name := os.environ.get("PLANT"):
    PLANTS[name]()
