"""What happens, sent to open pages as it happens: one look at the journals for all, one stream for each browser.

An event says which runs have new lines; the pages fetch anew what they show. Its id is the position in the journals
behind those lines, so that a browser that comes back, to this server or to its successor, learns what it missed.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.core.errors import InterlockError
from interlock.graph import journal_path
from interlock.web.access import session_check
from interlock.web.pages import site_of
from interlock.web.projects import Project, Site

LOOK_SECONDS: Final = 0.05
"""How often a journal is looked at while pages are open: one call of the system."""
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
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            while not self._ended:
                with suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), KEEP_SECONDS)
                heard = event.is_set()
                event.clear()
                yield heard
        finally:
            self._watchers.discard(event)

    async def _look(self) -> None:
        """Look at the journals while anybody waits."""
        sizes = dict.fromkeys(self._site.projects, -1)
        while self._watchers and not self._ended:
            for key, project in self._site.projects.items():
                try:
                    size = os.stat(journal_path(project.root)).st_size  # noqa: PTH116 - one call, many times
                except OSError:
                    size = 0
                if size != sizes[key]:
                    sizes[key] = size
                    for event in self._watchers:
                        event.set()
            await asyncio.sleep(LOOK_SECONDS)


def message(data: object, *, name: str = "", position: str = "") -> str:
    """Return one server-sent event; the data is JSON on one line."""
    head = (f"id: {position}\n" if position else "") + (f"event: {name}\n" if name else "")
    return f"{head}data: {json.dumps(data, ensure_ascii=True)}\n\n"


def positions(text: str) -> dict[str, int]:
    """Read the id of an event, `KEY:POSITION` by commas; what cannot be read is passed over."""
    found: dict[str, int] = {}
    for part in text[:2000].split(","):
        key, _, number = part.rpartition(":")
        if key and number.isdecimal() and len(number) < 19:
            found[key] = int(number)
    return found


async def events(request: Request) -> Response:
    """Send a browser `changed` events, with `project` and `runs`, for what came behind the position in `after`."""
    site, live, is_open = site_of(request), request.app.state.live, session_check(request.scope)
    after = positions(request.headers.get("last-event-id") or request.query_params.get("after", ""))

    async def body() -> AsyncIterator[str]:
        at = {key: after.get(key, -1) for key in site.projects}
        yield ": hello\n\n"
        async for heard in live.changes():
            if not is_open():
                yield message({}, name="ended")
                return
            if not heard:
                yield ": still here\n\n"
            for key, project in site.projects.items():
                changed, at[key] = await asyncio.to_thread(_since, project, at[key])
                if changed:
                    place = ",".join(f"{name}:{number}" for name, number in at.items() if number >= 0)
                    yield message({"project": key, "runs": changed}, name="changed", position=place)

    return StreamingResponse(body(), media_type="text/event-stream")


def _since(project: Project, position: int) -> tuple[list[str], int]:
    """Return the runs with lines behind a position of the journal, and where it ends; nothing for the first look."""
    journal = project.feed.journal
    if position < 0:
        project.refresh()
        return [], project.feed.position
    runs: dict[str, None] = {}
    try:
        for end, entry in journal.follow(position):
            runs[entry.run] = None
            position = end
    except InterlockError:
        project.refresh()
        return ["?"], project.feed.position
    return list(runs), position
