"""A recording of a run: every ask with its answer and the files that changed, one JSON line each.

The first line names the run and lists the files in scope as they were at its start. Each further line holds one ask and
its answer, and the files in scope and in the reports folder that changed since the line above, with their contents:
whoever changed them, for an agent that was killed in the middle leaves changes too. Agents of a recorded run therefore
work one after another, and what changed while one has the ask is that one's.

A file that cannot be put back (a link, a pipe, one above `recording_file.MAX_FILE_BYTES`) is named with the reason in
`left_out`. The values of variables that look like keys are taken out of everything.
"""

import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Any, Self, TypeAlias

from interlock.agents.ask import AgentConfigError, Answer, Ask, RunnerError
from interlock.agents.recording_file import SCHEMA, Row, apply, change_at, is_report, read_recording
from interlock.redaction import Redactor

Listing: TypeAlias = Callable[[str], Mapping[str, str]]
"""Lists the files in scope and those below a reports folder: path to `<mode> <sha256>`, as the tree of a task has it.

Raises `RunnerError` when they cannot be listed.
"""


class AskObserver:
    """What a run reports while its agents work, so that it can be recorded or replayed; this one does nothing."""

    def alone(self, name: str) -> AbstractContextManager[object]:  # noqa: ARG002
        """Let the agent of an ask work, and its answer be judged, at its time: here all at once."""
        return nullcontext()

    def asked(self, ask: Ask) -> None:
        """Take note that an agent is about to be asked; more than once where an answer comes from outside."""

    def answered(self, ask: Ask, answer: Answer) -> None:
        """Take note of an answer, before it is stored."""


class Recording(AskObserver):
    """Writes a recording while a run is driven. Its file has `size_bytes` of whole lines; more is written over."""

    def __init__(
        self, path: Path, size_bytes: int, known: Mapping[str, str], listing: Listing, redactor: Redactor
    ) -> None:
        self._path = path
        self._size_bytes = size_bytes
        self._known = dict(known)
        self._listing = listing
        self._redactor = redactor
        self._touched: dict[str, bool] = {}
        self._lock = Lock()

    @classmethod
    def begin(cls, path: Path, *, run_id: str, root: str, task_id: str, listing: Listing, redactor: Redactor) -> Self:
        """Make the file, readable for this user alone, and write its first line.

        Raises:
            AgentConfigError: It exists, or cannot be made.
            RunnerError: The files cannot be listed.
        """
        files = dict(listing(""))
        head = {"schema": SCHEMA, "run_id": run_id, "root": root, "task_id": task_id, "files": files}
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            os.close(os.open(path, flags, 0o600))
        except FileExistsError as error:
            raise exists(path) from error
        except OSError as error:
            fix = "Name a file in a folder that you may write to."
            raise AgentConfigError(str(path), "", f"the recording cannot be made: {error.strerror}", fix) from error
        made = cls(path, 0, files, listing, redactor)
        made._write(head)
        return made

    @classmethod
    def go_on(cls, path: Path, *, run_id: str, listing: Listing, redactor: Redactor) -> Self:
        """Go on with the recording of a run; half a line at its end is dropped.

        Raises:
            AgentConfigError: There is none, or it is of another run.
        """
        found = read_recording(path)
        if found.run_id != run_id:
            message = f"it is the recording of run {found.run_id}, not of {run_id}"
            raise AgentConfigError(str(path), "line 1", message, "Name the recording that this run began with.")
        known = dict(found.files)
        for row in found.rows:
            apply(known, row.changes)
        return cls(path, found.size_bytes, known, listing, redactor)

    @contextmanager
    def alone(self, name: str) -> Generator[None]:  # noqa: ARG002
        """Let one agent work at a time, so that what changes meanwhile is its own."""
        with self._lock:
            yield

    def asked(self, ask: Ask) -> None:
        """See whether files in scope changed without an agent that the recording knows of."""
        now = self._listing(ask.reports_dir)
        changed = _changed(self._known, now, ask.reports_dir)
        self._touched[ask.name] = any(not is_report(path) for path in changed)

    def answered(self, ask: Ask, answer: Answer) -> None:
        """Write one line.

        Raises:
            RunnerError: It cannot be written, or the files cannot be listed.
        """
        now = self._listing(ask.reports_dir)
        paths = _changed(self._known, now, ask.reports_dir)
        changes = tuple(change_at(ask.root, path, now.get(path, ""), self._redactor) for path in paths)
        row = Row(
            ask.name,
            ask.step,
            ask.tree,
            self._touched.pop(ask.name, False),
            self._redactor.text(ask.system),
            self._redactor.text(ask.prompt),
            answer,
            changes,
        )
        self._write(row.to_json())
        apply(self._known, changes)

    def _write(self, row: Mapping[str, Any]) -> None:
        line = (json.dumps(self._redactor.value(row), ensure_ascii=True) + "\n").encode("ascii")
        try:
            with self._path.open("r+b") as file:
                file.truncate(self._size_bytes)  # a line that could not be written whole would spoil the next
                file.seek(self._size_bytes)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            message = f"the recording {self._path} cannot be written: {error.strerror}"
            raise RunnerError(message, "Free some space, or go on without `--record`.") from error
        self._size_bytes += len(line)


def exists(path: Path) -> AgentConfigError:
    """Return the refusal of a file that is there already."""
    message = "the file exists, and a recording is never written over another file"
    return AgentConfigError(str(path), "", message, "Name a new file, or go on with `interlock resume RUN --record`.")


def _changed(known: Mapping[str, str], now: Mapping[str, str], reports_dir: str) -> list[str]:
    """Return the paths in scope and in one reports folder that differ; other reports folders are of other rounds."""
    seen = (path for path in {*known, *now} if not is_report(path) or path.startswith(f"{reports_dir}/"))
    return sorted(path for path in seen if known.get(path) != now.get(path))
