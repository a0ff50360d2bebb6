"""Machines in a folder: a server of PostgreSQL, a bare repository, a provider, and workers with clones of their own.

A machine is a clone with a state folder of its own. Its worker is a real process, forked from one that has imported
everything; the processes that it starts are as cold as anywhere.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil
import psycopg
from psycopg.rows import dict_row

from benchmarks.many_machines import project
from benchmarks.many_machines.provider import Provider
from interlock import graph
from tests import warm
from tests.child import environment, git
from tests.postgres import Server

TIMEOUT_SECONDS: Final = 3.0
"""After so long a silent worker is dead."""
_PLANTS: Final = Path(__file__).parent / "plants"
LOOK_SECONDS: Final = 0.05
_ROWS: Final[Any] = dict_row
_REACHED: Final = (psycopg.OperationalError, psycopg.InterfaceError)


class Fault(NamedTuple):
    """What was done to the machines, from when to when, in seconds since the epoch."""

    what: str
    began: float
    ended: float


class _Cold(subprocess.Popen[bytes]):
    """A worker that was started as anywhere, with what the environment does to a program at its start."""

    def join(self, timeout: float | None = None) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(timeout)

    def is_alive(self) -> bool:
        return self.poll() is None


class Machine:
    """A machine: its clone, its state folder, and the worker that runs there, if any."""

    def __init__(self, world: "World", name: str) -> None:
        self.world, self.name, self.root = world, name, world.folder / name
        self.environment = environment(
            INTERLOCK_STATE=str(world.folder / f"state-{name}"), PROVIDER=world.provider.address
        )
        git(world.folder, "clone", "-q", "-b", "main", str(world.hub), name)
        self.worker: Any = None
        self.stopped = list[psutil.Process]()

    def start(self, *options: str, plant: str = "", hours_off: int = 0, concurrency: int = 3) -> None:
        """Start its worker: with a planted bug, or with a clock that is hours off."""
        given = dict(self.environment)
        if plant or hours_off:
            given |= {"PYTHONPATH": str(_PLANTS), "PLANT": plant, "HOURS_OFF": str(hours_off or "")}
        words, log = ("worker", "--concurrency", str(concurrency), *options), self.world.folder / f"{self.name}.log"
        if given == self.environment:
            self.worker = warm.started(["interlock", *words], self.root, given, log)
            return
        with log.open("ab") as file:
            line = [sys.executable, "-P", "-m", "interlock", *words]
            self.worker = _Cold(line, cwd=self.root, env=given, stderr=file, start_new_session=True)

    def processes(self) -> list[psutil.Process]:
        """Return its worker and everything that this started, the worker first."""
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.worker.pid)
            return [first, *first.children(recursive=True)]
        return []

    def signal(self, number: signal.Signals, *, alone: bool) -> None:
        """Send a signal to its worker, or to everything that this started, too."""
        for each in self.processes()[: 1 if alone else None]:
            with suppress(psutil.NoSuchProcess):
                each.send_signal(number)

    def kill(self, *, alone: bool = False) -> None:
        """Kill its worker, alone or with everything that this started."""
        self.signal(signal.SIGKILL, alone=alone)
        self.worker.join()
        self.worker = None

    def freeze(self, *, alone: bool) -> None:
        """Stop its worker, alone or with everything that this started."""
        self.stopped = self.processes()[: 1 if alone else None]
        for each in self.stopped:
            with suppress(psutil.NoSuchProcess):
                each.suspend()

    def thaw(self, worker_after: float = 0.0) -> None:
        """Let what was stopped go on, the worker some seconds after what it had started."""
        for each in reversed(self.stopped):
            if worker_after and each.pid == self.worker.pid:
                time.sleep(worker_after)
            with suppress(psutil.NoSuchProcess):
                each.resume()
        self.stopped = []

    def end(self, seconds: float = 90.0) -> float:
        """Ask its worker to end, and return how many seconds that took; it is killed when it does not."""
        if self.worker is None:
            return 0.0
        began = time.monotonic()
        self.signal(signal.SIGTERM, alone=True)
        self.worker.join(seconds)
        took = time.monotonic() - began
        if self.worker.is_alive():
            self.kill()
            raise AssertionError(f"the worker of {self.name} did not end within {seconds} s")
        self.worker = None
        return took

    def interlock(self, *words: str, timeout: float = 120) -> tuple[int, str]:
        """Run a command there; return its exit code and all that it printed."""
        done = warm.interlock(self.root, *words, env=self.environment, timeout=timeout)
        return done.returncode, done.stdout + done.stderr


class World:
    """The machines and what they share.

    Args:
        folder: An empty folder.
        server: The server of the database.
        address: An empty database there, with the tables of `graph.set_up`.
        kind: What the project is.
        call_seconds: How long a paid call takes.
        timeout: After how many seconds a silent worker is dead.
        more: Other files of the project, by path.
    """

    def __init__(
        self,
        folder: Path,
        server: Server,
        address: str,
        kind: project.Kind,
        call_seconds: float = project.CALL_SECONDS,
        timeout: float = TIMEOUT_SECONDS,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.server, self.address = folder, server, address
        self.kind: project.Kind = kind
        self.provider, self.hub = Provider(call_seconds), folder / "hub.git"
        self.faults, self.runs = list[Fault](), dict[str, str]()
        """By run, how it has to end: `landed`, `approved` or `abandoned`."""
        self._link: Any = None
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.hub))
        git(folder, "clone", "-q", str(self.hub), "first")
        for name, text in (project.files(kind, address, self.provider.address, timeout) | dict(more or {})).items():
            (folder / "first" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "first" / name).write_text(text)
        for words in (
            ("checkout", "-q", "-b", "main"),
            ("add", "-A"),
            ("commit", "-qm", "Start"),
            ("push", "-q", "origin", "main"),
        ):
            git(folder / "first", *words)
        for statement in _AUDIT:
            self.ask(statement)
        self.machines = dict[str, Machine]()
        self.home = self.machine("home")
        """Where people sit: no worker runs there."""

    def machine(self, name: str = "") -> Machine:
        """Make a machine."""
        name = name or f"m{len(self.machines)}"
        self.machines[name] = Machine(self, name)
        return self.machines[name]

    def start(self, count: int, **options: Any) -> list[Machine]:
        """Make machines, start their workers, and return them once these are ready."""
        found = [self.machine() for _ in range(count)]
        for each in found:
            each.start(**options)
        self.wait_for_workers(count)
        return found

    def wait_for_workers(self, count: int, seconds: float = 60) -> None:
        """Wait until so many workers are alive."""
        alive = "SELECT count(*) AS n FROM interlock.worker WHERE beat_at > clock_timestamp() - interval '3 s'"
        assert self.until(lambda: self.ask(alive)[0]["n"] >= count, seconds), "the workers do not start"

    def submit(self, *names: str, ends: str = "landed", more: str = "") -> list[str]:
        """Put tasks into the queue, with `more` in their files, and return their runs."""
        found = list[str]()
        for name in names:
            path = self.home.root / "tasks" / f"{name}.toml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(project.task(self.kind, name) + more)
            found.append(graph.submit(self.home.root, path, land=ends == "landed"))
            self.runs[found[-1]] = ends
        return found

    def ask(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Return the rows of a statement; it waits for a server that is away."""
        end = time.monotonic() + 60
        while True:
            try:
                if self._link is None:
                    self._link = psycopg.connect(self.address, autocommit=True, row_factory=_ROWS)
                done = self._link.execute(statement, values or None)  # type: ignore[arg-type]
                return done.fetchall() if done.description else []
            except _REACHED:
                self._link = None
                if time.monotonic() > end:
                    raise
                time.sleep(LOOK_SECONDS)

    def until(self, holds: Any, seconds: float) -> bool:
        """Wait until something holds, and return whether it does."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def owner(self, run: str) -> Machine | None:
        """Return the machine whose worker drives a run."""
        rows = self.ask(
            "SELECT executor_id FROM dbos.workflow_status WHERE status = 'PENDING' "
            "AND split_part(workflow_uuid, '#', 1) = %s",
            run,
        )
        pids = {int(row["executor_id"].rsplit("-", 2)[1]) for row in rows if row["executor_id"].count("-") > 1}
        found = (each for each in self.machines.values() if each.worker is not None and each.worker.pid in pids)
        return next(found, None)

    def line(self, run: str, key: str) -> bool:
        """Return whether the journal has a line of a run whose key ends so."""
        return any(row["run"].partition("/")[0] == run and row["key"].endswith(key) for row in self.lines())

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of the journal as the database has them."""
        for row in self.ask("SELECT bytes FROM interlock.line ORDER BY start"):
            yield json.loads(bytes(row["bytes"]))

    def active(self) -> list[str]:
        """Return the legs that wait or are driven."""
        statement = "SELECT workflow_uuid AS leg FROM dbos.workflow_status WHERE name = 'leg' AND status = ANY(%s)"
        return [row["leg"] for row in self.ask(statement, ["ENQUEUED", "DELAYED", "PENDING"])]

    def settle(self, seconds: float = 120) -> bool:
        """Wait until no run has a leg, and return whether that came."""
        return self.until(lambda: not self.active(), seconds)

    def processes(self) -> list[psutil.Process]:
        """Return the processes that belong to machines of this world."""
        # Workers that were forked show the environment of the process that they were forked from.
        found = [each for machine in self.machines.values() if machine.worker for each in machine.processes()]
        for each in psutil.process_iter():
            with suppress(psutil.Error):
                if each not in found and each.environ().get("INTERLOCK_STATE", "").startswith(f"{self.folder}/"):
                    found.append(each)
        return found

    def close(self) -> None:
        """End everything."""
        for each in self.processes():
            with suppress(psutil.NoSuchProcess):
                each.kill()
        for machine in self.machines.values():
            if machine.worker:
                machine.worker.join()
                machine.worker = None
        self.provider.shutdown()
        self.provider.server_close()
        if self._link:
            self._link.close()

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


_AUDIT: Final[Sequence[str]] = (
    "CREATE TABLE public.audit (at timestamptz, did text, run text, name text, digest text)",
    "GRANT ALL ON public.audit TO public",
    """CREATE FUNCTION public.audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.audit VALUES (clock_timestamp(), tg_op, coalesce(new.run, old.run),
            coalesce(new.name, old.name), md5(new.data)); RETURN NULL; END $$""",
    """CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON interlock.run_file
        FOR EACH ROW EXECUTE FUNCTION public.audit()""",
)
"""Who wrote which file of a run when; a writer whose transaction is undone leaves nothing here."""
