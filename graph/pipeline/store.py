"""The files of ticket runs: what a run began with, its lock, its tree listings, and the copies for people."""

import hashlib
import json
import logging
import re
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from interlock.core.files import opened_beneath, write_atomically, write_in
from interlock.core.locks import locked
from interlock.graph.errors import RunBusyError, RunDamagedError, UnknownRunError
from interlock.graph.pipeline.state import RunInput
from interlock.graph.store import (
    ABANDONED,
    RUN_ID,
    RUN_ID_FORM,
    made_ns,
    note_made,
    state_dir,
)

_LOG: Final = logging.getLogger("interlock.tickets")

LOCK_SECONDS: Final = 10.0
"""How long a call waits for another one on the same run."""

_DRIVEN: Final = "resolve.lock"


def journal_run(run_id: str) -> str:
    """Return the name of a ticket run in the journal, where task runs have names of the same form."""
    return f"ticket:{run_id}"


def journal_beside(run_id: str) -> str:
    """Return the name in the journal of what moves a ticket run no more, so that an ended run ends at its last line."""
    return f"{journal_run(run_id)}/beside"


def snapshots_path(root: Path) -> Path:
    """Return where every snapshot of every ticket is kept."""
    return root / "artifacts" / "interlock" / "tickets.jsonl"


def copies_dir(root: Path, run_id: str) -> Path:
    """Return the folder of a run's payloads and of its last ticket, for people."""
    return root / "artifacts" / "interlock" / "tickets" / run_id


def is_run_id(name: object) -> bool:
    """Say whether a value has the form of a run id."""
    return isinstance(name, str) and RUN_ID.fullmatch(name) is not None


