"""The folder of one run in `.interlock`: what it began with, its locks, and how far its records are known to go."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, TypedDict, cast

from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.graph.engine.index import BEGIN, Kind, make_run
from interlock.graph.engine.paths import RUN_ID_FORM, is_run_id, state_dir
from interlock.graph.errors import RunBusyError, RunDamagedError, UnknownRunError
from interlock.journal import Head

ABANDONED: Final = "abandoned"
"""The file and the journal line that say that a run was ended for good."""

_STANDING: Final = "standing.json"


class HeadRecord(TypedDict):
    """The journal's head of a run: the number of its last line and that line's hash."""

    seq: int
    hash: str


class RunFolder:
    """The files of one run below `.interlock/<kind>/<run_id>/`.

    Args:
        root: The project's root.
        run_id: The run; see `RUN_ID_FORM`.

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

    def keep_standing(self, row: Mapping[str, Any]) -> None:
        """Keep where the run is, after its lines in the journal are on the disk.

        Args:
            row: JSON values, with the head of the run in the journal under `head`.
        """
        write_atomically(self.folder / _STANDING, json.dumps(row).encode(), durable=False)

    def forget_standing(self) -> None:
        """Forget where the run was, since it goes on."""
        (self.folder / _STANDING).unlink(missing_ok=True)

    def standing(self) -> dict[str, Any] | None:
        """Return where the run was last known to be; None when that was not kept, or was cut off by a crash.

        Raises:
            RunDamagedError: What was kept is not what this program writes.
        """
        try:
            data = (self.folder / _STANDING).read_bytes()
        except FileNotFoundError:
            return None
        if not data.strip(b"\0"):
            return None
        try:
            row = cast("dict[str, Any]", json.loads(data))
            whole = isinstance(row["head"]["seq"], int) and isinstance(row["head"]["hash"], str)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise self.damaged(_STANDING, str(error)) from error
        if not whole:
            raise self.damaged(_STANDING, "it holds no head of a journal")
        return row

    def standing_at(self, head: Head | None) -> dict[str, Any] | None:
        """Return where the run was, if that was at this end of its journal lines; None where it may have gone on."""
        kept = self.standing()
        here = kept is not None and head is not None and kept["head"] == {"seq": head.seq, "hash": head.hash}
        return kept if here else None

    @contextmanager
    def holding(self, name: str, seconds: float | None, busy: tuple[str, str]) -> Generator[None]:
        """Hold a lock of the run; a killed holder's is free again at once.

        Args:
            name: The file of the lock.
            seconds: How long to wait for another holder; None: as long as it takes.
            busy: Message and fix of the error.

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
