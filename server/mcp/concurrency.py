"""Places for calls at work: each caller has its own, so that nobody waits for the calls of another."""

from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter, to_thread

ResultT = TypeVar("ResultT")

CALLS: Final = 32
"""How many calls of one caller are at work at once, and how many more may wait for something."""


class CallSlots:
    """Runs calls in threads, so many at once for each caller; further ones wait.

    A call whose client went away is left to its thread: what it began goes on without it.
    """

    def __init__(self, at_once: int = CALLS) -> None:
        self._at_once = at_once
        # A limiter that no call holds or awaits is forgotten.
        self._limiters: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    async def work(self, work: Callable[[], ResultT], caller: str) -> ResultT:
        """Run some work in a thread as soon as its caller has a place."""
        limiter = self._limiters.get(caller)
        if limiter is None:
            limiter = self._limiters[caller] = CapacityLimiter(self._at_once)
        # A thread cannot be ended from outside. When its client goes away, the place is free though the thread goes on.
        return await to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=True)