class TicketStore:
    """The files of one run below `.interlock/tickets/<run_id>/`.

    Args:
        root: The project's root.
        run_id: The run; see `RUN_ID_FORM`.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """

    def __init__(self, root: Path, run_id: str) -> None:
        if not is_run_id(run_id):
            raise UnknownRunError(f"`{run_id[:80]}` is not a run id", f"Use {RUN_ID_FORM}.")
        self.root = root
        self.run_id = run_id
        self.folder = root / ".interlock" / "tickets" / run_id

    def exists(self) -> bool:
        """Say whether this run was begun."""
        return (self.folder / "run.json").exists()

    def abandoned(self) -> bool:
        """Return whether this run was ended for good; its journal says so too."""
        return (self.folder / ABANDONED).exists()

    def made_ns(self) -> int:
        """Return when this run was begun, in nanoseconds since the epoch."""
        return made_ns(self.folder)

    def create(self, begin: RunInput) -> None:
        """Keep what the run begins with; from then on it exists."""
        state_dir(self.root)
        note_made(self.folder)
        write_atomically(self.folder / "run.json", json.dumps(begin, indent=1).encode() + b"\n")

    def discard(self) -> None:
        """Forget a run that never began; the caller holds its lock."""
        (self.folder / "run.json").unlink()

    def load(self) -> RunInput:
        """Return what the run began with.

        Raises:
            RunDamagedError: The file cannot be read back.
        """
        path = self.folder / "run.json"
        try:
            read: RunInput = json.loads(path.read_bytes())
            named = read["run_id"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged("run.json", str(error)) from error
        if named != self.run_id:
            raise self._damaged("run.json", f"it is of run {named}")
        return read

    def keep_tree(self, files: Mapping[str, str]) -> str:
        """Store a listing under its digest, and return the digest."""
        data = json.dumps(files, sort_keys=True, indent=0).encode()
        name = hashlib.sha256(data).hexdigest()
        path = self.folder / "trees" / f"{name}.json"
        if not path.exists():
            write_atomically(path, data)
        return name

    def tree(self, name: str) -> dict[str, str]:
        """Return a stored listing.

        Raises:
            RunDamagedError: It is gone or not the one that was stored.
        """
        path = self.folder / "trees" / f"{name}.json"
        try:
            data = path.read_bytes()
        except OSError as error:
            raise self._damaged(f"trees/{name}.json", error.strerror or "unreadable") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise self._damaged(f"trees/{name}.json", "it was changed")
        return json.loads(data)

    def count_refused(self) -> int:
        """Count one more submission that nothing of was looked at, and return how many there were."""
        path = self.folder / "unheard"
        try:
            count = int(path.read_text()) + 1
        except (FileNotFoundError, ValueError):
            count = 1
        write_atomically(path, str(count).encode())
        return count

    def claim(self, step: int, task_run: str) -> None:
        """Write down which task run is that of a step, before it is started."""
        write_atomically(self.folder / "steps" / str(step), task_run.encode())

    def claimed(self, step: int) -> str | None:
        """Return the task run of a step, or None before it was chosen."""
        try:
            return (self.folder / "steps" / str(step)).read_text()
        except FileNotFoundError:
            return None

    @contextmanager
    def locked(self, seconds: float = LOCK_SECONDS) -> Generator[None]:
        """Hold the run alone; a killed holder's lock is free again at once.

        Raises:
            RunBusyError: Another call holds it for that long.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("ab") as file, locked(file, seconds=seconds) as held:
            if not held:
                raise RunBusyError(
                    f"ticket run {self.run_id} is being worked on by another call",
                    "Wait until that call has its answer, then submit again.",
                )
            yield

    @contextmanager
    def driving(self) -> Generator[None]:
        """Keep other drives of this run by a model away, not the submissions of agents; a killed one's lock is free.

        Raises:
            RunBusyError: There is one.
        """
        with (self.folder / _DRIVEN).open("ab") as file, locked(file, seconds=0) as held:
            if not held:
                raise RunBusyError(
                    f"ticket run {self.run_id} is being resolved by another process",
                    f"Wait until that one is done; `interlock status {self.run_id}` says where it stands.",
                )
            yield

    def driven(self) -> bool:
        """Return whether a model works this run at this moment; a killed drive does not."""
        try:
            with (self.folder / _DRIVEN).open("rb") as file, locked(file, shared=True, seconds=0) as free:
                return not free
        except FileNotFoundError:
            return False

    def write_copy(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a passed payload or the last ticket as a file for people, and follow no link on the way.

        The journal is the record: where the copy cannot be written, the log says so and the run goes on.
        """
        path = copies_dir(self.root, self.run_id) / f"{name}.json"
        try:
            _write(self.root, path.relative_to(self.root), json.dumps(value, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            _LOG.warning("the copy %s cannot be written: %s", path, error.strerror)

    def _damaged(self, name: str, why: str) -> RunDamagedError:
        return RunDamagedError(
            f".interlock/tickets/{self.run_id}/{name} cannot be read back: {why}",
            f"Restore .interlock/tickets/{self.run_id} from a copy, or begin a new run.",
        )


def _write(root: Path, path: Path, text: str) -> None:
    """Write a whole file below a root, following no link on the way."""
    with opened_beneath(root, path.parts[:-1], make=True) as folder:
        write_in(folder, path.name, text.encode())


@contextmanager
def beginning(root: Path) -> Generator[None]:
    """Let one process at a time look for a run and begin one. The root's folder is the lock, which leaves no file."""
    with opened_beneath(root, ()) as folder, locked(folder):
        yield


def runs_of_ticket(root: Path, ticket_id: str) -> list[str]:
    """Return the runs of a ticket, the newest first; one that cannot be read is none of any."""
    own: list[TicketStore] = []
    for store in (TicketStore(root, run) for run in list_ticket_runs(root)):
        with suppress(RunDamagedError):
            own += [store] if store.load().get("ticket_id") == ticket_id else []
    return [store.run_id for store in sorted(own, key=lambda store: (store.made_ns(), store.run_id), reverse=True)]


def list_ticket_runs(root: Path) -> list[str]:
    """Return the ids of every ticket run below a root, by name."""
    folder = root / ".interlock" / "tickets"
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if is_run_id(path.name) and (path / "run.json").exists())


def new_run_id(ticket_id: str) -> str:
    """Return an id for a run of a ticket that no other run has."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", ticket_id)[:60].strip("-._")
    return f"{readable or 'run'}.{secrets.token_hex(4)}"
