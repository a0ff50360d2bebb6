"""The files of ticket runs: what a run began with, its locks, its tree listings, and the copies for people."""

import hashlib
import json
import logging
import re
import secrets
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_json

from interlock.core.files import opened_beneath, write_atomically, write_in
from interlock.core.locks import locked
from interlock.graph.engine.folder import BEGIN, RunFolder, copies_dir
from interlock.graph.ticket.state import RunInput

_LOG: Final = logging.getLogger("interlock.tickets")

LOCK_SECONDS: Final = 10.0
"""How long a call waits for another one on the same run."""

_DRIVEN: Final = "resolve.lock"
_NEW_ID: Final = re.compile(r"(?P<ticket>.+)\.[0-9a-f]{8}", re.ASCII)


class TicketStore(RunFolder):
    """The files of one run below `.interlock/tickets/<run_id>/`; see `RunFolder`."""

    kind = "tickets"

    def create(self, begin: RunInput) -> None:
        """Keep what the run begins with; from then on it exists."""
        self.keep_begin(json.dumps(begin, indent=1).encode() + b"\n")

    def discard(self) -> None:
        """Forget a run that never began; the caller holds its lock."""
        (self.folder / BEGIN).unlink()

    def load(self) -> RunInput:
        """Return what the run began with.

        Raises:
            RunDamagedError: The file cannot be read back.
        """
        try:
            read: RunInput = json.loads((self.folder / BEGIN).read_bytes())
            named = read["run_id"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self.damaged(BEGIN, str(error)) from error
        if named != self.run_id:
            raise self.damaged(BEGIN, f"it is of run {named}")
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
            raise self.damaged(f"trees/{name}.json", error.strerror or "unreadable") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise self.damaged(f"trees/{name}.json", "it was changed")
        return json.loads(data)

    def has_answers(self) -> bool:
        """Return whether a model was ever asked in this run."""
        return (self.folder / "answers").exists()

    def count_refused(self) -> int:
        """Count one more submission that was rejected unread, and return how many there were."""
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

    def locked(self, seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """Hold the run alone.

        Raises:
            RunBusyError: Another call holds it for that long.
        """
        message = f"ticket run {self.run_id} is being worked on by another call"
        return self.holding("lock", seconds, (message, "Wait until that call has its answer, then submit again."))

    def driving(self) -> AbstractContextManager[None]:
        """Keep other drives of this run by a model away, not the submissions of agents.

        Raises:
            RunBusyError: There is one.
        """
        fix = f"Wait until that one is done; `interlock status {self.run_id}` shows its state."
        return self.holding(_DRIVEN, 0, (f"ticket run {self.run_id} is being resolved by another process", fix))

    def driven(self) -> bool:
        """Return whether a model works this run at this moment."""
        return self.held(_DRIVEN)

    def write_copies(self, copies: Mapping[str, Mapping[str, Any]]) -> None:
        """Write passed payloads and the last ticket by their names as files for people; follow no link on the way.

        The journal is the record, and is on the disk first: a copy may be lost to a power cut, and where it cannot be
        written, the log says so and the run goes on.
        """
        path = copies_dir(self.root, self.run_id)
        data = {f"{name}.json": to_json(value, indent=2) + b"\n" for name, value in copies.items()}
        try:
            with opened_beneath(self.root, path.relative_to(self.root).parts, make=True) as folder:
                for name, text in data.items():
                    write_in(folder, name, text, durable=False)
        except OSError as error:
            _LOG.warning("the copies %s below %s cannot be written: %s", ", ".join(data), path, error.strerror)


@contextmanager
def beginning(root: Path) -> Generator[None]:
    """Let one process at a time look for a run and begin one. The root's folder is the lock, which leaves no file."""
    with opened_beneath(root, ()) as folder, locked(folder):
        yield


def new_run_id(ticket_id: str) -> str:
    """Return an id for a run of a ticket that no other run has."""
    return f"{_readable(ticket_id)}.{secrets.token_hex(4)}"


def may_be_of(ticket_id: str, run_id: str) -> bool:
    """Return whether a run can be of a ticket by its id: that of another ticket, as `new_run_id` gives it, cannot."""
    named = _NEW_ID.fullmatch(run_id)
    return named is None or named["ticket"] == _readable(ticket_id)


def _readable(ticket_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", ticket_id)[:60].strip("-._") or "run"
