"""The lock of a run is free as soon as its holder lets go, whatever the process started meanwhile."""

import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from interlock.graph.task.store import RunStore
from interlock.graph.ticket.store import TicketStore

LOCKS: dict[str, Callable[[Path], AbstractContextManager[None]]] = {
    "task run": lambda root: RunStore(root, "RUN-1").locked(),
    "ticket run": lambda root: TicketStore(root, "RUN-1").locked(seconds=0),
}


@contextmanager
def forked() -> Generator[None]:
    """Have a child with every descriptor of ours, as one is between fork and exec."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writes)
        os.read(reads, 1)
        os._exit(0)
    try:
        yield
    finally:
        os.close(writes)
        os.waitpid(child, 0)
        os.close(reads)


@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_lock_does_not_stay_with_a_child_that_was_forked_meanwhile(tmp_path: Path, name: str) -> None:
    held = LOCKS[name](tmp_path)
    held.__enter__()
    with forked():
        held.__exit__(None, None, None)
        with LOCKS[name](tmp_path):
            pass
