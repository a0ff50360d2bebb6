"""Slots for calls at work: each caller has its own, and fewer are for one run; a waiting call holds no thread."""

import asyncio
import math
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

import anyio
from anyio import CancelScope, CapacityLimiter, Semaphore, WouldBlock, to_thread

from interlock.graph import RunBusyError

READS: Final = 8
"""How many readings of resources and prompts of one caller are at work at once."""

ResultT = TypeVar("ResultT")
_Key: TypeAlias = tuple[str, str]

PATIENCE_SECONDS: Final = 10.0
"""How long a call waits for a slot of its run, as long as one that has a slot waits for the run's lock."""


class CallSlots:
    """Runs calls in threads, so many at once for each caller. A slot is free again when its thread has ended.

    Args:
        of_caller: How many calls of one caller are at work at once; further ones wait.
        of_run: How many of them are about the same run.
        leave: Whether a call whose client went away is left to its thread, and not waited for.
        patience_seconds: How long a call waits for a slot of its run.
    """

    def __init__(
        self, of_caller: int, of_run: int, *, leave: bool = False, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._of_caller = of_caller
        self._of_run = of_run
        self._leave = leave
        self._patience_seconds = patience_seconds
        self._slots: dict[_Key, Semaphore] = {}
        self._threads = CapacityLimiter(math.inf)

    async def work(self, work: Callable[[], ResultT], caller: str, run_id: str = "") -> ResultT:
        """Run some work in a thread as soon as its caller has a slot, and its run, where it is about one.

        Raises:
            RunBusyError: All slots of this run were taken for too long.
        """
        held: list[_Key] = []
        try:
            if run_id:
                await self._acquire_for_run((caller, run_id), held)
            await self._acquire((caller, ""), self._of_caller, held)
        except BaseException:
            self._release(held)
            raise
        thread = asyncio.ensure_future(to_thread.run_sync(work, limiter=self._threads))
        # A thread cannot be ended from outside, so the slot is held until it ends, whether or not anybody waits.
        thread.add_done_callback(lambda _: self._release(held))
        with CancelScope(shield=not self._leave):
            await asyncio.shield(thread)
        return thread.result()

    async def _acquire_for_run(self, key: _Key, held: list[_Key]) -> None:
        try:
            with anyio.fail_after(self._patience_seconds):
                await self._acquire(key, self._of_run, held)
        except TimeoutError:
            raise RunBusyError(
                f"{self._of_run} calls about the run {key[1][:80]} are under way already",
                "Wait until one of those calls has its answer, then send this one again.",
            ) from None

    async def _acquire(self, key: _Key, most: int, held: list[_Key]) -> None:
        slots = self._slots.setdefault(key, Semaphore(most, max_value=most))
        try:
            slots.acquire_nowait()
        except WouldBlock:
            try:
                await slots.acquire()
            except BaseException:
                self._forget(key)
                raise
        held.append(key)

    def _release(self, held: list[_Key]) -> None:
        while held:
            key = held.pop()
            self._slots[key].release()
            self._forget(key)

    def _forget(self, key: _Key) -> None:
        """Forget slots of which none is taken: nobody waits for those either."""
        slots = self._slots.get(key)
        if slots is not None and slots.value == slots.max_value:
            del self._slots[key]
