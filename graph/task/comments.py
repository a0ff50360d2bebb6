"""Comments of people on lines of the work: kept beside the run, and given to who acts on them.

Each is a file in the run's folder, written first, and then a line `comment` of the journal. The line does not move the
run, and whoever drives the run owns the lines under its name; so comments have a chain of their own, `RUN/beside`. The
number of a comment is its key in that chain: what was cut off between the two is completed by the next call, and a
repeated comment is the first one.

Where a person is asked for the review, they put the comments into it. Otherwise they go to the build role with its next
assignment, once: the journal line of that dispatch names them, so that a dispatch that is repeated after a crash gives
the same ones.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, cast

from interlock.agents.ask import REMOTE
from interlock.core.files import write_atomically
from interlock.core.finding import Finding
from interlock.core.locks import locked
from interlock.core.text import one_line
from interlock.graph.engine.folder import beside_run, journal_path
from interlock.graph.errors import CommentError, RunDamagedError
from interlock.graph.task.context import TaskContext
from interlock.graph.task.policy import Policy, key_variables
from interlock.graph.task.store import RunStore
from interlock.journal import Journal, JournalDamaged
from interlock.redaction import redactor_for

COMMENT: Final = "comment"
"""The type of the journal line of a comment, and how its key begins."""
MAX_TEXT_CHARS: Final = 1000
MAX_PATH_CHARS: Final = 300
MAX_NAME_CHARS: Final = 100
MAX_LINE: Final = 10_000_000
MAX_COMMENTS: Final = 500
"""How many a run may have."""
MAX_GIVEN: Final = 40
"""How many go with one assignment; the next one has more."""
MAX_GIVEN_BYTES: Final = 5 * 1024 // 2

_FOLDER: Final = "comments"
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
    """Keep a comment of a run that goes on; see `persons.comment`.

    Raises:
        UnknownRunError, RunDamagedError: See `graph.errors`.
        CommentError: The run is over, or the comment cannot be kept as it is.
        JournalError: The journal cannot be written.
    """
    store = RunStore(root, run_id)
    _, policy, _ = store.load()
    redactor = redactor_for(root, key_variables(policy))
    if redactor.name_of_key(path) is not None:
        raise CommentError("the path holds the value of a key", FIX)
    text, by = one_line(redactor.text(text)), one_line(redactor.text(by))
    _check(path, line, text, by)
    with (store.folder / "comments.lock").open("ab") as file, locked(file):
        known = _kept(store)
        same = [row for row in known if (row.attempt, row.path, row.line, row.text, row.by) ==
                (attempt, path, line, text, by)]  # fmt: skip
        if not same and len(known) >= MAX_COMMENTS:
            message = f"run {run_id} has {len(known)} comments, and no run keeps more"
            raise CommentError(message, "Say the rest in one text: in the review, or in the task of a new run.")
        if not same:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            row = Comment((known[-1].number if known else 0) + 1, attempt, path, line, text, by, at)
            name = store.folder / _FOLDER / f"{row.number}.json"
            try:
                write_atomically(name, json.dumps(asdict(row)).encode("ascii"))
            except OSError as error:
                raise RunDamagedError(f"{name} cannot be stored: {error.strerror}", "Free space, and retry.") from error
            same, known = [row], [*known, row]
        _record(store, known)
    return same[0]


def comments(root: Path, run_id: str) -> tuple[Comment, ...]:
    """Return the comments on a run, in their order; those that cannot be read back are passed over.

    Raises:
        UnknownRunError: The run id is not a legal name.
    """
    return tuple(_kept(RunStore(root, run_id)))


def comments_go_to(policy: Policy) -> Literal["review", "build"]:
    """Return who gets the comments on a run: the person who reviews it, or the build role with its next assignment.

    A review role that no person answers for passes on what it finds itself, so that comments go to the build role too.
    """
    remote = {name for name, row in policy.agents.items() if row.settings.get("runner") == REMOTE.value}
    return "review" if any(role.name in remote for role in policy.protocol.of_kind("review")) else "build"


def to_give(context: TaskContext, store: RunStore) -> dict[str, list[int]]:
    """Return what the journal line of a dispatch says of comments: the numbers of those that go with it, if any do."""
    if not (store.folder / _FOLDER).exists() or not _for_build(context):
        return {}
    with (store.folder / "comments.lock").open("ab") as file, locked(file):
        known = _kept(store)
        _record(store, known)
    given = {number for row in _dispatches(store) for number in row.get("comments", ())}
    chosen: list[int] = []
    space_left = MAX_GIVEN_BYTES
    for row in known:
        size = len(_as_text(row).encode("utf-8", "backslashreplace")) + 1
        if row.number in given:
            continue
        if len(chosen) == MAX_GIVEN or (chosen and size > space_left):
            break
        space_left -= size
        chosen.append(row.number)
    return {"comments": chosen} if chosen else {}


def given_now(store: RunStore) -> tuple[str, ...]:
    """Return the comments that go with the present dispatch of a build role, as lines of its assignment."""
    if not (store.folder / _FOLDER).exists():
        return ()
    rows = list(_dispatches(store))
    numbers = set(rows[-1].get("comments", ())) if rows else set[int]()
    return tuple(_as_text(row) for row in _kept(store) if row.number in numbers)


def comment_problems(root: Path, run_id: str) -> Iterator[Finding]:
    """Yield each comment of a run that is not in the journal as the run keeps it.

    The line of the last one may be missing: the process that wrote it was cut off, and the next comment completes it.
    """
    store = RunStore(root, run_id)
    known = _kept(store)
    if not known:
        return
    try:
        lines = {row.data.get("number"): row.data for row in Journal(journal_path(root)).entries(beside_run(run_id))}
    except JournalDamaged:
        return
    place = f".interlock/runs/{run_id}/{_FOLDER}"
    for row in known:
        found = lines.get(row.number)
        if (found is None and row is not known[-1]) or (found is not None and found != asdict(row)):
            yield Finding(
                RunDamagedError.code,
                "error",
                run_id,
                f"comment {row.number} is not in the journal as the run keeps it",
                "no line" if found is None else "another line",
                "a line `comment` with the same values",
                "Restore the run's folder and the journal from copies of one time.",
                path=f"{place}/{row.number}.json",
            )


def _check(path: str, line: int, text: str, by: str) -> None:
    if not 0 < len(path) <= MAX_PATH_CHARS or not path.isprintable() or path.startswith("/"):
        raise CommentError("the path is not a relative path of printable characters", FIX)
    if not 0 <= line <= MAX_LINE:
        raise CommentError(f"there is no line {line}", FIX)
    for name, value, limit in (("text", text, MAX_TEXT_CHARS), ("name", by, MAX_NAME_CHARS)):
        if not 0 < len(value) <= limit:
            raise CommentError(f"the {name} has {len(value)} characters; it must have 1 to {limit}", FIX)


def _record(store: RunStore, rows: list[Comment]) -> None:
    """Write the journal line of each comment that has none yet."""
    journal, name = Journal(journal_path(store.root)), beside_run(store.run_id)
    # An existing line is not compared: a key that is set only now would be taken out of what was kept before.
    new = [row for row in rows if journal.find(name, f"{COMMENT}/{row.number}") is None]
    journal.extend(name, [(f"{COMMENT}/{row.number}", COMMENT, asdict(row)) for row in new])


def _kept(store: RunStore) -> list[Comment]:
    found: list[Comment] = []
    for path in (store.folder / _FOLDER).glob("*.json"):
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            row = Comment(**cast("dict[str, Any]", json.loads(path.read_bytes())))
            kinds = {"number": int, "attempt": int, "line": int}
            if all(type(value) is kinds.get(name, str) for name, value in asdict(row).items()):
                _check(row.path, row.line, row.text, row.by)
                found.append(row)
    return sorted(found, key=lambda row: row.number)


def _for_build(context: TaskContext) -> bool:
    reviews = context.policy.protocol.of_kind("review")
    return not any(context.runners.get(role.name) is REMOTE for role in reviews)


def _dispatches(store: RunStore) -> Iterator[Mapping[str, Any]]:
    """Yield the data of the journal lines by which a build role was dispatched."""
    for entry in Journal(journal_path(store.root)).entries(store.run_id):
        if entry.type == "status" and entry.data.get("to") == "IN_PROGRESS":
            yield entry.data


def _as_text(row: Comment) -> str:
    return f"{row.by} on attempt {row.attempt or 'none: the files before any work'}: {row.remark}"
