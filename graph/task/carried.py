"""The files of runs on their way between machines: one commit for each saved step, in a repository that all reach.

A commit has the files of the tree (`files`), the evidence (`beside`), and every stored tree that the record of the run
names, under its own name: base, snapshots, what was put back. `interlock.run.saved` names the last one; each leg pushes
to a reference of its own, so that a worker that lost the run overwrites nothing. Answers T1.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Final

from interlock.core import git
from interlock.core.database import Database, Leg, database_of, this_leg
from interlock.core.files import write_atomically
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.gates.config import load_config
from interlock.gates.sealed import SealError, Store, place_of
from interlock.graph.engine.folder import journal_of, record_of
from interlock.graph.engine.mirror import SAVED
from interlock.graph.errors import REMOTE, GraphError
from interlock.graph.task.clone import Clone, find, lay_over, make
from interlock.graph.task.kept_evidence import OBJECTS
from interlock.graph.task.policy import Policy
from interlock.graph.task.sealing import place_in
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task
from interlock.graph.task.trees import snapshot, tree_named
from interlock.graph.task.view import RunView

_RUNS: Final = "refs/interlock/runs"
_BASES: Final = "refs/interlock/bases"
_SECONDS: Final = 600.0
SAVING: Final = RLock()
"""Held until the transaction that names a commit is over: of two roles side by side the later commit has both."""


def remote_of(root: Path) -> str:
    """Return the repository that carries files between machines.

    Raises:
        GraphError: `RUN653` none is configured.
    """
    remote = load_config(root).workers.remote
    if not remote:
        message = "the project has a database, and no repository that carries the files of runs"
        fix = 'Make a bare one that all machines reach (`git init --bare PATH`), and write `remote = "…"` in [workers].'
        raise GraphError(message, fix, REMOTE)
    # The trees of runs know no remotes by name.
    named = git.run(root, ("remote", "get-url", remote))
    remote = named.output.decode().strip() if named.status == 0 else remote
    # A path is found from the project, wherever the command is given.
    return remote if ":" in remote else str((root / remote).resolve())


def check_remote(root: Path, database: Database) -> None:
    """Refuse a remote that cannot be read, or that is not the one with the files of the runs of a database.

    Raises:
        GraphError: `RUN653` it is such a one.
    """
    remote = remote_of(root)
    done = git.run(root, ("ls-remote", remote, f"{_RUNS}/*"), timeout_seconds=_SECONDS)
    if done.status != 0:
        raise _unreached(remote, done.why)
    newest = "SELECT run FROM interlock.run WHERE saved <> '' ORDER BY made_at DESC LIMIT 1"
    row = database.read(lambda link: link.execute(newest).fetchone())
    if row and f"{_RUNS}/{row['run']}/".encode() not in done.output:
        raise _unreached(remote, f"it does not have the files of run {row['run']}, so it is not that of the others")


def _unreached(remote: str, why: str) -> GraphError:
    message = f"the repository {remote} of [workers] cannot be used: {why[-300:]}"
    return GraphError(
        message, f"Correct `remote` in [workers], or what git says; then try `git ls-remote {remote}`.", REMOTE
    )


def push_objects(root: Path, names: Sequence[str]) -> None:
    """Put commits or trees of this checkout where every worker finds them.

    Raises:
        GraphError: `RUN653` the remote cannot be written.
    """
    remote = remote_of(root)
    refs = [f"{name}:{_BASES}/{name}" for name in filter(None, names)]
    for last in (False, True):  # of two that push the same at once one is refused, and then finds it there
        done = git.run(root, ("push", "-q", "--no-verify", remote, *refs), timeout_seconds=_SECONDS)
        if done.status == 0:
            return
        if last:
            raise _unreached(remote, done.why)


def fetch_objects(root: Path, names: Sequence[str]) -> None:
    """Get what `push_objects` put there; what is here already is not asked for.

    Raises:
        GraphError: `RUN653` it is not there, or the remote cannot be read.
    """
    absent = [name for name in filter(None, names) if git.run(root, ("cat-file", "-e", name)).status != 0]
    if absent:
        remote = remote_of(root)
        refs = [f"+{_BASES}/{name}:{_BASES}/{name}" for name in absent]
        done = git.run(root, ("fetch", "-q", "--no-tags", remote, *refs), timeout_seconds=_SECONDS)
        if done.status != 0:
            raise _unreached(remote, done.why)


# -- what a leg saves ------------------------------------------------------------------------------------------------


def save(root: Path, run_id: str, task: Task, policy: Policy) -> str:
    """Push the files of a run as they are, and return their commit; empty where this process drives no leg.

    Raises:
        GraphError: `RUN653` the remote cannot be written.
    """
    leg = this_leg()
    if leg is None:
        return ""
    store, record = Store(place_in(root, policy.sealing)[0]), record_of(root)
    trees = {name: name for name in _named(root, run_id, policy)}
    with SAVING:
        files = snapshot(root, task, policy, policy.sealing)
        if not files:
            raise GraphError(f"the files of run {run_id} cannot be read", "Make them readable, and resume.", REMOTE)
        mark = _mark(find(root, policy.tree))
        before = _marked(mark)
        # Whoever has the new commit has the one before, too: until the transaction is over, that one counts.
        commit = store.pack({**trees, "files": files}, record / "artifacts", _evidence(root, run_id, task), before)
        if commit != before:
            if why := store.push(leg.remote, commit, _ref(leg)):
                raise _unreached(leg.remote, why)
            # Before the transaction that names it: should that fail, the files are as here, or are fetched again.
            write_atomically(mark, commit.encode(), durable=False)
    return commit


def save_beside(root: Path, run_id: str, task: Task, policy: Policy) -> None:
    """Save the files of a run before LangGraph keeps the result of a node, others of whose step are still at work.

    Whoever takes the run over takes that result over, too, and finds the evidence that it names.

    Raises:
        GraphError: `RUN653` the remote cannot be written.
        DatabaseError: The database cannot be used.
    """
    with SAVING:
        commit, database = save(root, run_id, task, policy), database_of(root)
        if commit and database is not None:
            database.transact(lambda link: link.execute(SAVED, (commit, run_id)))


def push_stored(root: Path, view: RunView) -> str:
    """Push the stored trees and the evidence of a run that is over, and return their commit.

    Raises:
        GraphError: `RUN653` the remote cannot be written.
    """
    store, policy = Store(place_in(root, view.policy.sealing)[0]), view.policy
    trees = {name: name for name in _named(root, view.run_id, policy) if tree_named(root, policy.sealing, name)}
    files = view.values.get("snapshot") or policy.sealing["frozen"]["base"]
    if files not in trees:
        return ""  # nothing of it is kept any more
    commit = store.pack(
        {**trees, "files": files}, record_of(root) / "artifacts", _evidence(root, view.run_id, view.task)
    )
    remote = remote_of(root)
    if why := store.push(remote, commit, f"{_RUNS}/{view.run_id}/0-moved"):
        raise _unreached(remote, why)
    return commit


def _ref(leg: Leg) -> str:
    return f"{_RUNS}/{leg.run}/{leg.workflow.rpartition('#')[2]}-{leg.token[:8]}"


def _named(root: Path, run_id: str, policy: Policy) -> Iterator[str]:
    """Yield the trees that the record of a run names."""
    if base := policy.sealing.get("frozen", {}).get("base"):
        yield str(base)
    for entry in journal_of(root).entries(run_id):
        for key in ("snapshot", "work"):
            if isinstance(name := entry.data.get(key), str) and name:
                yield name


def _evidence(root: Path, run_id: str, task: Task) -> list[str]:
    """Return the folders of a task's evidence, and the kept copies of what this run collected, below `artifacts`."""
    found = {f"{key}/{task.task_id}": None for key in EVIDENCE_KEYS}
    for entry in journal_of(root).entries(run_id):
        for row in entry.data["files"] if entry.type == "evidence" and "files" in entry.data else ():
            if not isinstance(row, str):  # a list that was too long ends with a text
                found[f"{OBJECTS}/{row['sha256'][:2]}/{row['sha256']}".removeprefix("artifacts/")] = None
    return [*found]


