"""What the pages work with: the projects that they show, and where each of their runs stands at the moment."""

import os
import re
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jinja2 import UndefinedError

from interlock import graph
from interlock.core.errors import InterlockError
from interlock.web.feed import Feed, Row

MAX_VIEWS: Final = 300
"""So many runs that go on are remembered as they stand."""
_NOT_IN_KEYS: Final = re.compile(r"[^a-z0-9]+")


class NotHereError(InterlockError):
    """What an address names is not there; the page says so, with the status 404."""

    code = "WEB404"


class UnreadableLinesError(InterlockError):
    """Lines of a run have a form that no program of this version writes; the page says so, with the status 409."""

    code = "WEB409"


@contextmanager
def reading(run_id: str) -> Generator[None]:
    """Read values of a run's lines, whose hashes hold but whose data may be of any form.

    Raises:
        UnreadableLinesError: They are not what this version writes.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, UndefinedError) as error:
        traceback.print_exception(error)
        raise UnreadableLinesError(
            f"lines of {run_id} in the journal are not of the form that this version writes: {error}",
            "Run `interlock verify`; the page of the journal shows the lines as they are.",
        ) from error


@dataclass(slots=True)
class Project:
    """One project: its root, the name that it has in addresses, and what its journal says.

    `damaged` is why the journal cannot be read, or empty.
    """

    key: str
    root: Path
    feed: Feed
    damaged: str = ""
    _views: dict[str, tuple[tuple[int, ...], graph.RunView]] = field(
        default_factory=dict[str, tuple[tuple[int, ...], graph.RunView]]
    )
    _graphs: Any = field(default_factory=dict[str, Any])
    _drives: graph.Drives | None = None

    @property
    def title(self) -> str:
        """The folder's name."""
        return self.root.name or str(self.root)

    @property
    def drives(self) -> graph.Drives:
        """The runs that this process drives."""
        if self._drives is None:
            self._drives = graph.Drives(self.root)
        return self._drives

    def refresh(self) -> None:
        """Read what was written to the journal since the last look; one that is damaged keeps the rows it has."""
        try:
            self.feed.catch_up()
            self.damaged = ""
        except InterlockError as error:
            self.damaged = f"{error.message} {error.fix}"

    def row(self, run_id: str) -> Row:
        """Return the row of a task run.

        Raises:
            NotHereError: The journal has no such run.
        """
        found = self.feed.rows.get(run_id)
        if found is None:
            raise NotHereError(f"there is no run {run_id} in {self.title}", "The board lists the runs.")
        return found

    def view(self, run_id: str) -> graph.RunView:
        """Return where a task run stands; the same until its files change.

        Raises:
            GraphError: It is not there any more, or cannot be read.
        """
        stamp = _stamp(self.root / ".interlock" / "runs" / run_id)
        known = self._views.get(run_id)
        if known is not None and known[0] == stamp:
            return known[1]
        view = graph.view_run(run_id, root=self.root, graphs=self._graphs)
        self._views.pop(run_id, None)
        self._views[run_id] = stamp, view
        if len(self._views) > MAX_VIEWS:
            self._views.pop(next(iter(self._views)), None)
        return view


def _stamp(folder: Path) -> tuple[int, ...]:
    """Return what differs once something of a run has changed."""
    found: list[int] = []
    for name in ("checkpoints.sqlite", "checkpoints.sqlite-wal", "abandoned", "stopped.json", "answers", ""):
        try:
            seen = os.stat(folder / name)  # noqa: PTH116 - many
        except OSError:
            found += (0, 0)
        else:
            found += (seen.st_mtime_ns, seen.st_size)
    return tuple(found)


class Site:
    """The projects, by the names that they have in addresses."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self.projects: dict[str, Project] = {}
        for root in roots:
            name = _NOT_IN_KEYS.sub("-", root.name.lower()).strip("-") or "project"
            key = name if name not in self.projects else f"{name}-{len(self.projects) + 1}"
            self.projects[key] = Project(key, root, Feed(root))

    def refresh(self) -> None:
        """Read what was written to the journals since the last look."""
        for project in self.projects.values():
            project.refresh()

    def project(self, key: str) -> Project:
        """Return a project by its name in addresses, with its rows up to date.

        Raises:
            NotHereError: There is none.
        """
        if key not in self.projects:
            raise NotHereError(f"there is no project `{key}` here", f"There are {', '.join(self.projects)}.")
        found = self.projects[key]
        found.refresh()
        return found
