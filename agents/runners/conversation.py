"""Conversations that a re-ask goes on in: kept in this process alone, from one refused answer to the next.

A new turn begins a new conversation, so that none outlives the few re-asks of one answer. One that is not there any
more, because the process is another or the work stopped in between, is begun anew with the whole assignment.
"""

from threading import Lock
from typing import Final, Generic, TypeVar

from interlock.agents.ask import Ask

MAX_KEPT: Final = 16
"""How many conversations one runner keeps: one for each task that it works for at the same time."""

Kept = TypeVar("Kept")


class Conversations(Generic[Kept]):
    """What a runner needs to go on with a turn, by run, task and role."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], tuple[tuple[int, int, int], Kept]] = {}
        self._lock = Lock()

    def take(self, ask: Ask) -> Kept | None:
        """Return and forget the conversation that ended with the answer which this ask corrects; None without one."""
        with self._lock:
            at, kept = self._kept.pop(_key(ask), (None, None))
        return kept if ask.correction and at == (ask.attempt, ask.turn, ask.reask - 1) else None

    def keep(self, ask: Ask, conversation: Kept) -> None:
        """Keep the conversation that ended with the answer to this ask."""
        with self._lock:
            self._kept.pop(_key(ask), None)
            self._kept[_key(ask)] = ((ask.attempt, ask.turn, ask.reask), conversation)
            if len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]


def _key(ask: Ask) -> tuple[str, str, str]:
    return ask.run_id, ask.task_id, ask.role