def _mark(clone: Clone) -> Path:
    """Return the file that says which commit has the files of a tree as this machine has them."""
    return clone.folder / "saved"


def _marked(mark: Path) -> str:
    return mark.read_text() if mark.exists() else ""


# -- what a machine gets ---------------------------------------------------------------------------------------------


def saved(root: Path, run_id: str) -> str:
    """Return the commit with the files of a run that the database names; empty for none."""
    database = database_of(root)
    if database is None:
        return ""
    row = database.transact(
        lambda link: link.execute("SELECT saved FROM interlock.run WHERE run = %s", (run_id,)).fetchone()
    )
    return str(row["saved"]) if row else ""


def bring_tree(root: Path, run_id: str) -> Clone:
    """Make the tree of a run on this machine what it was at its last saved step, unless it is; return it.

    Raises:
        GraphError: `RUN653` the files are not to be had, or the tree cannot be made.
    """
    _, policy, _ = RunStore(root, run_id).load()
    commit, clone = saved(root, run_id), None
    with suppress(GraphError):
        clone = find(root, policy.tree)
    if clone is None or _marked(_mark(clone)) != commit:
        bring(root, run_id)
        clone = make(root, policy.commit, called=policy.tree)
        if commit:
            Store(place_of(root)[0]).unpack(commit, "files", clone.files)
            write_atomically(_mark(clone), commit.encode(), durable=False)
    if policy.files and not commit:  # also where whoever began it was killed before they lay there
        fetch_objects(root, [policy.files])
        lay_over(clone, policy.files)
    return clone


def bring(root: Path, run_id: str) -> None:
    """Get the stored trees, the evidence and the first commit of a run that another machine may have driven.

    Raises:
        GraphError: `RUN653` they are not to be had.
    """
    # Also of a run that has saved nothing yet: whoever began it may be gone.
    fetch_objects(root, [RunStore(root, run_id).load()[1].commit])
    commit = saved(root, run_id)
    if not commit:
        return
    store = Store(place_of(root)[0])
    here = store.folder / "brought" / run_id
    if _marked(here) == commit:
        return
    remote = remote_of(root)
    why = store.fetch(remote, f"{_RUNS}/{run_id}/*")
    try:
        store.unpack(commit, "beside", record_of(root) / "artifacts")
    except SealError as error:
        raise _unreached(remote, why or error.message) from error
    here.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(here, commit.encode(), durable=False)


def bring_shown(root: Path, run_id: str) -> None:
    """Get what is shown of a run that another machine drives, as far as it is to be had: the journal has the rest."""
    with suppress(GraphError, SealError):
        bring(root, run_id)
