"""Places for calls: one caller or one run takes none from another, and a thread that goes on keeps its place."""

import threading
from collections.abc import Generator

import anyio
import pytest

from interlock.graph import RunBusyError
from interlock.server.mcp.places import Places

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
    places = Places(1, 1)
    assert await places.work(lambda: 7, "claude", "r1") == 7
    with pytest.raises(ZeroDivisionError):
        await places.work(lambda: 1 / 0, "claude", "r1")
    assert await places.work(lambda: 8, "claude", "r1") == 8


async def test_a_run_with_all_its_places_taken_keeps_nobody_from_another_run(work: Work) -> None:
    places = Places(4, 2, patience_seconds=0)
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(places.work, work, "claude", "busy")
        await work.wait_for(2)
        with pytest.raises(RunBusyError) as refused:
            await places.work(lambda: "", "claude", "busy")
        assert refused.value.fix
        assert await places.work(lambda: "other run", "claude", "free") == "other run"
        assert await places.work(lambda: "no run", "claude") == "no run"
        assert await places.work(lambda: "other caller", "codex", "busy") == "other caller"
        work.go.set()


async def test_a_caller_with_all_its_places_taken_waits_and_keeps_nobody_else_waiting(work: Work) -> None:
    places = Places(2, 2)
    answered: list[str] = []

    async def third() -> None:
        answered.append(await places.work(lambda: "third", "claude", "c"))

    async with anyio.create_task_group() as group:
        for name in ("a", "b"):
            group.start_soon(places.work, work, "claude", name)
        await work.wait_for(2)
        group.start_soon(third)
        assert await places.work(lambda: "codex", "codex", "a") == "codex"
        assert answered == []
        work.go.set()
    assert answered == ["third"]


async def test_who_waits_for_a_run_goes_on_when_a_place_is_free(work: Work) -> None:
    places = Places(100, 2, patience_seconds=60)
    found: list[str] = []

    async def one() -> None:
        found.append(await places.work(work, "claude", "busy"))

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(one)
        await work.wait_for(2)
        assert not work.begun.acquire(blocking=False), "the others hold no thread"
        work.go.set()
    assert found == ["done"] * 50


async def test_a_call_that_is_left_to_its_thread_holds_its_place_until_that_ends(work: Work) -> None:
    places = Places(1, 1, leave=True, patience_seconds=0)
    async with anyio.create_task_group() as group:
        group.start_soon(places.work, work, "claude", "r1")
        await work.wait_for(1)
        group.cancel_scope.cancel()
    with pytest.raises(RunBusyError):
        await places.work(lambda: "", "claude", "r1")
    work.go.set()
    assert await anyio.to_thread.run_sync(work.ended.acquire, True, 30)
    assert await places.work(lambda: "free", "claude") == "free"


async def test_a_call_that_is_not_left_is_waited_for_though_its_client_went_away(work: Work) -> None:
    places = Places(1, 1)
    async with anyio.create_task_group() as group:
        group.start_soon(places.work, work, "claude", "r1")
        await work.wait_for(1)
        group.cancel_scope.cancel()
        work.go.set()
    assert work.ended.acquire(blocking=False)


async def test_a_call_that_was_given_up_while_it_waited_takes_no_place_and_does_nothing(work: Work) -> None:
    places = Places(1, 2, patience_seconds=60)
    done: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(places.work, work, "claude", "a")
        await work.wait_for(1)
        async with anyio.create_task_group() as given_up:
            given_up.start_soon(places.work, lambda: done.append("b"), "claude", "b")
            await anyio.wait_all_tasks_blocked()
            given_up.cancel_scope.cancel()
        work.go.set()
    assert await places.work(lambda: "free", "claude", "b") == "free"
    assert done == []
