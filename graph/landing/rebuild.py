"""A conflict goes back to the builder: a new run of the task on the present target, which knows both sides."""

from pathlib import Path
from typing import Final, NamedTuple

from interlock.graph.landing.repository import Repository
from interlock.graph.landing.work import Approved, Member
from interlock.graph.task.apart import Start, start_apart

_MAX_CHARS: Final = 12_000
"""So much of each side's difference is in the note to the builder."""
_MAX_COMMITS: Final = 20


class Conflict(NamedTuple):
    """What a run conflicted with.

    Args:
        head: The commit of the target that it conflicts with.
        others: The runs, or else the commits, that changed the files in conflict on the other side.
        note: What the builder of the new run is told.
        files: A tree of the target with what merged cleanly; the files in conflict are as on the target.
    """

    head: str
    others: tuple[str, ...]
    note: str
    files: str


def conflict_of(repository: Repository, run: Approved, member: Member, files: tuple[str, ...]) -> Conflict:
    """Return what a run conflicts with, in these files."""
    head = repository.head()
    form = "%h %s%x00%(trailers:key=Interlock-Run,valueonly,separator=%x20)%x01"
    log = ("log", f"--max-count={_MAX_COMMITS}", f"--format={form}")
    lines = repository.ask(*log, "--no-merges", f"{member.parent}..{head}", "--", *files).decode("utf-8", "replace")
    others = list[str]()
    for line in filter(None, (each.strip() for each in lines.split("\x01"))):
        commit, _, runs = line.partition("\x00")
        # A trailer is RUN:SEQ:HASH.
        others.append(f"run {runs.split(':')[0]}" if runs else f"commit {commit}")
    others = [*dict.fromkeys(others)]
    own, theirs = (_difference(repository, member.parent, end, files) for end in (member.work, head))
    note = (
        f"Run {run.run_id} of this task was approved, and its work conflicts with what has landed on "
        f"{repository.target} since, by {', '.join(others) or 'others'}. Your files are those of {repository.target} "
        f"now, with what merged cleanly. In conflict, and as on {repository.target}: {', '.join(files)}.\n\n"
        f"What run {run.run_id} had changed in them:\n\n{own}\n\n"
        f"What {repository.target} has changed in them since:\n\n{theirs}"
    )
    merged = repository.merge(head, member.work).tree
    back = {path: entry for path, entry in repository.changes(merged, head).items() if path in files}
    return Conflict(head, tuple(others), note, repository.with_files(merged, back))


def _difference(repository: Repository, old: str, new: str, files: tuple[str, ...]) -> str:
    words = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", old, new, "--", *files)
    return repository.ask(*words).decode("utf-8", "replace")[:_MAX_CHARS] or "nothing"


def rebuild(root: Path, run: Approved, conflict: Conflict) -> str:
    """Begin a new run of a task on the present target, in a tree of its own, and return its id.

    Raises:
        InterlockError: It cannot begin.
    """
    return start_apart(root, run.task, Start(conflict.head, conflict.note, conflict.files))
