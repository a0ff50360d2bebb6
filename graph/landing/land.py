"""`land`: approved runs onto their branch, with the journal line of each and a new run where one conflicts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from interlock.core.database import database_of
from interlock.core.errors import InterlockError
from interlock.core.text import few
from interlock.gates.config import load_config
from interlock.gates.sealed import place_of
from interlock.graph.engine import legs
from interlock.graph.engine.folder import LANDED, beside_run, journal_of, runs_of
from interlock.graph.errors import GraphError, UnknownRunError
from interlock.graph.landing.lander import Lander, Landing, not_landed
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.sealed_judge import SealedJudge
from interlock.graph.landing.work import Member, member_of
from interlock.graph.task.apart import Start, ask_to_begin, start_apart
from interlock.graph.task.carried import bring, remote_of
from interlock.graph.task.clone import remove_tree
from interlock.graph.task.progress import Notice
from interlock.graph.task.record import bounded
from interlock.graph.task.runs import view_run
from interlock.graph.task.store import RunStore

_MAX_CHARS: Final = 12_000
"""So much of each side's difference is in the note to the builder."""


def land(
    root: Path,
    run_ids: Sequence[str],
    *,
    notice: Notice = lambda _step: None,
    target: str = "",
    batch: int = 0,
    rebuilds: bool = True,
) -> list[Landing]:
    """Land approved runs, and return how that ended. Nothing lands twice, wherever a process was killed.

    `notice` takes what happens: `kind` is `landing`, `runs` a list of ids, `line` the text. `target` and `batch` are by
    default those of `[landing]`. Without `rebuilds` no run that conflicts with what has landed is begun anew.

    Raises:
        UnknownRunError: There is no such run; nothing was done.
        GraphError: `LND701` there is no branch to land on.
        JournalError: A run has landed, and that cannot be written down; the next call does.
    """

    def said(names: Sequence[str], line: str) -> None:
        notice({"kind": "landing", "runs": [*names], "line": line})

    settings = load_config(root).landing
    remote = settings.remote
    if not remote and database_of(root) is not None:
        remote = remote_of(root)  # where other machines find it
    repository = Repository(place_of(root)[0], target or settings.target, remote)
    repository.follow_remote()
    head = repository.head()
    found, members = list[Landing](), dict[str, Member]()
    for run_id in dict.fromkeys(run_ids):
        before = landed_as(root, run_id)
        if repository.has(head, before):
            found.append(Landing((run_id,), "landed", repository.target, before, "before"))
            continue
        try:
            bring(root, run_id)
            members[run_id] = member_of(root, run_id, repository)
        except UnknownRunError:
            raise
        except GraphError as error:
            found.append(not_landed([run_id], repository.target, error))
    lander = Lander(repository, SealedJudge(root, said), batch or settings.batch, said)
    for row in lander.land([*members.values()]):
        said(row.run_ids, row.state)
        if row.state == "landed":
            record_landing(root, row)
        begins = rebuilds and row.state == "conflict"
        found.append(_rebuilt(root, repository, members[row.run_ids[0]], row) if begins else row)
    return found


def landed_as(root: Path, run_id: str) -> str:
    """Return the commit in which a run landed, as the journal says; empty where it did not."""
    lines = [entry for entry in journal_of(root).entries(beside_run(run_id)) if entry.type == LANDED]
    return str(lines[-1].data["commit"]) if lines else ""


def record_landing(root: Path, row: Landing) -> None:
    """Write down where runs have landed, and remove their trees."""
    data: dict[str, Any] = {"commit": row.commit, "target": row.target, "runs": [*row.run_ids]}
    data |= {"judged": row.how, **({"flaky": [*row.flaky]} if row.flaky else {})}
    journal, key = journal_of(root), f"{LANDED}/{row.target}/{row.commit}"
    for run_id in row.run_ids:
        # Of one that had landed before, another process may have written it down already.
        known = landed_as(root, run_id) if row.how == "before" else journal.find(beside_run(run_id), key)
        if not known:
            journal.append(beside_run(run_id), key, LANDED, bounded(data))
        remove_tree(root, RunStore(root, run_id).load()[1].tree)


def _rebuilt(root: Path, repository: Repository, member: Member, row: Landing) -> Landing:
    """Return a conflict with the run that was begun for it."""
    assert member.view is not None
    database, task_id = database_of(root), member.view.task.task_id
    newest = legs.newest_of(database, task_id) if database else runs_of(root, "runs", task_id)[0]
    if newest not in ("", member.run_id) and _goes_on(RunStore(root, newest)):
        taken = _instead(row, f"Run {newest} of the task takes it up: `interlock resume {newest}`.")
        # With a database it is another machine that began it, and whoever waits for the task waits for that run.
        return replace(taken, rebuilt=newest) if database else taken
    # The files of a run in the checkout lie there, for the person who works in it.
    if not member.view.policy.tree:
        return row
    # What it makes anew could not land either.
    if local := repository.changed_there(repository.changes(member.parent, member.work)):
        return _instead(row, f"Commit your changes of {few(local)}, or put them aside, and land again.")
    begin = conflict_of(repository, member, row.files)
    try:
        if database:
            # Not awaited: it may be this worker that begins it.
            left = max(1, legs.landings_left(database, member.run_id) - 1)
            new = ask_to_begin(root, database, member.view.task, begin, land=True, landings=left)
        else:
            new = start_apart(root, member.view.task, begin)
    except InterlockError as error:
        return replace(row, error=error)
    return replace(_instead(row, f"Run {new} of the task takes it up: `interlock resume {new}`."), rebuilt=new)


def _goes_on(store: RunStore) -> bool:
    """Return whether a run is not over, or is going to begin."""
    return store.driven() or (store.exists() and view_run(store.run_id, root=store.root).phase != "done")


def _instead(row: Landing, fix: str) -> Landing:
    """Return a conflict with another fix."""
    assert row.error is not None
    return replace(row, error=GraphError(row.error.message, fix, row.error.code))


def conflict_of(repository: Repository, member: Member, files: Sequence[str]) -> Start:
    """Return how a run that conflicts with the target in these files begins anew.

    That is on the target, with what merges cleanly; its builder is told both sides of the files in conflict.
    """
    head, target = repository.head(), repository.target

    def difference(end: str) -> str:
        words = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", member.parent, end)
        return repository.run(*words, "--", *files).output.decode("utf-8", "replace")[:_MAX_CHARS] or "nothing"

    note = (
        f"Run {member.run_id} of this task was approved, and its work conflicts with what has landed on {target} since."
        f" Your files are those of {target} now, with what merged cleanly. In conflict, and as on {target}: "
        f"{', '.join(files)}.\n\n"
        f"What run {member.run_id} had changed in them:\n\n{difference(member.work)}\n\n"
        f"What {target} has changed in them since:\n\n{difference(head)}"
    )
    merged, _ = repository.merge(repository.tree_of(head), member.work, member.parent)
    as_there = {path: entry for path, entry in repository.changes(merged, head).items() if path in files}
    return Start(head, note, repository.with_files(merged, as_there))
