"""Slots for calls: one caller or one run takes none from another, and a thread that goes on keeps its slot."""

import threading
from collections.abc import Generator

import anyio
import pytest

from interlock.graph import RunBusyError
from interlock.server.mcp.concurrency import CallSlots

pytestmark = pytest.mark.anyio


class Work:
    """Calls that stay in their threads until they are let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self.go = threading.Event()

    def __call__(self) -> str:
        """Do the work."""
        self.begun.release()
        assert self.go.wait(60)
        self.ended.release()
        return "done"

    async def wait_for(self, count: int) -> None:
        """Return when so many calls are at work."""
        for _ in range(count):
            assert await anyio.to_thread.run_sync(self.begun.acquire, True, 30)


@pytest.fixture
def work() -> Generator[Work]:
    held = Work()
    yield held
    held.go.set()


async def test_a_result_and_an_error_come_back() -> None:
    slots = CallSlots(1, 1)
    assert await slots.work(lambda: 7, "claude", "r1") == 7
    with pytest.raises(ZeroDivisionError):
        await slots.work(lambda: 1 / 0, "claude", "r1")
    assert await slots.work(lambda: 8, "claude", "r1") == 8


async def test_a_run_with_all_its_slots_taken_keeps_nobody_from_another_run(work: Work) -> None:
    slots = CallSlots(4, 2, patience_seconds=0)
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(slots.work, work, "claude", "busy")
        await work.wait_for(2)
        with pytest.raises(RunBusyError) as refused:
            await slots.work(lambda: "", "claude", "busy")
        assert refused.value.fix
        assert await slots.work(lambda: "other run", "claude", "free") == "other run"
        assert await slots.work(lambda: "no run", "claude") == "no run"
        assert await slots.work(lambda: "other caller", "codex", "busy") == "other caller"
        work.go.set()


async def test_a_caller_with_all_its_slots_taken_waits_and_keeps_nobody_else_waiting(work: Work) -> None:
    slots = CallSlots(2, 2)
    answered: list[str] = []

    async def third() -> None:
        answered.append(await slots.work(lambda: "third", "claude", "c"))

    async with anyio.create_task_group() as group:
        for name in ("a", "b"):
            group.start_soon(slots.work, work, "claude", name)
        await work.wait_for(2)
        group.start_soon(third)
        assert await slots.work(lambda: "codex", "codex", "a") == "codex"
        assert answered == []
        work.go.set()
    assert answered == ["third"]


async def test_who_waits_for_a_run_goes_on_when_a_slot_is_free(work: Work) -> None:
    slots = CallSlots(100, 2, patience_seconds=60)
    found: list[str] = []

    async def one() -> None:
        found.append(await slots.work(work, "claude", "busy"))

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(one)
        await work.wait_for(2)
        assert not work.begun.acquire(blocking=False), "the others hold no thread"
        work.go.set()
    assert found == ["done"] * 50


async def test_a_call_that_is_left_to_its_thread_holds_its_slot_until_that_ends(work: Work) -> None:
    slots = CallSlots(1, 1, leave=True, patience_seconds=0)
    async with anyio.create_task_group() as group:
        group.start_soon(slots.work, work, "claude", "r1")
        await work.wait_for(1)
        group.cancel_scope.cancel()
    with pytest.raises(RunBusyError):
        await slots.work(lambda: "", "claude", "r1")
    work.go.set()
    assert await anyio.to_thread.run_sync(work.ended.acquire, True, 30)
    assert await slots.work(lambda: "free", "claude") == "free"


async def test_a_call_that_is_not_left_is_waited_for_though_its_client_went_away(work: Work) -> None:
    slots = CallSlots(1, 1)
    async with anyio.create_task_group() as group:
        group.start_soon(slots.work, work, "claude", "r1")
        await work.wait_for(1)
        group.cancel_scope.cancel()
        work.go.set()
    assert work.ended.acquire(blocking=False)


async def test_a_call_that_was_given_up_while_it_waited_takes_no_slot_and_does_nothing(work: Work) -> None:
    slots = CallSlots(1, 2, patience_seconds=60)
    done: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(slots.work, work, "claude", "a")
        await work.wait_for(1)
        async with anyio.create_task_group() as given_up:
            given_up.start_soon(slots.work, lambda: done.append("b"), "claude", "b")
            await anyio.wait_all_tasks_blocked()
            given_up.cancel_scope.cancel()
        work.go.set()
    assert await slots.work(lambda: "free", "claude", "b") == "free"
    assert done == []
