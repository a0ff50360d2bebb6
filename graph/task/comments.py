"""Comments of people on lines of the work, given to who acts on them.

Each is a line `comment` of the journal. It does not move the run, and whoever drives the run owns the lines under its
name; so comments have a chain of their own, `RUN/beside`, in which the number of a comment is its key. A repeated
comment is the first one.

Where a person is asked for the review, they put the comments into it. Otherwise they go to the build role with its next
assignment, once: the journal line of that dispatch has the number of the last one, so that a dispatch that is repeated
after a crash gives the same ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from interlock.agents.ask import REMOTE
from interlock.core.text import one_line
from interlock.graph.engine.folder import beside_run, journal_of
from interlock.graph.errors import COMMENT as REFUSED
from interlock.graph.errors import GraphError
from interlock.graph.task.context import TaskContext
from interlock.graph.task.policy import Policy, key_variables
from interlock.graph.task.questions import MAX_CHARS
from interlock.graph.task.store import RunStore
from interlock.journal import JournalError
from interlock.redaction import redactor_for

COMMENT: Final = "comment"
"""The type of the journal line of a comment, and how its key begins."""

FIX: Final = "Correct the comment, and send it again."


@dataclass(frozen=True, slots=True)
class Comment:
    """What a person wrote about a line.

    Args:
        number: From 1 within the run.
        attempt: The hand-over that they looked at; 0 is the base.
        path: The file, relative to the root.
        line: The line, from 1; 0 is the file as a whole.
        text: One line of text, without keys.
        by: The login name of who wrote it.
        at: When, in UTC.
    """

    number: int
    attempt: int
    path: str
    line: int
    text: str
    by: str
    at: str

    @property
    def remark(self) -> str:
        """The comment as the reason of a gate holds it: `path:line text`."""
        return f"{self.path}{f':{self.line}' if self.line else ''} {self.text}"


def keep_comment(root: Path, run_id: str, attempt: int, path: str, line: int, text: str, by: str) -> Comment:
    """Keep a comment of a run that goes on; see `runs.comment`.

    Raises:
        UnknownRunError, RunDamagedError: See `graph.errors`.
        GraphError: The comment cannot be kept as it is.
        JournalError: The journal cannot be written.
    """
    _, policy, _ = RunStore(root, run_id).load()
    redactor = redactor_for(root, key_variables(policy))
    text, by = one_line(redactor.text(text)), one_line(redactor.text(by))
    if redactor.name_of_key(path) is not None or path.startswith("/") or not path.isprintable() or line < 0:
        raise GraphError("a comment is on a relative path without keys, and on a line from 0", FIX, REFUSED)
    if not all(0 < len(value) <= MAX_CHARS for value in (path, text, by)):
        raise GraphError(f"path, text and name of a comment each have 1 to {MAX_CHARS} characters", FIX, REFUSED)
    data: dict[str, Any] = {"attempt": attempt, "path": path, "line": line, "text": text, "by": by}
    while True:
        known = comments(root, run_id)
        for row in known:
            if (row.attempt, row.path, row.line, row.text, row.by) == (attempt, path, line, text, by):
                return row
        # The key is the number, so that two who comment at once cannot both take it: the second one tries the next.
        number = len(known) + 1
        try:
            entry = journal_of(root).append(beside_run(run_id), f"{COMMENT}/{number}", COMMENT, data)
        except JournalError as error:
            if error.code != "JRN731":  # another one took this number at the same moment
                raise
        else:
            return Comment(number, at=entry.at, **data)


def comments(root: Path, run_id: str) -> tuple[Comment, ...]:
    """Return the comments on a run, in their order.

    Raises:
        JournalError: The journal cannot be read.
    """
    lines = journal_of(root).entries(beside_run(run_id))
    # The chain beside a run also has the line that `interlock prune` leaves.
    rows = [entry for entry in lines if entry.type == COMMENT]
    return tuple(Comment(number, at=entry.at, **entry.data) for number, entry in enumerate(rows, 1))


def comments_go_to(policy: Policy) -> Literal["review", "build"]:
    """Return who gets the comments on a run: the person who reviews it, or the build role with its next assignment.

    A review role that no person answers for passes on what it finds itself, so that comments go to the build role too.
    """
    remote = {name for name, row in policy.agents.items() if row.settings.get("runner") == REMOTE.value}
    return "review" if any(role.name in remote for role in policy.protocol.of_kind("review")) else "build"


def to_give(context: TaskContext, store: RunStore) -> dict[str, int]:
    """Return what the journal line of a dispatch says of comments: the number of the last, if new ones go with it."""
    reviews = context.policy.protocol.of_kind("review")
    if any(context.runners.get(role.name) is REMOTE for role in reviews):
        return {}
    known = comments(store.root, store.run_id)
    given = max((row.get("comments", 0) for row in _dispatches(store)), default=0)
    return {"comments": len(known)} if len(known) > given else {}


def given_now(store: RunStore) -> tuple[str, ...]:
    """Return the comments that go with the present dispatch of a build role, as lines of its assignment."""
    # The dispatch before this one says up to which comment was given. A dispatch with no new ones has no number at all.
    *before, now = [0, *(row.get("comments", 0) for row in _dispatches(store))]
    return tuple(_as_text(row) for row in comments(store.root, store.run_id)[max(before, default=0) : now])


def _dispatches(store: RunStore) -> Iterator[Mapping[str, Any]]:
    """Yield the data of the journal lines by which a build role was dispatched."""
    for entry in journal_of(store.root).entries(store.run_id):
        if entry.type == "status" and entry.data.get("to") == "IN_PROGRESS":
            yield entry.data


def _as_text(row: Comment) -> str:
    return f"{row.by} on attempt {row.attempt or 'none: the files before any work'}: {row.remark}"
