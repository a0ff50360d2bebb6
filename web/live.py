"""What happens, sent to open pages as it happens: one look at the journals for all, one stream for each browser.

An event says that something changed; the pages fetch anew what they show. It bears the sizes of the journals, as each
page does: so a browser that comes back, to this server or to its successor, knows whether it missed anything.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.graph import journal_path
from interlock.web.access import session_check
from interlock.web.projects import Project, Site

LOOK_SECONDS: Final = 0.05
"""How often a journal is looked at while pages are open: one call of the system."""
COPY_SECONDS: Final = 1.0
"""How often a database is asked what other machines have written."""
KEEP_SECONDS: Final = 15.0
"""So often a silent stream sends a comment, and asks whether its session is still open."""
MAX_STREAMS: Final = 200


class Live:
    """Notifies open pages when the journal of a project grew."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._watchers: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def end(self) -> None:
        """End every stream: the server stops."""
        self._ended = True
        for event in self._watchers:
            event.set()

    async def changes(self) -> AsyncIterator[bool]:
        """Yield True at once and each time that some journal may have grown; False when nothing was heard for long."""
        if len(self._watchers) >= MAX_STREAMS:
            return
        event = asyncio.Event()
        event.set()
        self._watchers.add(event)
        # One look serves all streams, and ends with the last of them.
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            while not self._ended:
                with suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), KEEP_SECONDS)
                # Read and cleared without a pause between them, so no change is lost while the event is sent.
                heard = event.is_set()
                event.clear()
                yield heard
        finally:
            self._watchers.discard(event)

    def now(self) -> str:
        """Return the sizes of all journals, which grow with each line."""
        return ",".join(str(_size(project)) for project in self._site.projects.values())

    async def _look(self) -> None:
        """Look at the journals while anybody waits."""
        seen, shared = "", [project for project in self._site.projects.values() if project.is_shared]
        copied_at = time.monotonic()
        while self._watchers and not self._ended:
            if shared and time.monotonic() - copied_at >= COPY_SECONDS:
                copied_at = time.monotonic()
                for project in shared:
                    await asyncio.to_thread(project.copy)
            now = self.now()
            if now != seen:
                seen = now
                for event in self._watchers:
                    event.set()
            await asyncio.sleep(LOOK_SECONDS)


def _size(project: Project) -> int:
    try:
        return os.stat(journal_path(project.root)).st_size  # noqa: PTH116 - one call, many times
    except OSError:
        return 0


async def events(request: Request) -> Response:
    """Send a browser `changed` events with the sizes of the journals, the first one at once."""
    live: Live = request.app.state.live
    is_open = session_check(request.scope)

    async def body() -> AsyncIterator[str]:
        async for heard in live.changes():
            if not is_open():
                # The empty data is needed: a browser drops an event without a line of it.
                yield "event: ended\ndata:\n\n"
                return
            yield f"event: changed\ndata: {live.now()}\n\n" if heard else ": still here\n\n"

    return StreamingResponse(body(), media_type="text/event-stream")
