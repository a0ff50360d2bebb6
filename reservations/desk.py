"""What every call works with: the store, the settings, who calls, and the world around."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from interlock.reservations.errors import NameRefused, NoProject
from interlock.reservations.process import is_running
from interlock.reservations.records import HOUSE, MAX_NAME_CHARS, AgentKind, key_of
from interlock.reservations.settings import Settings
from interlock.reservations.store import Store


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and from where.

    Args:
        name: The agent's name.
        kind: `person` for `user@host`.
        root: The checkout, absolute; its journal gets the events of this call.
        client: The door: `mcp`, `http`, `hook`, `cli`, `git`, `run`.
        host: The machine; empty over HTTP, where the process of the caller is unknown.
        pid: The caller's client process; None when unknown.
        started: See `records.Agent`.

    Raises:
        NameRefused: No agent may have this name.
        NoProject: The path of the checkout is no UTF-8, so that no store can hold it.
    """

    name: str
    kind: AgentKind
    root: str
    client: str
    host: str = ""
    pid: int | None = None
    started: str = ""

    def __post_init__(self) -> None:
        long = not 0 < len(self.name) <= MAX_NAME_CHARS
        if long or not self.name.isprintable() or self.name != self.name.strip() or key_of(self.name) == HOUSE:
            raise NameRefused(
                f"{self.name[: MAX_NAME_CHARS + 1]!a} cannot be the name of an agent: expected 1 to {MAX_NAME_CHARS} "
                f"printable characters without blanks around them, and not `{HOUSE}`",
                "Set INTERLOCK_AGENT_ID to such a name, or unset it.",
            )
        if not self.root.isascii() and any("\ud800" <= char <= "\udfff" for char in self.root):
            message = f"The path of the checkout is no UTF-8: {self.root!a}."
            raise NoProject(message, "Move it to a folder whose name is UTF-8.")


@dataclass(frozen=True, slots=True)
class Desk:
    """The store and the world, as the rules see them; tests give a clock and probes of their own.

    Args:
        store: Where the rows are.
        settings: `[reservations]`.
        clock: Seconds since the epoch.
        is_running: Says whether a process of this machine still runs: (host, pid, started) to True, False, or None
            when that cannot be known from here.
        dirty: Says which of some patterns cover files with uncommitted changes: (root, patterns) to a truth value for
            each pattern, None where that is not known. It may be slow; nothing calls it inside a transaction.
        is_folder: Says whether a path below a root is a folder: (root, path).
        exists: Says whether anything is at a path below a root: (root, path). Asked of what an agent typed, so that
            `app/[slug]` is that folder where it is there; a door that quotes real names itself leaves it out.
        pause: Waits some seconds between two looks at the store.
    """

    store: Store
    settings: Settings = field(default_factory=Settings)
    clock: Callable[[], float] = time.time
    is_running: Callable[[str, int, str], bool | None] = is_running
    dirty: Callable[[str, tuple[str, ...]], Mapping[str, bool | None]] = lambda _root, patterns: dict.fromkeys(patterns)
    is_folder: Callable[[str, str], bool] = lambda _root, _path: False
    exists: Callable[[str, str], bool] = lambda _root, _path: False
    pause: Callable[[float], None] = time.sleep
