"""What the commands about reservations share: the calls, patterns as they are typed, and how they wait."""

import os
import shlex
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from interlock.cli.context import talk
from interlock.cli.lease_text import holder_words
from interlock.core.finding import Finding
from interlock.core.patterns import canonical, covers, relative
from interlock.core.project import PROJECT, is_marked
from interlock.reservations import (
    ReservationError,
    Reservations,
    drain_events,
    is_watched,
    leave_queue,
    look_now,
    open_reservations,
    place,
    settings,
    typed,
)
from interlock.reservations.answers import Refusal, StatusAnswer
from interlock.reservations.rules import refuse

AnswerT = TypeVar("AnswerT", bound=Mapping[str, Any])


class Way(NamedTuple):
    """What a proposed command needs to mean the same here.

    Args:
        up: What leads from the current folder to the root, such as `../`.
        tail: The option that names the root; empty where it is found.
        root: The root where it was named.
    """

    up: str = ""
    tail: str = ""
    root: str = ""


def way_of(mine: Reservations, root: Path | None) -> Way:
    """Return what commands that are proposed need here."""
    here, home = Path.cwd(), Path(mine.caller.root).resolve()
    up = os.path.relpath(home, here) + "/" if here != home and here.is_relative_to(home) else ""
    return Way(up) if root is None else Way(up, f" --root {shlex.quote(str(root))}", str(root))


@contextmanager
def calls_of(root: Path | None) -> Generator[Reservations]:
    """Open the reservations around a folder, with a look at what is held; then what happened goes into the journal."""
    found = place.find(str(root or Path.cwd()))
    if not found.common and not is_marked(found.root) and not os.environ.get(PROJECT):
        text = "this folder is a project of its own, apart from all others"
        click.echo(f"note: no git repository and no interlock.toml upwards of {found.root}: {text}", err=True)
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
    here, home = Path.cwd(), Path(root).resolve()
    start = here if here.is_relative_to(home) else home
    return [_as_pattern(text, str(start), str(home)) for text in given]


def _as_pattern(text: str, here: str, home: str) -> str:
    path = os.path.join(here, text)  # noqa: PTH118 - a pattern, which `Path` would normalize
    # What names a file that is there is that file, whatever characters are in its name.
    if Path(text).is_absolute() or (text and os.path.lexists(path)):
        path = os.path.normpath(path)
        if path == home:
            return "**"
        literal = relative(path, home)
        if isinstance(literal, Finding):
            return text
        return f"{literal}/" if text.endswith("/") and not literal.endswith("/") else literal
    rest = text
    # A pattern cannot be normalised as a path, for `**/..` would lose its meaning: only its first steps are taken.
    while rest.startswith(("./", "../")):
        step, _, rest = rest.partition("/")
        if step == ".." and here == home:
            return text
        here = str(Path(here).parent) if step == ".." else here
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
        covering: list[str] = []
        if not isinstance(wanted, Finding):
            # A name that is held means the lease, although its holder waits for more of it.
            if wanted not in held.values() and leave_queue(mine, wanted.text):
                left.append(text)
                continue
            for each, own in held.items():
                if not isinstance(own, Finding) and (covers(own, wanted) or covers(wanted, own)):
                    covering.append(each)
        ids |= dict.fromkeys(covering)
        if not covering:
            fix = "`interlock status` lists who holds what." if held else "There is nothing to release."
            message, expected = "You hold nothing that covers this.", "an id or a pattern of yours"
            place_of_name = f"names[{number}]"
            errors.append(refuse("RSV202", message, place=place_of_name, found=text, expected=expected, fix=fix))
    return list(ids), errors, left


def in_pieces(mine: Reservations, wait_seconds: float, call: Callable[[float], AnswerT]) -> AnswerT:
    """Wait longer than one call may: one that asks again keeps its place, and one that ends early has its answer."""
    clock, most = mine.runtime.monotonic, mine.runtime.settings.max_wait_seconds
    end = clock() + wait_seconds
    while True:
        begun = clock()
        left = max(0.0, end - begun)
        answer = call(min(left, most))
        # A call that ended before its time has its answer; one that used all of it asks again for the rest.
        if not most or left <= most or clock() < begun + most:
            return answer


@contextmanager
def announced_wait(mine: Reservations, names: Sequence[str], wait_seconds: float) -> Generator[None]:
    """Print on stderr who is waited for, and show on a terminal that it goes on."""
    held = mine.check_conflicts(names)["conflicts"] if wait_seconds else []
    if not held:
        yield
        return
    for conflict in held:
        click.echo(f"waiting for {conflict['pattern']}: {holder_words(conflict)}", err=True)
    with talk().status(f"waiting at most {wait_seconds:g} s; Ctrl-C gives up"):
        yield


def read_reservations(root: Path, since_minutes: float) -> tuple[StatusAnswer, str]:
    """Return what `interlock status` shows of the reservations, and who looks; where no store is, none is made."""
    found, me = place.find(str(root)), ""
    held = StatusAnswer(leases=[], waiters=[], negotiations=[])
    # Looking must not make a store: from then on each hook would have to open it.
    if place.is_used(found):
        with calls_of(root) as mine:
            held, me = mine.current_state(since_minutes), mine.caller.name
    if problems := settings.report(found.root).problems:
        held["settings"] = [problem.to_json() for problem in problems]
    return held, me
