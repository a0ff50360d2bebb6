"""What the commands about reservations share: the calls, patterns as they are typed, and how they wait."""

import os
import shlex
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import click

from interlock.cli.context import talk
from interlock.cli.reservation_output import holder_words
from interlock.core.finding import Finding
from interlock.core.project import PROJECT, is_marked
from interlock.reservations import (
    ReservationError,
    Reservations,
    drain_events,
    is_watched,
    key_of,
    leave_queue,
    look_now,
    open_reservations,
    place,
    settings,
    typed,
)
from interlock.reservations.answers import LeaseInfo, Refusal, StatusAnswer
from interlock.reservations.patterns import Pattern, canonical, covers, relative
from interlock.reservations.rules import refuse

AnswerT = TypeVar("AnswerT", bound=Mapping[str, Any])


@contextmanager
def calls_of(root: Path | None) -> Generator[Reservations]:
    """Open the reservations around a folder, with a look at what is held; then what happened goes into the journal."""
    found = place.find(str(root or os.getcwd()))  # noqa: PTH109
    if not found.common and not is_marked(found.root) and not os.environ.get(PROJECT):
        click.echo(f"note: no git repository and no interlock.toml upwards of {found.root}: this folder is a project "
                   "of its own, apart from all others", err=True)  # fmt: skip
    mine = open_reservations(None if root is None else str(root), "cli")
    try:
        if is_watched(found):
            try:
                for line in look_now(mine, found):
                    click.echo(f"note: {line}", err=True)
            except ReservationError as error:  # to release or to ask for what is over the bound has to be possible
                click.echo(f"note: {error.message}", err=True)
        yield mine
    finally:
        try:
            drain_events(mine.runtime.store, mine.caller.root)
        except Exception as error:  # noqa: BLE001 - the command did its work, and what happened stays queued
            click.echo(f"note: not in the journal yet, the next command tries again: {error}", err=True)
        mine.runtime.store.close()


def as_patterns(given: Iterable[str], root: str) -> list[str]:
    """Return what was typed in the current folder, relative to the root; what is outside is left for the refusal."""
    here, home = os.path.realpath(os.getcwd()), os.path.realpath(root)  # noqa: PTH109
    inside = here == home or here.startswith(home.rstrip("/") + "/")
    pairs = [(text, _as_pattern(text, here if inside else home, home)) for text in given]
    if inside and here != home:
        for text, name in pairs:
            _hint(text, name, here, home)
    return [name for _, name in pairs]


def _hint(text: str, name: str, here: str, home: str) -> None:
    """Say on stderr when a text names nothing from the current folder, and a file from the root."""
    meant = os.path.join(home, text)  # noqa: PTH118
    if name == text or os.path.lexists(os.path.join(home, name)) or not os.path.lexists(meant):  # noqa: PTH118
        return
    folder = os.path.relpath(here, home)
    near = shlex.quote(os.path.relpath(meant, here))
    click.echo(f"note: there is no {name}; you are in {folder}/. Did you mean {near}?", err=True)


def way_of(mine: Reservations, root: Path | None) -> tuple[str, str]:
    """Return the prefix that makes a pattern of the root valid here, and the option that names the root."""
    here, home = os.path.realpath(os.getcwd()), os.path.realpath(mine.caller.root)  # noqa: PTH109
    up = os.path.relpath(home, here) + "/" if here.startswith(home.rstrip("/") + "/") else ""
    return up, "" if root is None else f" --root {shlex.quote(str(root))}"


def _as_pattern(text: str, here: str, home: str) -> str:
    if os.path.isabs(text) or (text and os.path.lexists(os.path.join(here, text))):  # noqa: PTH117, PTH118
        path = os.path.normpath(os.path.join(here, text))  # noqa: PTH118
        if path == home:
            return "**"
        literal = relative(path, home)
        if not isinstance(literal, Finding):
            return literal + "/" * (text.endswith("/") and not literal.endswith("/"))
        return text
    rest = text
    while rest.startswith(("./", "../")):
        step, _, rest = rest.partition("/")
        if step == "..":
            if here == home:
                return text
            here = os.path.dirname(here)  # noqa: PTH120
    folder = "" if here == home else relative(here, home)
    return text if isinstance(folder, Finding) else f"{folder}/{rest}" if folder else rest


