"""Several views of one page at once: loaded, used a little, and watched for some seconds, all at the same time.

What is raised is COL303 to COL307, of the first view that is not as it should be.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from interlock.gates.collect.cdp import Connection
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.page import HEIGHTS, MOTIONS, QUIET_SECONDS, Cookie, Motion, Page, Scheme, script

VARIABLE: Final = "INTERLOCK_LOOK_SECONDS"
MIN_SECONDS: Final = 0.1
MAX_SECONDS: Final = 30.0

MAX_SETTLE_SECONDS: Final = 3.0
"""A page that never stops talking to its server is looked at after this long."""

MAX_BETWEEN: Final = 4
"""At so many more widths the engines look at most: in the widest spans of the page's layout that no view shows."""
_NARROWEST: Final = 320.0
_WIDEST: Final = 1920.0

_PAUSE_SECONDS: Final = 0.1
"""How long a page is turned, and how long it is out of sight; less where the look is short."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a page is looked at: how long after it has loaded, and with which preferences, each a view of its own.

    `scheme` and `cookie` are for code alone; no key of a task or of the configuration sets them.
    """

    seconds: float = 3.0
    motions: tuple[Motion, ...] = MOTIONS
    scheme: Scheme = "light"
    cookie: Cookie | None = None

    def chosen(self, environ: Mapping[str, str] = os.environ) -> "Look":
        """Return this look, as long as INTERLOCK_LOOK_SECONDS says where it is set, or raise COL302 for that."""
        wish = environ.get(VARIABLE)
        if wish is None:
            return self
        try:
            seconds = float(wish)
        except ValueError:
            seconds = math.nan
        if not MIN_SECONDS <= seconds <= MAX_SECONDS:
            raise collector_error(
                "COL302",
                f"{VARIABLE} says {wish[:40]!r}, which is no number from {MIN_SECONDS} to {MAX_SECONDS}.",
                "Correct it, or unset it to have `[evidence] look_seconds` of interlock.toml decide.",
            )
        return replace(self, seconds=seconds)


def watch(connection: Connection, pages: Sequence[Page], seconds: float) -> None:
    """Open pages and watch them: each is scrolled through, turned, put out of sight and brought back.

    They are views of one page, watched for at least so many seconds after all have loaded; using them takes most of a
    second.
    """

    def handle(session: str, method: str, params: dict[str, Any]) -> None:
        for page in pages:
            page.handle(session, method, params)

    connection.handler = handle
    connection.waiting_for = f"{pages[0].name} to load"
    for page in pages:
        page.start()
    for page in pages:
        page.arrive()
    connection.wait(lambda: all(page.is_loaded for page in pages))
    if any(page.is_stopped for page in pages):
        # A page that crashed stops loading too, and its end is reported a moment later.
        _pause(connection, QUIET_SECONDS)
    _check(pages)
    until = time.monotonic() + seconds
    connection.waiting_for = f"{pages[0].name} to come to rest"
    _rest(connection, pages)
    _use(connection, pages, min(_PAUSE_SECONDS, seconds / 10))
    _pause(connection, until - time.monotonic())
    _rest(connection, pages)


def between(connection: Connection, page: Page) -> Iterator[int]:
    """Give a view each width between the usual ones at which its style sheets lay it out otherwise, and yield it."""
    found: list[float] = page.evaluate(page.frames()[0], script("breakpoints"))
    for width in widths_between(found):
        page.stretch(width)
        _pause(connection, QUIET_SECONDS)
        _rest(connection, [page])
        yield width


def widths_between(breakpoints: Iterable[float]) -> list[int]:
    """Return a width in each span between two breakpoints (px) that holds no usual width, at most `MAX_BETWEEN`."""
    steps = sorted({_NARROWEST, *(each for each in breakpoints if _NARROWEST < each < _WIDEST), _WIDEST + 1.0})
    spans = [(low, high) for low, high in pairwise(steps) if not any(low <= width < high for width in HEIGHTS)]
    wide = sorted((span for span in spans if span[1] - span[0] >= 2), key=lambda span: span[0] - span[1])
    return sorted(int((low + high) / 2) for low, high in wide[:MAX_BETWEEN])


def _use(connection: Connection, pages: Sequence[Page], pause_seconds: float) -> None:
    """Do with the pages what everybody does, and what their code may wait for."""
    for page, asked in [(page, page.scroll()) for page in pages]:
        page.finish(asked)
    steps: tuple[Callable[[Page], None], ...] = (
        lambda page: page.size(turned=True),
        lambda page: page.size(),
        lambda page: page.show(visible=False),
        lambda page: page.show(visible=True),
    )
    for step in steps:
        for page in pages:
            step(page)
        _pause(connection, pause_seconds)
        _check(pages)


def _rest(connection: Connection, pages: Sequence[Page]) -> None:
    """Wait until no request is open and none was for a while."""
    latest = time.monotonic() + MAX_SETTLE_SECONDS
    active_at = time.monotonic()
    while (now := time.monotonic()) < latest:
        quiet_at = max(active_at, *(page.traffic.active_at for page in pages)) + QUIET_SECONDS
        if now >= quiet_at and not any(page.traffic.is_running for page in pages):
            break
        _pause(connection, min(latest, quiet_at if quiet_at > now else now + QUIET_SECONDS) - now)
    _check(pages)


def _pause(connection: Connection, seconds: float) -> None:
    """Hand on events for a while."""
    connection.wait(lambda: False, time.monotonic() + seconds)


def _check(pages: Sequence[Page]) -> None:
    for page in pages:
        page.check()
