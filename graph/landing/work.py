"""What lands of a run: the commit of its work, made in the checkout's repository from the stored trees.

Git of the checkout makes it, with an index of its own, so that filters, line ends and large files are as in any other
commit of the person. No checkout and no index of anybody is touched. Its time is that of the approval, so that making
it again gives the same name: git says whether it has landed.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.gates.config import load_config
from interlock.gates.sealed import Base, place_of
from interlock.graph.errors import BRANCH, UNLANDABLE, GraphError
from interlock.graph.landing.repository import Repository
from interlock.graph.task.policy import Policy
from interlock.graph.task.runs import RunView, view_run
from interlock.graph.task.store import RunStore
from interlock.graph.task.trees import changed_in_scope, tree_named

_LINK: Final = "120000"


class Member(NamedTuple):
    """What lands, perhaps together with others: the work commit of a run.

    Args:
        work: The commit.
        parent: The commit that it is on.
        subject: Its first line.
        trailers: Its last lines.
        view: The run, for a judge that goes by its gates.
    """

    run_id: str
    work: str
    parent: str
    subject: str
    trailers: tuple[str, ...] = ()
    view: RunView | None = None


def message_of(text: str, trailers: Sequence[str]) -> str:
    """Return the message of a commit."""
    return "\n".join([text, "", *trailers, ""]) if trailers else f"{text}\n"


def member_of(root: Path, run_id: str, repository: Repository) -> Member:
    """Make the work commit of an approved run: the commit that it began from, with the files of the scope it changed.

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
    paths = [work.inside(path) for path in changed_in_scope(root, view.task, sealing, (base, work.tree))]
    settings, entries = load_config(root).landing, RunStore(root, run_id).lines(view.head)
    subject = settings.message
    for name, value in {"task_id": view.task.task_id, "task": view.task.task, "run": run_id}.items():
        subject = subject.replace(f"{{{name}}}", value)
    trailers = [f"Interlock-Run: {run_id}:{view.head.seq}:{view.head.hash}"]
    answers = [entry.data for entry in entries if entry.type == "answer"]
    trailers += dict.fromkeys(f"Assisted-by: {agent}" for agent in _agents(view.policy, answers))
    trailers = trailers if settings.trailers else []
    approved_at = next(entry.at for entry in reversed(entries) if entry.type == "status")
    made = repository.commit(
        _tree(repository, view.policy.commit, work, paths),
        (view.policy.commit,),
        message_of(subject, trailers),
        f"@{int(datetime.fromisoformat(approved_at).timestamp())} +0000",
    )
    return Member(run_id, made, view.policy.commit, subject, tuple(trailers), view)


def _agents(policy: Policy, answers: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield `AGENT:MODEL` for the answers of agents: the program or the provider, and the model that it names."""
    for answer in answers:
        row = policy.agents.get(answer["role"])
        # Who answers from outside is a client that is not known, or a person.
        if row is None or row.settings.get("runner", "remote") == "remote":
            continue
        settings = row.settings
        provider, _, model = str(settings.get("model", "")).rpartition(":")
        kind, _, line = str(settings["runner"]).partition(":")
        argv = line.split() if kind == "acp" else settings.get("argv", ())
        program = Path(str(next(iter(argv), ""))).name
        agent = settings.get("preset") or program or provider or answer["role"]
        yield ":".join(filter(None, (str(agent), str(answer.get("model") or model))))


def _tree(repository: Repository, commit: str, work: Base, paths: Sequence[str]) -> str:
    """Return the tree of a commit with some files as they are in a stored tree, taken in by the checkout's filters."""
    rows = dict.fromkeys(paths, f"000000 {'0' * len(commit)}")
    for path in paths:
        if (entry := work.files.get(path)) is not None:
            filters = "--no-filters" if entry.mode == _LINK else f"--path={path}"
            words = ("-c", "core.safecrlf=false", "hash-object", "-w", "--stdin", filters)
            rows[path] = f"{entry.mode} {repository.ask(*words, data=work.store.content(entry.oid))}"
    return repository.with_files(commit, rows)


def commit_run(root: Path, run_id: str) -> str:
    """Make the work commit of an approved run, set the branch `interlock/RUN` to it, and return its name.

    Raises:
        GraphError: `LND702` the run has no such commit, `LND708` the branch has other commits, `LND707` git refused.
    """
    repository, name = Repository(place_of(root)[0]), f"interlock/{run_id}"
    made = member_of(root, run_id, repository).work
    done = repository.run("branch", "--no-track", name, made)
    if done.status != 0 and repository.answer("rev-parse", "--verify", "--quiet", f"refs/heads/{name}") != made:
        fix = f"Give the branch that is there another name: `git branch -m {name} NAME`."
        raise GraphError(f"the branch {name} cannot be made: {done.why[-300:]}", fix, BRANCH)
    return made
