"""Places for calls: one caller takes none from another."""

import threading

import anyio
import pytest

from interlock.server.mcp.concurrency import CallSlots

pytestmark = pytest.mark.anyio


async def test_a_result_and_an_error_come_back() -> None:
    slots = CallSlots(1)
    assert await slots.work(lambda: 7, "claude") == 7
    with pytest.raises(ZeroDivisionError):
        await slots.work(lambda: 1 / 0, "claude")
    assert await slots.work(lambda: 8, "claude") == 8


async def test_a_caller_with_all_its_places_taken_waits_and_keeps_nobody_else_waiting() -> None:
    slots, begun, go = CallSlots(2), threading.Semaphore(0), threading.Event()
    answered: list[str] = []

    def work() -> None:
        begun.release()
        assert go.wait(60)

    async def third() -> None:
        answered.append(await slots.work(lambda: "third", "claude"))

    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(slots.work, work, "claude")
        for _ in range(2):
            assert await anyio.to_thread.run_sync(begun.acquire, True, 30)
        group.start_soon(third)
        assert await slots.work(lambda: "codex", "codex") == "codex"
        assert answered == []
        go.set()
    assert answered == ["third"]
