"""One process that reserves, renews, uses and releases at random, and writes down every call before and after it.

    python -m tests.reservations.lock_safety.worker STORE LOG NAME SEED FOLDERS [BUG]

All times are of the monotonic clock, which all processes of a machine share.
"""

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any, Final

from interlock.core import patterns
from interlock.reservations import process
from interlock.reservations.errors import StoreError
from interlock.reservations.leases.fencing import Guard, NotCoveredError, guarded
from interlock.reservations.leases.runtime import Caller, Runtime
from interlock.reservations.service import Reservations
from interlock.reservations.settings import Settings
from tests.conformance.rows import Store
from tests.reservations.databases import named
from tests.reservations.lock_safety import bugs
from tests.reservations.lock_safety.history import parsed

END: Final = "end"
ROOT: Final = "/checkout"
DEAD_AFTER_SECONDS: Final = 3.0
HOLD_SECONDS: Final = 30.0
SETTINGS: Final = Settings(
    ttl_minutes=0.1, dead_after_minutes=DEAD_AFTER_SECONDS / 60, claim_minutes=0.02, linger_seconds=1.0
)
LIVES: Final = (1.0, 4.5)
"""The shortest and the longest life of a lease in seconds."""
WAITS: Final[tuple[float, ...]] = (0.0, 0.0, 0.0, 0.0, 0.05, 1.0)
"""How long a call waits in the queue, one of these."""
HOLDS: Final = 0.2
"""How many writes are made under a lease that is kept, outside of the store's transaction."""
MOST_ENDED: Final = 20


