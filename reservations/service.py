"""The calls of one agent, as all entry points use them, and how they are opened."""

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from interlock.reservations import identity, place, process, settings, status
from interlock.reservations.answers import ReserveAnswer
from interlock.reservations.errors import ReservationError
from interlock.reservations.git.checkouts import unsaved
from interlock.reservations.leases import calls
from interlock.reservations.leases.runtime import Caller, Context, Runtime
from interlock.reservations.messages import negotiation, response, sending
from interlock.reservations.store.choice import store_at
from interlock.reservations.versions import flight, watch

LOOK_SECONDS: Final = 1.0
"""How long an answer waits for a look into other worktrees: each costs some runs of git."""


class Reservations(Context):
    """What one agent can do. The first call registers the agent; every call is a sign of life.

    A refusal is an answer with `errors`, never an exception; exceptions (`ReservationError`) are for what the agent
    cannot correct.
    """

    def reserve_files(
        self,
        patterns: Sequence[str],
        reason: str = "",
        ttl_minutes: float | None = None,
        *,
        exclusive: bool = True,
        no_force: bool = False,
        wait_seconds: float = 0,
    ) -> ReserveAnswer:
        """Reserve patterns, as `calls.reserve` does, and keep what they hold from now on."""
        answer = calls.reserve(
            self, patterns, reason, ttl_minutes, exclusive=exclusive, no_force=no_force, wait_seconds=wait_seconds
        )
        if answer["reservations"]:
            # Whether its holder's calls pass hooks or not. What is over the bound is refused to others when they begin.
            with suppress(ReservationError):
                watch.look_now(self, place.at(self.caller.root))
        return answer

    release_files = calls.release
    release_all = calls.release_all
    check_conflicts = calls.check
    my_reservations = calls.mine
    send_message = sending.send
    fetch_inbox = sending.fetch
    list_agents = status.list_agents
    request_release = negotiation.request
    negotiate_release = negotiation.negotiate
    respond_to_release = response.respond
    current_state = status.current_state
    join = status.join
    leave = status.leave


def open_runtime(found: place.Place) -> Runtime:
    """Return the runtime of a project."""
    return Runtime(
        store_at(found),
        settings.read(found.root),
        is_running=process.is_running,
        dirty=partial(unsaved, seconds=LOOK_SECONDS),
        changed_here=partial(unsaved, seconds=0.0),
        is_folder=place.is_folder,
        exists=place.exists,
        nested=place.other_below,
        real=place.real,
    )


def open_reservations(start: str | None = None, client: str = "cli", *, name: str = "") -> Reservations:
    """Return the calls of an agent in the project around a folder.

    Args:
        start: Where to look for the project; default: here.

    Raises:
        NoProject: `INTERLOCK_PROJECT` names no folder.
        ReservationError: The store cannot be used.
    """
    found = place.find(start or os.getcwd())
    runtime = open_runtime(found)
    named = identity.Known(name, "agent", *process.client()) if name else None
    known = named or identity.who(os.environ, runtime.store, via=client)
    acting = named.name if named else flight.acting(found, known.name)
    caller = Caller(acting, known.kind, found.root, client, process.host(), known.pid, known.started)
    return Reservations(runtime, caller)
