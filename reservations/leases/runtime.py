"""What every call works with: the store, the settings, who calls, the environment, and the open transaction."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from interlock.core.project import NoProject
from interlock.core.record import Record
from interlock.redaction import KeyRefused, long_key_in
from interlock.reservations import process
from interlock.reservations.errors import ReservationError
from interlock.reservations.settings import Settings
from interlock.reservations.store.records import MAX_NAME_CHARS, SYSTEM, Agent, AgentKind, Importance, Message, key_of

if TYPE_CHECKING:
    from interlock.reservations.store.choice import Store
    from interlock.reservations.store.sqlite_rows import Transaction


class _Caller(Record):
    name: str
    kind: AgentKind
    root: str
    client: str
    host: str = ""
    pid: int | None = None
    started: str = ""


class Caller(_Caller):
    """Who calls, and from where.

    Args:
        root: The checkout, absolute; its journal gets the events of this call.
        client: The entry point: `mcp`, `http`, `hook`, `cli`, `git`, `run`.
        host: The machine; empty over HTTP, where the process of the caller is unknown.
        pid: The caller's client process; None when unknown.
        started: See `records.Agent`.

    Raises:
        ReservationError: No agent may have this name (RSV107).
        KeyRefused: It holds a key of the environment.
        NoProject: The path of the checkout is no UTF-8, so that no store can hold it.
    """

    __slots__ = ()

    def __new__(
        cls,
        name: str,
        kind: AgentKind,
        root: str,
        client: str,
        host: str = "",
        pid: int | None = None,
        started: str = "",
    ) -> "Caller":
        """Return a caller with a name that an agent may have."""
        self = super().__new__(cls, name, kind, root, client, host, pid, started)
        long = not 0 < len(self.name) <= MAX_NAME_CHARS
        if long or not self.name.isprintable() or self.name != self.name.strip() or key_of(self.name) == SYSTEM:
            raise ReservationError(
                f"{self.name[: MAX_NAME_CHARS + 1]!a} cannot be the name of an agent: expected 1 to {MAX_NAME_CHARS} "
                f"printable characters without blanks around them, and not `{SYSTEM}`",
                "Set INTERLOCK_AGENT_ID to such a name, or unset it.",
                "RSV107",
            )
        if (key := long_key_in(self.name, self.root)) is not None:
            raise KeyRefused("the name of the agent", key)
        if not self.root.isascii() and any("\ud800" <= char <= "\udfff" for char in self.root):
            message = f"The path of the checkout is no UTF-8: {self.root!a}."
            raise NoProject(message, "Move it to a folder whose name is UTF-8.")
        return self


_Dirty: TypeAlias = Callable[[str, tuple[str, ...]], Mapping[str, bool | None]]


class Runtime:
    """The store and the environment, as the rules see them; tests give a clock and probes of their own.

    Args:
        clock: Seconds since the epoch.
        monotonic: Seconds that only rise, whoever sets the clock: what a wait is measured by.
        is_running: Returns whether a process of this machine still runs: (host, pid, started) to True, False, or None
            when that cannot be known from here.
        dirty: Says which of some patterns cover files with uncommitted changes: (root, patterns) to a truth value for
            each pattern, None where that is not known. It may be slow; nothing calls it inside a transaction.
        changed_here: The same of the checkout at that root alone, without the other worktrees.
        is_folder: Returns whether a path below a root is a folder: (root, path).
        exists: Returns whether anything is at a path below a root: (root, path). Asked of what an agent typed, so that
            `app/[slug]` is that folder where it is there; an entry point that quotes real names itself leaves it out.
        nested: Says in which other repository below a root a path lies: (root, path) to that one's folder relative to
            the root, empty for none.
        real: Says by which names a path below a root is held: (root, path), see `place.real`.
        pause: Waits some seconds between two looks at the store.
    """

    def __init__(
        self,
        store: "Store",
        settings: Settings = Settings(),  # noqa: B008 - it never changes
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        is_running: Callable[[str, int, str], bool | None] = process.is_running,
        dirty: _Dirty = lambda _root, patterns: dict.fromkeys(patterns),
        changed_here: _Dirty = lambda _root, patterns: dict.fromkeys(patterns),
        is_folder: Callable[[str, str], bool] = lambda _root, _path: False,
        exists: Callable[[str, str], bool] = lambda _root, _path: False,
        nested: Callable[[str, str], str] = lambda _root, _path: "",
        real: Callable[[str, str], Sequence[str]] = lambda _root, path: (path,),
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self.monotonic = monotonic
        self.is_running = is_running
        self.dirty = dirty
        self.changed_here = changed_here
        self.is_folder = is_folder
        self.exists = exists
        self.nested = nested
        self.real = real
        self.pause = pause

    def _replace(self, **changes: Any) -> "Runtime":
        """Return a runtime with some fields changed; for `records.replace`."""
        return Runtime(**vars(self) | changes)


class Context:
    """What a call is made with: the store, the environment, and who calls."""

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self.runtime = runtime
        self.caller = caller


class Entry(Context):
    """One call inside the one transaction; made by `leases.entered`.

    Args:
        tx: The rows; what is put here is committed or undone with the call.
        now: The time of the whole call, seconds since the epoch.
        agent: The caller as it is registered, seen at `now` or up to a second before.

    Attributes:
        states: What `liveness` found out in this call, so that each process is asked about once.
    """

    def __init__(self, ctx: Context, tx: "Transaction", now: float, agent: Agent) -> None:
        super().__init__(ctx.runtime, ctx.caller)
        self.tx = tx
        self.now = now
        self.agent = agent
        self.states: dict[str, Any] = {}

    def event(self, kind: str, /, **data: Any) -> None:
        """Queue an event for the journal of the caller's checkout; the values are JSON."""
        self.tx.add_event(self.caller.root, kind, json.dumps(data, sort_keys=True), self.now)

    def post(
        self,
        recipient: str,
        topic: str,
        body: str,
        *,
        thread_id: str = "",
        sender: str = "",
        importance: Importance = "normal",
        ack_required: bool = False,
    ) -> Message:
        """Put a message into an inbox, with its event; `notify` is for notices of the store.

        The recipient is registered. Without a thread a new one begins; without a sender the caller writes.
        """
        draft = Message(
            0,
            thread_id or new_id("thr"),
            sender or self.agent.name,
            recipient,
            topic,
            importance,
            ack_required=ack_required,
            acked_at=None,
            body=body,
            sent_at=self.now,
            read_at=None,
        )
        message = self.tx.add_message(draft)
        named = {"message_id": message.message_id, "thread_id": message.thread_id, "sender": message.sender}
        self.event("message_sent", **named, recipient=recipient, topic=topic, importance=importance)
        return message

    def notify(
        self, recipient: str, topic: str, body: str, *, thread_id: str = "", importance: Importance = "high"
    ) -> Message:
        """Leave a notice of the store: `granted`, `taken-over`, `ran-out`, `forced`."""
        return self.post(recipient, topic, body, thread_id=thread_id, sender=SYSTEM, importance=importance)


def new_id(kind: str) -> str:
    """Return `kind_` and 16 random hex digits."""
    return f"{kind}_{os.urandom(8).hex()}"