class Worker:
    """One agent.

    Args:
        store: The store of all.
        log: Where it writes what it did.
        name: Who it is.
        seed: For its choices.
        folders: How many folders of paths there are.
        files: The folder of what is written under the guard, a file for each path.
    """

    def __init__(self, store: Store, log: Path, name: str, seed: int, folders: int, files: Path) -> None:
        own = process.read(os.getpid())
        caller = Caller(name, "agent", ROOT, "run", process.host(), os.getpid(), own.started if own else "")
        self.runtime = Runtime(store, SETTINGS, clock=time.monotonic)
        self.calls = Reservations(self.runtime, caller)
        self.caller = caller
        self.rng = random.Random(seed)
        self.files = files
        self.paths = [f"d{number}/{name}" for number in range(folders) for name in ("a.md", "x.py", "y.py")]
        self.asked = [*self.paths, "d*/a.md"]
        self.asked += [f"d{number}/{name}" for number in range(folders) for name in ("**", "*.py")]
        self.lives = LIVES
        self.waits: tuple[float, ...] = WAITS
        self.holds = HOLDS
        self.held: dict[str, dict[str, Any]] = {}
        self.ended: list[dict[str, Any]] = []
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, kind: str, **facts: Any) -> float:
        """Write down one thing, and return when it was."""
        at = time.monotonic()
        os.write(self._log, json.dumps({"kind": kind, "at": at, "agent": self.caller.name, **facts}).encode() + b"\n")
        return at

    def step(self) -> None:
        """Do one thing at random; of a store that is busy for too long nothing is known but that."""
        acts = (self.reserve, self.reserve, self.use, self.use, self.renew, self.release, self.release, self.try_ended)
        try:
            self.rng.choice(acts)()
        except StoreError:
            self.note("busy")

    def reserve(self) -> None:
        """Ask for one pattern or two, shared or exclusive; who waits asks for the exclusive right."""
        wait = self.rng.choice(self.waits)
        asked = self.rng.sample(self.asked, self.rng.choice((1, 1, 2)))
        self.ask(asked, exclusive=bool(wait) or self.rng.random() < 0.8, wait=wait)

    def renew(self) -> None:
        """Ask again for something that is held, or was."""
        rows = [*self.held.values(), *self.ended[-3:]]
        if rows:
            row = self.rng.choice(rows)
            self.ask([row["pattern"]], exclusive=row["exclusive"], wait=0.0)

    def ask(self, asked: list[str], *, exclusive: bool, wait: float) -> None:
        """Reserve patterns, and remember what was granted."""
        ttl = self.rng.uniform(*self.lives)
        start = self.note("call", call="reserve", asked=asked, exclusive=exclusive, ttl=ttl, wait=wait)
        answer = self.calls.reserve_files(asked, "", ttl / 60, exclusive=exclusive, wait_seconds=wait)
        rows: list[dict[str, Any]] = [
            {key: row[key] for key in ("reservation_id", "pattern", "exclusive", "token")}
            for row in answer["reservations"]
        ]
        merged = self._merged(rows)
        codes = [row["code"] for row in answer["errors"]]
        kind = "refused" if codes else "granted"
        self.note(kind, start=start, until=start + ttl, rows=rows, merged=merged, codes=codes)
        for reservation_id in merged:
            self.ended.append(self.held.pop(reservation_id))
        self.held |= {row["reservation_id"]: row for row in rows}

    def _merged(self, rows: list[dict[str, Any]]) -> list[str]:
        """Return the own leases that may have fallen into those of an answer."""
        ids = {row["reservation_id"] for row in rows}
        wide = [parsed(row["pattern"]) for row in rows]
        return [
            key
            for key, held in self.held.items()
            if key not in ids and any(patterns.covers(each, parsed(held["pattern"])) for each in wide)
        ]

    def release(self) -> None:
        """Give something back, or everything."""
        if not self.held:
            return
        ids = [*self.held] if self.rng.random() < 0.3 else [self.rng.choice([*self.held])]
        start = self.note("call", call="release", ids=ids)
        answer = self.calls.release_files(ids)
        self.note("released", start=start, ids=answer["released"])
        for each in ids:
            row = self.held.pop(each)
            self.ended = [*self.ended, row][-MOST_ENDED:]

    def use(self) -> None:
        """Write under the guard, in the store's transaction or under a lease that is kept for a while."""
        own = [parsed(row["pattern"]) for row in self.held.values()]
        covered = [path for path in self.paths if any(patterns.matches(each, path) for each in own)]
        if not covered and self.rng.random() < 0.8:
            return
        path = self.rng.choice(covered or self.paths)
        seconds = HOLD_SECONDS if self.rng.random() < self.holds else None
        start = self.note("call", call="use", path=path, hold=seconds is not None)
        try:
            with guarded(self.calls, [path], hold_seconds=seconds) as guard:
                if seconds is not None:
                    guard.confirm()
                self._write(guard, path, start)
        except NotCoveredError as refused:
            self.note("use refused", start=start, path=path, codes=[row["code"] for row in refused.errors])
        if seconds is not None:
            self.release()

    def _write(self, guard: Guard, path: str, start: float) -> None:
        """Write the token into the file, and note whose token was there before."""
        lease = guard.leases[path]
        file = self.files / path.replace("/", "_")
        before, writer = (file.read_text() if file.exists() else "").split() or ("0", "")
        file.write_text(f"{lease.token} {self.caller.name}")
        held = {"reservation_id": lease.reservation_id, "token": lease.token}
        self.note("used", start=start, path=path, **held, before=int(before), writer=writer)

    def try_ended(self) -> None:
        """Ask whether a token counts that was given back or lost, or one that may still be current."""
        rows = [*self.ended, *self.held.values()]
        if rows:
            row = self.rng.choice(rows)
            start = self.note("call", call="check", reservation_id=row["reservation_id"])
            current = {each["reservation_id"]: each["token"] for each in self.calls.my_reservations()["reservations"]}
            valid = current.get(row["reservation_id"]) == row["token"]
            self.note("checked", start=start, valid=valid, reservation_id=row["reservation_id"], token=row["token"])


def main() -> None:
    """Work until the file `end` is beside the log."""
    store, log, name, seed, folders, *bug = sys.argv[1:]
    worker = Worker(named(store), Path(log), name, int(seed), int(folders), Path(log).parent)
    if bug:
        bugs.BUGS[bug[0]].plant(worker)
    end = Path(log).with_name(END)
    worker.note("ready")
    try:
        while not end.exists():
            worker.step()
    finally:
        worker.note("ended")


if __name__ == "__main__":
    main()
