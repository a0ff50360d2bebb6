"""`land`: approved runs onto their branch, with the journal line of each and a new run where one conflicts."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from interlock.core.errors import InterlockError
from interlock.core.text import few
from interlock.gates.config import load_config
from interlock.gates.sealed import place_of
from interlock.graph.engine.folder import beside_run, journal_path, runs_of
from interlock.graph.errors import GraphError, UnknownRunError
from interlock.graph.landing.lander import Lander, Landing, refused
from interlock.graph.landing.queue import LANDED, landed_of
from interlock.graph.landing.rebuild import conflict_of, rebuild
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.sealed_judge import SealedJudge
from interlock.graph.landing.work import Approved, Member, approved, member_of
from interlock.graph.task.clone import remove_tree
from interlock.graph.task.progress import Notice
from interlock.graph.task.record import bounded
from interlock.graph.task.runs import view_run
from interlock.graph.task.store import RunStore
from interlock.journal import Journal


def land(
    root: Path,
    run_ids: Sequence[str],
    *,
    notice: Notice = lambda _step: None,
    target: str = "",
    batch: int = 0,
    rebuilds: bool = True,
) -> list[Landing]:
    """Land approved runs, in this order. Safe to repeat: nothing lands twice, wherever a process was killed.

    Args:
        root: The project's root.
        run_ids: The runs.
        notice: Takes what happens: `kind` is `landing`, `runs` a list of ids, `line` the text.
        target: The branch; by default that of `[landing]`, else the one that is checked out.
        batch: How many runs are judged together at most; by default that of `[landing]`.
        rebuilds: Whether a run in a tree of its own that conflicts with what has landed is begun anew.

    Returns:
        How it ended, in the order in which it did.

    Raises:
        UnknownRunError: There is no such run; nothing was done.
        GraphError: `LND701` there is no branch to land on.
        JournalError: A run has landed, and that cannot be written down; the next call does.
    """
    settings, runs = load_config(root).landing, dict[str, Approved]()

    def said(names: Sequence[str], line: str) -> None:
        notice({"kind": "landing", "runs": [*names], "line": line})

    repository = Repository(place_of(root)[0], target or settings.target, settings.remote, lambda line: said((), line))
    repository.follow_remote()
    repository.head()
    found, members = list[Landing](), list[Member]()
    for run_id in dict.fromkeys(run_ids):
        try:
            before = landed_of(root, run_id)
            if before is not None and repository.has(before.commit):
                found.append(Landing((run_id,), "landed", before.commit, repository.target, how="before"))
                _record(root, repository, found[-1])
                continue
            runs[run_id] = approved(root, run_id)
            members.append(member_of(root, runs[run_id], repository))
        except UnknownRunError:
            raise
        except GraphError as error:
            found.append(replace(refused([run_id], error), target=repository.target))
    judge, of_run = SealedJudge(root, runs, said), {member.run_id: member for member in members}
    lander = Lander(repository, judge, batch or settings.batch, said, partial(_record, root, repository))
    for landing in lander.land(members):
        said(landing.run_ids, landing.state)
        if landing.state == "conflict":
            member = of_run[landing.run_ids[0]]
            landing = _rebuilt(root, repository, runs[member.run_id], member, landing, begins=rebuilds)  # noqa: PLW2901
        found.append(landing)
    return found


def _record(root: Path, repository: Repository, landing: Landing) -> None:
    """Write down where runs have landed; what a process did not come to write is written by the next one."""
    data: dict[str, Any] = {"commit": landing.commit, "target": landing.target, "runs": [*landing.run_ids]}
    data |= {"judged": landing.how} if landing.how else {}
    data |= {"flaky": [*landing.flaky]} if landing.flaky else {}
    for run_id in landing.run_ids:
        journal, key = Journal(journal_path(root)), f"{LANDED}/{landing.target}/{landing.commit}"
        if journal.find(beside_run(run_id), key) is None:
            journal.append(beside_run(run_id), key, LANDED, bounded(data))
        repository.forget_work(run_id)
        remove_tree(root, RunStore(root, run_id).load()[1].tree)


def _rebuilt(
    root: Path, repository: Repository, run: Approved, member: Member, landing: Landing, *, begins: bool
) -> Landing:
    """Return a conflict with what changed the files on the other side, and with the run that was begun for it."""
    conflict, finding = conflict_of(repository, run, member, landing.files), landing.finding
    assert finding is not None
    finding = finding._replace(message=f"{finding.message}, by {few(conflict.others)}")
    later = takewhile(lambda each: each != run.run_id, runs_of(root, "runs", run.task.task_id))
    if at_work := [each for each in later if view_run(each, root=root).phase != "done"]:
        fix = f"Run {at_work[0]} of the task takes it up: `interlock resume {at_work[0]}`."
        return replace(landing, finding=finding._replace(fix=fix))
    # The files of a run in the checkout lie there, for the person who works in it.
    if not begins or not run.policy.tree:
        return replace(landing, finding=finding)
    try:
        new = rebuild(root, run, conflict)
    except InterlockError as error:
        return replace(landing, finding=finding._replace(message=f"{finding.message}; {error.message}", fix=error.fix))
    fix = f"Run {new} of the task takes it up: `interlock resume {new}`."
    return replace(landing, rebuilt=new, finding=finding._replace(fix=fix))
