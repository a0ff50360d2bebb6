"""What the commands about reservations share: the calls, patterns as they are typed, and how they wait."""

import os
import shlex
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from interlock.cli.context import talk
from interlock.cli.standing import holder_words
from interlock.reservations import outbox, place
from interlock.reservations.answers import Refusal, StandingAnswer
from interlock.reservations.arguments import typed
from interlock.reservations.opening import open_reservations
from interlock.reservations.patterns import PatternProblem, canonical, covers, relative
from interlock.reservations.rules import refuse
from interlock.reservations.service import Reservations

AnswerT = TypeVar("AnswerT", bound=Mapping[str, Any])


@contextmanager
def calls_of(root: Path | None) -> Generator[Reservations]:
    """Open the reservations around a folder; afterwards, what happened is written into the journal."""
    mine = open_reservations(None if root is None else str(root), "cli")
    try:
        yield mine
    finally:
        drain(mine)
        mine.desk.store.close()


def drain(mine: Reservations) -> None:
    """Write what happened into the journal; where that fails it stays queued, and a note on stderr says why."""
    try:
        outbox.drain(mine.desk.store, mine.caller.root)
    except Exception as error:  # noqa: BLE001 - the command did its work, and nothing is lost
        click.echo(f"note: not in the journal yet, the next command tries again: {error}", err=True)


def as_patterns(given: Iterable[str], root: str) -> list[str]:
    """Return what was typed in the current folder, relative to the root; what is outside is left for the refusal."""
    here, home = os.path.realpath(os.getcwd()), os.path.realpath(root)  # noqa: PTH109
    inside = here == home or here.startswith(home.rstrip("/") + "/")
    return [_as_pattern(text, here if inside else home, home) for text in given]


def way_of(mine: Reservations, root: Path | None) -> tuple[str, str]:
    """Return what stands in front of a pattern of the root to mean it here, and the option that names the root."""
    here, home = os.path.realpath(os.getcwd()), os.path.realpath(mine.caller.root)  # noqa: PTH109
    up = os.path.relpath(home, here) + "/" if here.startswith(home.rstrip("/") + "/") else ""
    return up, "" if root is None else f" --root {shlex.quote(str(root))}"


def _as_pattern(text: str, here: str, home: str) -> str:
    if os.path.isabs(text) or (text and os.path.lexists(os.path.join(here, text))):  # noqa: PTH117, PTH118
        path = os.path.normpath(os.path.join(here, text))  # noqa: PTH118
        if path == home:
            return "**"
        literal = relative(path, home)
        if not isinstance(literal, PatternProblem):
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
    return text if isinstance(folder, PatternProblem) else f"{folder}/{rest}" if folder else rest


def own_ids(mine: Reservations, names: Sequence[str]) -> tuple[list[str], list[Refusal]]:
    """Return the ids that some names mean, and a refusal for each name of which the caller holds nothing."""
    held = {lease["reservation_id"]: canonical(lease["pattern"]) for lease in mine.my_reservations()["reservations"]}
    ids: dict[str, None] = {}
    errors: list[Refusal] = []
    for number, name in enumerate(names):
        if name.startswith("rsv_"):
            ids[name] = None
            continue
        (text,) = as_patterns((name,), mine.caller.root)
        wanted = typed(mine.desk, mine.caller, text)
        found: list[str] = []
        if not isinstance(wanted, PatternProblem):
            found = [
                each for each, own in held.items()
                if not isinstance(own, PatternProblem) and (covers(own, wanted) or covers(wanted, own))
            ]  # fmt: skip
            ids |= dict.fromkeys(found)
        if not found:
            errors.append(
                refuse(
                    "RSV203", "You hold nothing that covers this.", place=f"names[{number}]", found=text,
                    expected="an id or a pattern of yours",
                    fix="`interlock status` lists who holds what." if held else "You hold nothing: there is no need.",
                )
            )  # fmt: skip
    return list(ids), errors


def in_pieces(mine: Reservations, wait_seconds: float, call: Callable[[float], AnswerT]) -> AnswerT:
    """Wait longer than one call may: one that asks again keeps its place, and one that ends early has its answer."""
    clock, most = mine.desk.monotonic, mine.desk.settings.max_wait_seconds
    end = clock() + wait_seconds
    while True:
        begun = clock()
        left = max(0.0, end - begun)
        answer = call(min(left, most))
        if not most or left <= most or clock() < begun + most:
            return answer


@contextmanager
def telling(mine: Reservations, names: Sequence[str], wait_seconds: float) -> Generator[None]:
    """Say on stderr who is waited for, and on a terminal for how long by now."""
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


def read_standing(root: Path, since_minutes: float) -> StandingAnswer:
    """Return what `interlock status` shows of the reservations; where no store is, none is made."""
    if not os.path.exists(place.find(str(root)).store_path):  # noqa: PTH110 - a text, as the whole room has it
        return StandingAnswer(leases=[], waiters=[], negotiations=[])
    with calls_of(root) as mine:
        return mine.standing(since_minutes)
