"""The chaos process: starts workers, stops, wakes and kills them at random, and reads what they left."""

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final, TypeAlias

from tests.reservations.databases import named
from tests.reservations.lock_safety import worker
from tests.reservations.lock_safety.history import History, read

LONGEST_STOP_SECONDS: Final = 4.0
REST_SECONDS: Final = 10.0
"""A worker that was stopped is left alone for so long: a write under a kept lease meets one stop at most."""
END_SECONDS: Final = 60.0

Process: TypeAlias = "subprocess.Popen[bytes]"


class Chaos:
    """One run.

    Args:
        folder: Where the store, the logs and the written files are.
        workers: How many work at once.
        seconds: For how long, from when all are ready.
        seed: For every choice.
        bug: A row of `bugs.BUGS`, planted into every worker.
        database: The address of an empty one; without it the store is a file.
    """

    def __init__(
        self, folder: Path, workers: int, seconds: float, seed: int, bug: str = "", database: str = ""
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._store = database or str(folder / "store.sqlite")
        with named(self._store).transaction():
            """The tables are there before the first bug is."""
        self._folder = folder
        self._workers = workers
        self._rng = random.Random(seed)
        self._seconds = seconds
        self._bug = bug
        self._running: dict[str, Process] = {}
        self._stopped: dict[str, float] = {}
        self._rested: dict[str, float] = {}
        self._rhythm = threading.Event()
        self.killed: dict[str, float] = {}
        self.stops = 0

    def run(self, *, every_seconds: float = 0.2, may_fail: bool = False) -> History:
        """Let them work, and disturb somebody every now and then.

        Args:
            every_seconds: How often, about.
            may_fail: A worker may end with an error.
        """
        try:
            for _ in range(self._workers):
                self._start()
            self._await_all()
            until = time.monotonic() + self._seconds
            while (left := until - time.monotonic()) > 0:
                due = [due - time.monotonic() for due in self._stopped.values()]
                self._rhythm.wait(max(0.0, min([self._rng.uniform(0.5, 1.5) * every_seconds, left, *due])))
                self._wake()
                self._disturb()
            self._wake(everybody=True)
            (self._folder / worker.END).touch()
            for name, process in self._running.items():
                assert process.wait(END_SECONDS) == 0 or may_fail, f"{name}: {self._said(name)}"
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()
        return read(self._folder, self._store, worker.ROOT, self.killed, worker.DEAD_AFTER_SECONDS)

    def _start(self) -> None:
        name = f"w{len(self._running) + len(self.killed)}"
        arguments = [self._store, str(self._folder / f"{name}.log"), name]
        arguments += [str(self._rng.randrange(10**9)), str(max(1, self._workers // 3))]
        arguments += [self._bug] if self._bug else []
        command = [sys.executable, "-m", "tests.reservations.lock_safety.worker", *arguments]
        with (self._folder / f"{name}.err").open("wb") as errors:
            self._running[name] = subprocess.Popen(command, stderr=errors)

    def _await_all(self) -> None:
        """Wait until every worker has begun."""
        until = time.monotonic() + END_SECONDS
        for name in self._running:
            while not (self._folder / f"{name}.log").exists():
                assert time.monotonic() < until, f"{name}: {self._said(name)}"
                self._rhythm.wait(0.01)

    def _disturb(self) -> None:
        now = time.monotonic()
        free = [name for name in self._running if name not in self._stopped and self._rested.get(name, 0.0) < now]
        if not free:
            return
        name = self._rng.choice(free)
        if self._rng.random() < 0.3:
            process = self._running.pop(name)
            self.killed[name] = now
            process.kill()
            process.wait()
            self._start()
        else:
            self._running[name].send_signal(signal.SIGSTOP)
            long = self._rng.random() < 0.15
            self._stopped[name] = now + (LONGEST_STOP_SECONDS if long else 0.2) * self._rng.uniform(0.1, 1.0)
            self.stops += 1

    def _wake(self, *, everybody: bool = False) -> None:
        now = time.monotonic()
        for name, due in list(self._stopped.items()):
            if everybody or due <= now:
                del self._stopped[name]
                self._running[name].send_signal(signal.SIGCONT)
                self._rested[name] = now + REST_SECONDS

    def _said(self, name: str) -> str:
        return (self._folder / f"{name}.err").read_text()[-4000:]
