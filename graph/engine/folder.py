"""The folder of one run in `.interlock`: what it began with, its locks, and how far its records are known to go."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, TypedDict

from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.graph.engine.listing import BEGIN, Kind, make_run
from interlock.graph.engine.paths import RUN_ID_FORM, is_run_id, state_dir
from interlock.graph.errors import RunBusyError, RunDamagedError, UnknownRunError

ABANDONED: Final = "abandoned"
"""The file and the journal line that say that a run was ended for good."""

_PIN: Final = "pin.json"


class HeadRecord(TypedDict):
    """The journal's head of a run: the number of its last line and that line's hash."""

    seq: int
    hash: str


class Pin(TypedDict):
    """How far the logs go as a run knows them: its last line in the journal, and in the snapshots of tickets."""

    head: HeadRecord
    snapshots: HeadRecord


class RunFolder:
    """The files of one run below `.interlock/<kind>/<run_id>/`.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """

    kind: ClassVar[Kind]
    title: ClassVar[str]
    """What such a run is called in messages."""

    def __init__(self, root: Path, run_id: str) -> None:
        if not is_run_id(run_id):
            raise UnknownRunError(
                f"`{str(run_id)[:80]}` is not a run id", f"Use {RUN_ID_FORM}; `interlock status` lists runs."
            )
        self.root = root
        self.run_id = run_id
        self.folder = root / ".interlock" / self.kind / run_id

    def exists(self) -> bool:
        """Return whether this run was begun."""
        return (self.folder / BEGIN).exists()

    def keep_begin(self, data: bytes) -> None:
        """Keep what the run begins with; from then on it exists."""
        state_dir(self.root)
        make_run(self.root, self.kind, self.run_id, data)

    def abandoned(self) -> bool:
        """Return whether this run was ended for good; its journal says so too."""
        return (self.folder / ABANDONED).exists()

    def damaged(self, name: str, why: str) -> RunDamagedError:
        """Return the error for a file of this run that cannot be read back."""
        folder = f".interlock/{self.kind}/{self.run_id}"
        return RunDamagedError(
            f"{folder}/{name} cannot be read back: {why}",
            f"Restore {folder} from a copy, or move it out of .interlock/{self.kind} and begin a new run.",
        )

    def keep_pin(self, pin: Pin) -> None:
        """Keep how far the logs go, once the lines are on the disk."""
        write_atomically(self.folder / _PIN, json.dumps(pin).encode(), durable=False)

    def pin(self) -> Pin | None:
        """Return how far the logs were known to go; None when that was not kept, or was cut off by a crash.

        Raises:
            RunDamagedError: What was kept is not what this program writes.
        """
        try:
            data = (self.folder / _PIN).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self.damaged(_PIN, str(error.strerror)) from error
        if not data.strip(b"\0"):
            return None
        try:
            pin: Pin = json.loads(data)
            whole = all(_is_head(pin[name]) for name in ("head", "snapshots"))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise self.damaged(_PIN, f"{type(error).__name__}: {error}"[:200]) from error
        if not whole:
            raise self.damaged(_PIN, "it holds no ends of logs")
        return pin

    @contextmanager
    def holding(self, name: str, seconds: float | None, busy: tuple[str, str]) -> Generator[None]:
        """Hold a lock of the run; a killed holder's is free again at once.

        `seconds=None` waits without limit; `busy` is the message and the fix of the error.

        Raises:
            RunBusyError: Another process or call holds it for that long.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / name).open("ab") as file:
            while True:
                with locked(file, seconds=seconds) as held:
                    if held:
                        yield
                        return
                # Whoever only looks whether it is held shares the lock for an instant: no reason to fail.
                with locked(file, shared=True, seconds=0) as unheld:
                    if not unheld:
                        raise RunBusyError(*busy)

    def held(self, name: str) -> bool:
        """Return whether some process holds a lock of the run at this moment; a killed one does not."""
        try:
            with (self.folder / name).open("rb") as file, locked(file, shared=True, seconds=0) as free:
                return not free
        except FileNotFoundError:
            return False


def _is_head(row: Mapping[str, object]) -> bool:
    return isinstance(row["seq"], int) and row["seq"] > 0 and isinstance(row["hash"], str)
