"""What lands of a run: the commit of its work, made in the checkout's repository from the stored trees.

Git of the checkout makes it, with an index of its own and a folder that has the changed files alone, so that filters,
line ends and large files are as in any other commit of the person. No checkout and no index of anybody is touched. Its
time is that of the approval, so that making it again gives the same name.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from interlock.envelope.protocol import GateSpec
from interlock.gates.config import load_config
from interlock.gates.sealed import Base, Seal, place_of
from interlock.graph.engine.folder import journal_path
from interlock.graph.errors import BRANCH, UNLANDABLE, GraphError
from interlock.graph.landing.repository import Repository
from interlock.graph.task.explain import waived_by
from interlock.graph.task.policy import Policy
from interlock.graph.task.runs import view_run
from interlock.graph.task.sealing import sealed_gates
from interlock.graph.task.task import Task
from interlock.graph.task.trees import changed_in_scope, tree_named
from interlock.journal import Head, Journal

_LINK, _PROGRAM = "120000", "100755"


@dataclass(frozen=True)
class Approved:
    """An approved run, as far as landing needs it.

    Args:
        task: Its task, as a person corrected it last.
        work: The tree that was approved.
        paths: The files of the scope in which it differs from what the run began with, relative to the root.
        base: The name of the tree that the run began with.
        head: The end of the run in the journal.
        at: When it was approved.
        agents: `AGENT:MODEL` of each agent that answered.
        gates: The sealed gates that judged it; one that a person waived did not.
    """

    run_id: str
    task: Task
    policy: Policy
    work: Base
    paths: tuple[str, ...]
    base: str
    head: Head
    at: str
    agents: tuple[str, ...]
    gates: tuple[tuple[GateSpec, Seal], ...]


class Member(NamedTuple):
    """What lands together with others: the work commit of a run, the commit that it is on, and what it says.

    One that is `alone` cannot be judged together with others.
    """

    run_id: str
    work: str
    parent: str
    subject: str
    trailers: tuple[str, ...] = ()
    alone: bool = False

    @property
    def message(self) -> str:
        """The message of its commit."""
        return message_of(self.subject, self.trailers)


def message_of(text: str, trailers: tuple[str, ...]) -> str:
    """Return the message of a commit."""
    return "\n".join([text, "", *trailers, ""]) if trailers else f"{text}\n"


def approved(root: Path, run_id: str) -> Approved:
    """Return an approved run.

    Raises:
        UnknownRunError, RunDamagedError: See `graph.errors`.
        GraphError: `LND702` it is not approved, did not begin from a commit, or its files are not kept any more.
    """
    view = view_run(run_id, root=root)
    if view.status != "APPROVED" or view.phase != "done" or view.abandoned or view.head is None:
        status = "abandoned" if view.abandoned else view.status or "not started"
        raise GraphError(f"run {run_id} is {status}", f"See `interlock explain {run_id}`.", UNLANDABLE)
    again = "Start a new run of the task: `interlock run TASK.toml`."
    if not view.policy.commit:
        raise GraphError(f"run {run_id} did not begin from a commit of git", again, UNLANDABLE)
    sealing: Mapping[str, Any] = view.values["sealing"]
    base = str(sealing.get("frozen", {}).get("base", ""))
    work = tree_named(root, sealing, str(view.values.get("snapshot", "")))
    if work is None or tree_named(root, sealing, base) is None:
        raise GraphError(f"the approved files of run {run_id} are not kept any more", again, UNLANDABLE)
    paths = changed_in_scope(root, view.task, sealing, (base, work.tree))
    waived = waived_by(view)
    gates = [(gate, view.policy.seals[gate.id]) for gate in sealed_gates(view.task, view.policy)]
    entries = [*Journal(journal_path(root)).entries(run_id)]
    return Approved(
        run_id,
        view.task,
        view.policy,
        work,
        tuple(paths),
        base,
        view.head,
        next(entry.at for entry in reversed(entries) if entry.type == "status"),
        tuple(dict.fromkeys(_agents(view.policy, [entry.data for entry in entries if entry.type == "answer"]))),
        tuple(row for row in gates if row[0].id not in waived),
    )


def _agents(policy: Policy, answers: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield `AGENT:MODEL` for the answers of agents: the program or the provider, and the model that it names."""
    for answer in answers:
        row = policy.agents.get(answer["role"])
        # Who answers from outside is a client that is not known, or a person.
        if row is None or row.settings.get("runner", "remote") == "remote":
            continue
        settings = row.settings
        provider, _, model = str(settings.get("model", "")).rpartition(":")
        program = Path(str(next(iter(settings.get("argv", ())), ""))).name
        agent = settings.get("preset") or program or provider or answer["role"]
        yield ":".join(filter(None, (str(agent), str(answer.get("model") or model))))


