"""Several views of one page at once: loaded, scrolled through, and watched for some seconds, all at the same time.

What is raised is COL303 to COL305, of the first view that is not as it should be.
"""

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from interlock.gates.collect.cdp import Connection
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.page import QUIET_SECONDS, Cookie, Page, Scheme

VARIABLE: Final = "INTERLOCK_LOOK_SECONDS"
MIN_SECONDS: Final = 0.1
MAX_SECONDS: Final = 30.0

MAX_SETTLE_SECONDS: Final = 3.0
"""A page that never stops talking to its server is looked at after this long."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a page is looked at: how long after it has loaded, in which colours, and as whom.

    `scheme` and `cookie` are for code alone; no key of a task or of the configuration sets them.
    """

    seconds: float = 3.0
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
    """Open views of one page, scroll through each, and watch them for so many seconds after all have loaded."""

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
    _check(pages)
    until = time.monotonic() + seconds
    connection.waiting_for = f"{pages[0].name} to come to rest"
    _rest(connection, pages)
    # The list first: all pages scroll at the same time, and only then is each waited for.
    for page, asked in [(page, page.scroll()) for page in pages]:
        page.finish(asked)
    _pause(connection, until - time.monotonic())
    _rest(connection, pages)


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
