"""What the pages work with: the projects that they show."""

import re
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from jinja2 import UndefinedError

from interlock import graph
from interlock.core.database import address_of
from interlock.core.errors import InterlockError
from interlock.graph.board import Board
from interlock.graph.feed import Row
from interlock.web.differences import FileDifference
from interlock.web.errors import PageError

_PATIENCE_SECONDS: Final = 1.0
"""So long a request waits, since most that is refused is refused at once."""
_NOT_IN_KEYS: Final = re.compile(r"[^a-z0-9]+")


@contextmanager
def reading(run_id: str) -> Generator[None]:
    """Read values of a run's lines, whose hashes hold but whose data may be of any form.

    Raises:
        PageError: WEB409, they are not what this version writes.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, UndefinedError) as error:
        # It may as well be a defect, and then the place is in the server's output alone.
        traceback.print_exception(error)
        raise PageError(
            "WEB409",
            f"the page cannot be made from the lines of {run_id} in the journal: {type(error).__name__}: {error}",
            "Run `interlock verify`. Where it finds nothing, report this with the output of the server.",
        ) from error


class Project(Board):
    """One project, with the name that it has in addresses."""

    def __init__(self, key: str, root: Path) -> None:
        super().__init__(root)
        self.key = key
        self.changed: dict[str, tuple[int, list[FileDifference]]] = {}
        self._queued: tuple[object, list[graph.Queued]] = None, []
        self._pool = ThreadPoolExecutor()
        self._doing: dict[str, Future[str]] = {}

    @property
    def title(self) -> str:
        """The folder's name."""
        return self.root.name or str(self.root)

    @cached_property
    def is_shared(self) -> bool:
        """Whether other machines work on it, too: it has a database."""
        return bool(address_of(self.root))

    def copy(self) -> None:
        """Copy what other machines have written into the journal; while that cannot be had, pages show what is here."""
        with suppress(InterlockError):
            self.feed.catch_up()

    @cached_property
    def drives(self) -> graph.Drives:
        """The runs that this process drives."""
        return graph.Drives(self.root)

    def do(self, title: str, work: Callable[[], str]) -> str:
        """Do what may take longer than a browser waits, and return the page that it leads to, else the board.

        Raises:
            InterlockError: It was refused at once. What is refused later is `said`.
        """
        doing = self._pool.submit(work)
        try:
            return doing.result(_PATIENCE_SECONDS)
        except TimeoutError:
            self._doing[title] = doing
            return "/board"

    def said(self) -> Iterator[tuple[str, InterlockError | None]]:
        """Yield the title of what goes on, with None, and of what was refused, with the error."""
        for title, doing in self._doing.copy().items():
            error = doing.exception() if doing.done() else None
            if error is not None and not isinstance(error, InterlockError):
                error = PageError("WEB500", f"{error!r} in Interlock", "Please report it.")
            if error is not None or not doing.done():
                yield title, error

    def queue(self) -> list[graph.Queued]:
        """Return what waits to land, in its order.

        It is read anew, which reads the whole journal, once other runs are approved or landed, or a person changed it.
        """
        rows = [row for row in self.feed.newest() if row.kind == "task" and row.state == "APPROVED" and not row.landed]
        changed = self.root / ".interlock" / "landing.json"
        stamp = [(row.run, row.lines) for row in rows], changed.stat().st_mtime_ns if changed.exists() else 0
        if stamp != self._queued[0]:
            self._queued = stamp, graph.queue_of(self.root) if rows else []
        return self._queued[1]

    def row(self, run_id: str) -> Row:
        """Return the row of a task run.

        Raises:
            PageError: WEB404, the journal has no such run.
        """
        found = self.feed.rows.get(run_id)
        if found is None:
            raise PageError("WEB404", f"there is no run {run_id} in {self.title}", "The board lists the runs.")
        graph.bring_shown(self.root, run_id)
        return found


class Site:
    """The projects, by the names that they have in addresses."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self.projects: dict[str, Project] = {}
        for root in roots:
            name = _NOT_IN_KEYS.sub("-", root.name.lower()).strip("-") or "project"
            # Two folders of one name, such as worktrees, are told apart by number.
            key = name if name not in self.projects else f"{name}-{len(self.projects) + 1}"
            self.projects[key] = Project(key, root)

    def refresh(self) -> None:
        """Read what was written to the journals since the last look."""
        for project in self.projects.values():
            project.refresh()

    def project(self, key: str) -> Project:
        """Return a project by its name in addresses, with its rows up to date.

        Raises:
            PageError: WEB404, there is none.
        """
        if key not in self.projects:
            raise PageError("WEB404", f"there is no project `{key}` here", f"There are {', '.join(self.projects)}.")
        found = self.projects[key]
        found.refresh()
        return found