def own_ids(mine: Reservations, names: Sequence[str]) -> tuple[list[str], list[Refusal], list[str]]:
    """Return the ids that some names mean, a refusal for each name that means nothing, and what was waited for.

    A place in the queue for exactly this pattern is given up at once; what is held below the pattern stays.
    """
    held = {lease["reservation_id"]: canonical(lease["pattern"]) for lease in mine.my_reservations()["reservations"]}
    ids: dict[str, None] = {}
    errors: list[Refusal] = []
    left: list[str] = []
    for number, name in enumerate(names):
        if name.startswith("rsv_"):
            ids[name] = None
            continue
        (text,) = as_patterns((name,), mine.caller.root)
        wanted = typed(mine, text)
        found: list[str] = []
        if not isinstance(wanted, Finding):
            if wanted not in held.values() and leave_queue(mine, wanted.text):
                left.append(text)
                continue
            found = [
                each for each, own in held.items()
                if not isinstance(own, Finding) and (covers(own, wanted) or covers(wanted, own))
            ]  # fmt: skip
            ids |= dict.fromkeys(found)
        if not found:
            errors.append(
                refuse(
                    "RSV203", "You hold nothing that covers this.", place=f"names[{number}]", found=text,
                    expected="an id or a pattern of yours",
                    fix="`interlock status` lists who holds what." if held else "There is nothing to release.",
                )
            )  # fmt: skip
    return list(ids), errors, left


def covered_by(mine: Reservations, leases: Iterable[LeaseInfo], names: Iterable[str]) -> dict[str, list[str]]:
    """Return what was asked for by the pattern of a wider lease that covers it."""
    found: dict[str, list[str]] = {}
    wanted = [(name, each) for name in names if isinstance(each := typed(mine, name), Pattern)]
    for lease in leases:
        own = canonical(lease["pattern"])
        below = [
            name for name, each in wanted if isinstance(own, Pattern) and each.text != own.text and covers(own, each)
        ]
        found |= {lease["pattern"]: below} if below else {}
    return found


def takers(mine: Reservations, patterns: Sequence[str]) -> dict[str, str]:
    """Return who holds what the caller has just released, by pattern."""
    if not patterns:
        return {}
    held = mine.check_conflicts(patterns)["conflicts"]
    return {row["pattern"]: row["holder"] for row in reversed(held) if not row.get("waiting")}


def places_for(mine: Reservations, waiters: Iterable[Mapping[str, Any]], name: str) -> list[int]:
    """Return the caller's places in the wait queue for something."""
    wanted = typed(mine, name)
    if isinstance(wanted, Finding):
        return []
    me = key_of(mine.caller.name)
    return [row["position"] for row in waiters if key_of(row["agent"]) == me and wanted.text in row["patterns"]]


def in_pieces(mine: Reservations, wait_seconds: float, call: Callable[[float], AnswerT]) -> AnswerT:
    """Wait longer than one call may: one that asks again keeps its place, and one that ends early has its answer."""
    clock, most = mine.runtime.monotonic, mine.runtime.settings.max_wait_seconds
    end = clock() + wait_seconds
    with _stopped_between_looks(mine):
        while True:
            begun = clock()
            left = max(0.0, end - begun)
            answer = call(min(left, most))
            if not most or left <= most or clock() < begun + most:
                return answer


@contextmanager
def _stopped_between_looks(mine: Reservations) -> Generator[None]:
    """Let Ctrl-C end a call between two looks at the store; a second one ends it at once.

    Within a look it could leave a transaction open that the rest of the command then waits for.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    runtime, stopped = mine.runtime, threading.Event()
    pause = runtime.pause

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            signal.default_int_handler(number, frame)
        stopped.set()

    def look_up(seconds: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt
        pause(seconds)

    runtime.pause = look_up
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        runtime.pause = pause
    if stopped.is_set():
        raise KeyboardInterrupt


@contextmanager
def announced_wait(mine: Reservations, names: Sequence[str], wait_seconds: float) -> Generator[None]:
    """Print on stderr who is waited for, and on a terminal for how long so far."""
    held = mine.check_conflicts(names)["conflicts"] if wait_seconds else []
    if not held:
        yield
        return
    for conflict in held:
        click.echo(f"waiting for {conflict['pattern']}: {holder_words(conflict)}", err=True)
    console = talk()
    if not console.is_terminal:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(f"waiting at most {wait_seconds:g} s; Ctrl-C gives up", total=None)
        yield


def read_reservations(root: Path, since_minutes: float) -> tuple[StatusAnswer, str]:
    """Return what `interlock status` shows of the reservations, and who looks; where no store is, none is made."""
    found, me = place.find(str(root)), ""
    held = StatusAnswer(leases=[], waiters=[], negotiations=[])
    if os.path.exists(found.store_path):  # noqa: PTH110 - a text, as in the whole package
        with calls_of(root) as mine:
            held, me = mine.current_state(since_minutes), mine.caller.name
    if problems := settings.report(found.root).problems:
        held["settings"] = [problem.to_json() for problem in problems]
    return held, me