def member_of(root: Path, run: Approved, repository: Repository) -> Member:
    """Make the work commit of a run, and keep it until the run has landed."""
    settings, text = load_config(root).landing, {"task_id": run.task.task_id, "task": run.task.task, "run": run.run_id}
    subject = settings.message
    for name, value in text.items():
        subject = subject.replace(f"{{{name}}}", value)
    head = f"Interlock-Run: {run.run_id}:{run.head.seq}:{run.head.hash}"
    trailers = (head, *(f"Assisted-by: {agent}" for agent in run.agents)) if settings.trailers else ()
    parent = run.policy.commit
    tree = _tree(run, repository)
    kept = repository.works().get(run.run_id, "")
    # One that is kept has landed, perhaps, by a process that was killed; with another message it would be another one.
    if not kept or repository.name("show", "-s", "--format=%T %P", kept) != f"{tree} {parent}":
        seconds = int(datetime.fromisoformat(run.at).timestamp())
        kept = repository.commit(tree, (parent,), message_of(subject, trailers), f"@{seconds} +0000")
        repository.keep_work(run.run_id, kept)
    return Member(run.run_id, kept, parent, subject, trailers, alone=not run.gates)


def _tree(run: Approved, repository: Repository) -> str:
    """Return the tree of the commit that a run began from with the files that the run changed."""
    rows = {run.work.inside(path): run.work.files.get(run.work.inside(path)) for path in run.paths}
    git_folder = repository.name("rev-parse", "--absolute-git-dir")
    with TemporaryDirectory(prefix="interlock-") as name:
        files = Path(name, "files")
        files.mkdir()
        for path, entry in rows.items():
            if entry is None:
                continue
            place, content = files / path, run.work.store.content(entry.oid)
            place.parent.mkdir(parents=True, exist_ok=True)
            if entry.mode == _LINK:
                place.symlink_to(os.fsdecode(content))
                continue
            place.write_bytes(content)
            place.chmod(0o755 if entry.mode == _PROGRAM else 0o644)
        also = {"GIT_DIR": git_folder, "GIT_WORK_TREE": os.fspath(files), "GIT_INDEX_FILE": f"{name}/index"}
        repository.ask("read-tree", run.policy.commit, also=also)
        repository.stage(also["GIT_INDEX_FILE"], {path: None for path, entry in rows.items() if entry is None})
        data = b"".join(os.fsencode(path) + b"\0" for path, entry in rows.items() if entry is not None)
        # What the file system or a watcher of the checkout says of files is no statement about this folder.
        plain = ("-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.fsmonitor=false")
        plain += ("-c", "core.safecrlf=false", "-c", "core.untrackedCache=false")
        repository.ask(*plain, "update-index", "--add", "-z", "--stdin", at=files, data=data, also=also)
        return repository.name("write-tree", also=also)


def commit_run(root: Path, run_id: str, branch: str = "") -> str:
    """Make the work commit of an approved run, set a branch to it, and return its name.

    Args:
        root: The project's root.
        run_id: The run.
        branch: The branch; `interlock/RUN` by default.

    Raises:
        GraphError: `LND702` the run has no such commit, `LND708` the branch has other commits, `LND707` git refused.
    """
    run = approved(root, run_id)
    repository = Repository(place_of(root)[0])
    made, name = member_of(root, run, repository).work, branch or f"interlock/{run_id}"
    done = repository.run("branch", "--no-track", name, made)
    there = repository.run("rev-parse", "--verify", "--quiet", f"refs/heads/{name}").output.decode().strip()
    if done.status != 0 and there != made:
        fix = f"Name another branch: `interlock commit {run_id} --branch NAME`."
        raise GraphError(f"the branch {name} cannot be made: {done.why[-300:]}", fix, BRANCH)
    return made
