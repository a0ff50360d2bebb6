"""`land`: approved runs onto their branch, with the journal line of each and a new run where one conflicts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from interlock.core.text import few
from interlock.gates.config import load_config
from interlock.gates.sealed import place_of
from interlock.graph.engine.folder import beside_run, journal_path
from interlock.graph.errors import GraphError, UnknownRunError
from interlock.graph.landing.lander import Lander, Landing
from interlock.graph.landing.queue import LANDED, landed_of
from interlock.graph.landing.rebuild import conflict_of, rebuild
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.sealed_judge import SealedJudge
from interlock.graph.landing.work import Approved, Member, approved, member_of
from interlock.graph.task.progress import Notice
from interlock.graph.task.record import bounded
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
                landing = Landing((run_id,), "landed", before.commit, message="it has landed before")
                found.append(replace(landing, target=repository.target))
                _record(root, repository, found[-1])
                continue
            runs[run_id] = approved(root, run_id)
            members.append(member_of(root, runs[run_id], repository))
        except UnknownRunError:
            raise
        except GraphError as error:
            refused = Landing((run_id,), "refused", message=error.message, fix=error.fix, code=error.code)
            found.append(replace(refused, target=repository.target))
    lander = Lander(
        repository,
        SealedJudge(root, runs, said),
        batch or settings.batch,
        said,
        lambda landing: _record(root, repository, landing),
    )
    for landing in lander.land(members):
        said(landing.run_ids, landing.state + (f": {landing.message}" if landing.message else ""))
        ended = landing
        if landing.state == "conflict":
            member = next(each for each in members if each.run_id in landing.run_ids)
            run = runs[member.run_id]
            ended = _rebuilt(root, repository, run, member, landing, begins=rebuilds and bool(run.policy.tree))
        found.append(ended)
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


def _rebuilt(
    root: Path, repository: Repository, run: Approved, member: Member, landing: Landing, *, begins: bool
) -> Landing:
    """Return a conflict with what changed the files on the other side, and with the run that was begun for it."""
    conflict = conflict_of(repository, run, member, landing.files)
    landing = replace(landing, message=f"{landing.message}; changed there by {few(conflict.others)}")
    if not begins:
        return landing
    try:
        new = rebuild(root, run, conflict)
    except GraphError as error:
        return replace(landing, message=f"{landing.message}; no new run: {error.message}", fix=error.fix)
    return replace(landing, rebuilt=new, fix=f"Run {new} does it anew: `interlock resume {new}`.")
