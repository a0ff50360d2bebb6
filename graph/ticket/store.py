"""The files of a ticket run: what it began with, its lock, its tree listings, and the copies for people."""

import hashlib
import json
import logging
import re
import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from pydantic_core import to_json

from interlock.core.files import opened_beneath, write_atomically, write_in
from interlock.graph.engine.folder import BEGIN, RunFolder, copies_dir
from interlock.graph.ticket.state import RunInput

_LOG: Final = logging.getLogger("interlock.tickets")

LOCK_SECONDS: Final = 10.0
"""How long a call waits for another one on the same run."""


class TicketStore(RunFolder):
    """The files of one run below `.interlock/tickets/<run_id>/`; see `RunFolder`.

    None of them says where the run stands: that is in the checkpoint.
    """

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
        # Its name is its digest: what is there is equal.
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

    def locked(self, seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """Hold the run alone.

        Raises:
            RunBusyError: Another call holds it for that long.
        """
        message = f"ticket run {self.run_id} is being worked on by another call"
        return self.holding("lock", seconds, (message, "Wait until that call has its answer, then submit again."))

    def write_copies(self, copies: Mapping[str, Mapping[str, Any]]) -> None:
        """Write passed payloads and the last ticket by their names as files for people; follow no link on the way.

        A copy may be lost to a power cut; where it cannot be written, the log says so and the run goes on.
        """
        path = copies_dir(self.root, self.run_id)
        data = {f"{name}.json": to_json(value, indent=2) + b"\n" for name, value in copies.items()}
        try:
            with opened_beneath(self.root, path.relative_to(self.root).parts, make=True) as folder:
                for name, text in data.items():
                    write_in(folder, name, text, durable=False)
        except OSError as error:
            _LOG.warning("the copies %s below %s cannot be written: %s", ", ".join(data), path, error.strerror)


def new_run_id(ticket_id: str) -> str:
    """Return an id for a run of a ticket that no other run has."""
    # What every file system takes in a name, without a dot that would hide it or a dash that looks like an option.
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", ticket_id)[:60].strip("-._") or "run"
    return f"{readable}.{secrets.token_hex(4)}"
