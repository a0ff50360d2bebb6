"""What the pages use of landing: the functions of `interlock land` and `interlock queue`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Queued:
    run_id: str
    task_id: str
    task: str
    approved_at: str
    held: bool


@dataclass(frozen=True, slots=True)
class Landed:
    commit: str
    target: str
    at: str


@dataclass(frozen=True, slots=True)
class Landing:
    run_ids: tuple[str, ...]
    state: Literal["landed", "conflict", "red", "refused"]
    commit: str = ""
    target: str = ""
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    message: str = ""
    fix: str = ""


def queue_of(root: Path) -> list[Queued]:
    return []


def hold(root: Path, run_id: str, on: bool) -> None: ...


def move(root: Path, run_id: str, position: int) -> None: ...


def land(root: Path, run_ids: Sequence[str], *, notice: Callable[[Mapping[str, Any]], None]) -> list[Landing]:
    return []


def landed_of(root: Path, run_id: str) -> Landed | None:
    return None
