"""A pull request for the approved work of a task: opened, brought up to date, followed, and written down at its merge.

Git pushes, and `gh` asks GitHub (`graph.sources.github`). A pull request belongs to a task and has one branch. What was
done is a line `pull_request` beside a run: which commit was pushed for it, which remarks were passed on. GitHub is
looked at first and the line is written last, so that a kill in between is made up for by the next call: a branch that
has the commit takes no other one, and a pull request that is there is found by its branch.

The commit of a rework follows the one that was pushed before, so that nothing is ever forced, and has the tree that its
run was APPROVED with. What owners, members and collaborators of the repository write on a pull request counts; it is
quoted to the builder and is never an instruction of ours. Answers T1.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal

from interlock.agents.quoting import bounded
from interlock.core import git
from interlock.core.errors import InterlockError
from interlock.core.text import one_line
from interlock.gates.config import load_config
from interlock.gates.sealed import place_of
from interlock.graph.engine.folder import HeadRecord, beside_run, journal_of, runs_of
from interlock.graph.errors import GIT, PR_BRANCH, PR_STATE, GraphError
from interlock.graph.landing.land import record_landing
from interlock.graph.landing.lander import Landing
from interlock.graph.landing.queue import hold
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.work import Member, commit_run, member_of
from interlock.graph.sources import github
from interlock.graph.sources.ticket import fetch, source_of
from interlock.graph.sources.write_back import fenced, write_back
from interlock.graph.task.apart import Start, start_apart
from interlock.graph.task.explain import explain_run
from interlock.graph.task.record import bounded as bounded_line
from interlock.graph.task.runs import view_run
from interlock.graph.task.ticket_inputs import tickets_of
from interlock.graph.task.view import RunView

PULL_REQUEST: Final = "pull_request"
_HEARD: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Whose remarks count, as GitHub says in what relation they stand to the repository."""
_VERDICTS: Final = frozenset({"APPROVED", "CHANGES_REQUESTED", "DISMISSED"})
_GOOD: Final = frozenset({"success", "neutral", "skipped"})
_MAX_BODY_BYTES: Final = 60_000
_MAX_NOTE_BYTES: Final = 4000
"""A note that has more takes no further remark; with one, and the checks, it is quoted whole to the builder."""
_MAX_REMARK_BYTES: Final = 1500
_MAX_FAILED: Final = 10

CheckState = Literal["passed", "pending", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the head of a pull request."""

    name: str
    state: CheckState
    link: str


@dataclass(frozen=True, slots=True)
class Remark:
    """What somebody wrote on a pull request.

    Args:
        id: What GitHub knows it by, with its kind before it.
        objects: Whether it asks for changes.
        text: Who says what of which place, in one line.
    """

    id: str
    objects: bool
    text: str


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Where a pull request is.

    Args:
        run_id: The run whose work it has.
        number: Its number.
        url: Its address.
        state: As GitHub has it.
        commit: The commit that was pushed last.
        did: What this call did: `opened`, `pushed` or nothing.
        others: The head of the branch, where it has commits of others.
        checks: The checks of its head.
        remarks: What owners, members and collaborators wrote, and no rework has had yet.
        goes_on: The run that goes on with the task.
        unheard: How many remarks are of others.
        landed: The commit that it was merged as.
        differs: The files of the work that are not there as they were approved.
    """

    run_id: str
    number: int
    url: str
    state: Literal["open", "closed", "merged"]
    commit: str
    did: str = ""
    others: str = ""
    checks: tuple[Check, ...] = ()
    remarks: tuple[Remark, ...] = ()
    goes_on: str = ""
    unheard: int = 0
    landed: str = ""
    differs: tuple[str, ...] = ()

    @property
    def objections(self) -> tuple[str, ...]:
        """What keeps it from being merged: reviews that ask for changes, and checks that failed."""
        reviews = [remark.text for remark in self.remarks if remark.objects]
        return (*reviews, *(f"the check {check.name} failed" for check in self.checks if check.state == "failed"))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "objections": self.objections}


def follow_pull(root: Path, run_id: str) -> PullRequest:
    """Open the pull request of an approved run, or bring it and what is known of it up to date. Safe to repeat.

    Raises:
        GraphError: `SRC101` to `SRC104` of gh and GitHub, `LND702` the run has no approved work, `PRQ101` the branch
            has other commits, `LND707` git refused.
    """
    github.check_program(root)
    view, settings = view_run(run_id, root=root), load_config(root).landing
    remote = settings.remote or "origin"
    repository = Repository(place_of(root)[0])
    # The lines that say which pull request a task has; others say what a rework was given.
    lines = [row for row in _lines(root, view.task.task_id) if row["did"] in ("opened", "pushed")]
    if not lines:
        last, row = _opened(root, view, repository, remote, settings.target)
        return _followed(root, view, repository, last, row, did="opened")
    last = lines[-1]
    row = github.ask(root, f"pulls/{last['number']}")
    # Work of a run that began before the one whose work is there is not pushed over it.
    later = takewhile(lambda run: run != last["run"], runs_of(root, "runs", view.task.task_id))
    if run_id not in later or view.status != "APPROVED" or view.phase != "done" or view.abandoned:
        return _followed(root, view, repository, last, row, did="")
    # One that is over stays that of its run; later work of the task gets a new one.
    if row["state"] == "closed":
        last, row = _opened(root, view, repository, remote, settings.target)
        return _followed(root, view, repository, last, row, did="opened")
    last = _pushed(root, view, repository, remote, last)
    return _followed(root, view, repository, last, row, did="pushed")


def _followed(
    root: Path, view: RunView, repository: Repository, last: Mapping[str, Any], row: Mapping[str, Any], *, did: str
) -> PullRequest:
    """Return where a pull request is, and do what follows from it."""
    # What was pushed just now, GitHub may not say yet.
    head = str(last["commit"] if did else row["head"]["sha"])
    pull = PullRequest(
        str(last["run"]),
        int(last["number"]),
        str(last["url"]),
        "merged" if row.get("merged") else "closed" if row["state"] == "closed" else "open",
        str(last["commit"]),
        did,
        others="" if head == last["commit"] else head,
    )
    if pull.state == "merged":
        return _merged(root, repository, str(last["remote"]), row, pull)
    if pull.state == "closed":
        return pull
    remarks, unheard = _remarks(root, view.task.task_id, pull.number)
    pull = replace(pull, checks=tuple(_checks(root, head)), remarks=tuple(remarks), unheard=unheard)
    newest = runs_of(root, "runs", view.task.task_id)[0]
    if newest != pull.run_id and view_run(newest, root=root).phase != "done":
        pull = replace(pull, goes_on=newest)
    if any(remark.objects for remark in remarks):
        with suppress(GraphError):  # it does not wait in the queue
            hold(root, pull.run_id, on=True)
    return pull


def rework_pull(root: Path, pull: PullRequest) -> str:
    """Begin a run that takes up the remarks on a pull request, with its work in a tree of its own, and return its id.

    Raises:
        GraphError: `PRQ102` there is nothing to take up; or the run cannot begin.
    """
    if pull.goes_on:
        fix = f"Go on with it: `interlock resume {pull.goes_on}`."
        raise GraphError(f"run {pull.goes_on} takes up pull request {pull.number} already", fix, PR_STATE)
    if pull.state != "open" or not (pull.remarks or pull.objections):
        fix = "Write a review there, and ask again."
        raise GraphError(f"pull request {pull.number} is {pull.state} and has no new remarks", fix, PR_STATE)
    repository = Repository(place_of(root)[0])
    member = member_of(root, pull.run_id, repository)
    assert member.view is not None
    note = f"Your files are the work of run {pull.run_id}, which was approved: {pull.url}. Said of it there:\n"
    failed = [f"the check {each.name} failed: {each.link}" for each in pull.checks if each.state == "failed"]
    note += "".join(f"- {words}\n" for words in failed[:_MAX_FAILED])
    brought: list[str] = []
    for remark in pull.remarks:
        # What does not fit is left for the next rework.
        if len(note.encode()) > _MAX_NOTE_BYTES:
            break
        note += f"- {bounded(remark.text, _MAX_REMARK_BYTES)}\n"
        brought.append(remark.id)
    run_id = start_apart(root, member.view.task, Start(member.parent, note, repository.tree_of(member.work)))
    _line(root, run_id, {"did": "rework", "number": pull.number, "commit": pull.commit, "brought": brought})
    return run_id


# -- what is pushed ----------------------------------------------------------------------------------------------------


def _opened(
    root: Path, view: RunView, repository: Repository, remote: str, target: str
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Push the branch of a run and open its pull request, unless that is done; return both rows."""
    member = member_of(root, view.run_id, repository)
    base = target or str(github.ask(root, "")["default_branch"])
    _check_base(repository, remote, base, member)
    commit, branch = commit_run(root, view.run_id), f"interlock/{view.run_id}"
    _push(repository, remote, branch, commit)
    address = repository.answer("remote", "get-url", remote)
    owner = re.search(r"([^/:]+)/[^/]+/?$", address)
    head = f"{owner[1]}:{branch}" if owner else branch
    found = [row for row in github.rows(root, f"pulls?state=open&head={head}") if row["head"]["sha"] == commit]
    if not found:
        body = {"title": member.subject[:250], "head": head, "base": base, "body": _body(root, view)}
        found = [github.ask(root, "pulls", method="POST", body=body)]
    row = found[0]
    last = {"did": "opened", "run": view.run_id, "number": row["number"], "url": row["html_url"], "branch": branch}
    return _line(root, view.run_id, {**last, "commit": commit, "base": base, "remote": remote}), row


def _pushed(root: Path, view: RunView, repository: Repository, remote: str, last: Mapping[str, Any]) -> dict[str, Any]:
    """Push the work of another run of the task onto the branch of its pull request."""
    member, before = member_of(root, view.run_id, repository), str(last["commit"])
    # What the run began with is above it, where that is not what the work before began with.
    parents = (before,) if repository.has(before, member.parent) else (before, member.parent)
    at = repository.ask("show", "-s", "--format=%ct", member.work)
    message = "\n".join([member.subject, "", *member.trailers, ""])
    commit = repository.commit(repository.tree_of(member.work), parents, message, f"@{at} +0000")
    _push(repository, remote, str(last["branch"]), commit)
    github.ask(root, f"pulls/{last['number']}", method="PATCH", body={"body": _body(root, view)})
    return _line(root, view.run_id, {**last, "did": "pushed", "run": view.run_id, "commit": commit})


def _check_base(repository: Repository, remote: str, base: str, member: Member) -> None:
    """Refuse a pull request that would hold commits which are not of the run."""
    there = f"refs/remotes/{remote}/{base}"
    repository.ask("fetch", "-q", "--no-tags", remote, f"+refs/heads/{base}:{there}")
    if not repository.has(there, member.parent):
        message = f"run {member.run_id} began from {member.parent[:12]}, which {base} on {remote} does not have"
        raise GraphError(message, f"Push it first: `git push {remote} {base}`.", PR_BRANCH)


def _push(repository: Repository, remote: str, branch: str, commit: str) -> None:
    # Hooks of the person are for this, too. Never by force.
    done = git.run(repository.top, ("push", "-q", remote, f"{commit}:refs/heads/{branch}"), timeout_seconds=600)
    if done.status == 0:
        return
    if "non-fast-forward" in done.why or "fetch first" in done.why:
        message = f"the branch {branch} has commits of others on {remote}"
        fix = (
            f"Look at them: `git fetch {remote} {branch}`; merge by hand, or close the pull request and open a new one."
        )
        raise GraphError(message, fix, PR_BRANCH)
    fix = "Correct what it names; `gh auth setup-git` lets git use the login of gh."
    raise GraphError(f"{remote} refused the push: {done.why[-300:]}", fix, GIT)


def _body(root: Path, view: RunView) -> str:
    """Return the text of a pull request: how the work was judged, and what was asked for; agents' words are quoted."""
    assert view.head is not None
    attempt, tree = view.values["attempt"], view.values["tree"]
    lines = [f"Interlock run `{view.run_id}` was APPROVED in attempt {attempt}, on the files `{tree}`.", ""]
    lines += ["| gate | judged by | |", "| --- | --- | --- |"]
    for row in explain_run(view, root)["gates"]:
        end = f"waived by {row['waived_by']}" if "waived_by" in row else "passed" if row["passed"] else "missing"
        lines.append(f"| {row['gate']} | {row['certified_by']} | {end} |")
    lines += ["", f"Head of its journal: `{view.run_id}:{view.head.seq}:{view.head.hash}`"]
    started = next(entry.data for entry in journal_of(root).entries(view.run_id))
    for ticket in started.get("tickets", ()):
        lines += ["", *_ticket_lines(root, ticket)]
    lines += ["", "The task:", "", fenced(view.task.task)]
    for role, answer in view.values.get("answers", {}).items():
        if answer["output"]:
            lines += ["", f"What {role} reported, which decided nothing:", "", fenced(answer["output"])]
    return bounded("\n".join(lines), _MAX_BODY_BYTES)


def _ticket_lines(root: Path, ticket: Mapping[str, Any]) -> Iterator[str]:
    """Yield which ticket a run was given, and whether it is another one now."""
    name = f"{ticket['source']}:{ticket['id']}"
    yield f"Ticket `{name}` as it was at {ticket['at']}, `sha256:{ticket['sha256']}`."
    try:
        if fetch(root, name).sha256 != ticket["sha256"]:
            yield "It has changed since."
    except InterlockError as error:
        yield f"Whether it has changed since cannot be seen ({error.code})."
    known = source_of(root, name)
    if known is not None and known[1].gh and known[1].write_back:
        yield f"Closes {known[1].repo}#{ticket['id']}"


# -- what was done -----------------------------------------------------------------------------------------------------


def _lines(root: Path, task_id: str) -> list[Mapping[str, Any]]:
    """Return the lines about pull requests of a task, the oldest first."""
    journal = journal_of(root)
    entries = [each for run in runs_of(root, "runs", task_id) for each in journal.entries(beside_run(run))]
    return [each.data for each in sorted(entries, key=lambda each: each.at) if each.type == PULL_REQUEST]


def _line(root: Path, run_id: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Write a line beside a run, once, and return its data."""
    key = f"{PULL_REQUEST}/{data['number']}/{data['did']}/{data['commit']}"
    journal_of(root).append(beside_run(run_id), key, PULL_REQUEST, bounded_line(dict(data)))
    return dict(data)


# -- what others say ---------------------------------------------------------------------------------------------------


def _remarks(root: Path, task_id: str, number: int) -> tuple[list[Remark], int]:
    """Return what owners, members and collaborators said and nobody was given yet, and how much others said.

    Of the reviews of a person that approve or ask for changes, the last one counts.
    """
    brought = {each for row in _lines(root, task_id) for each in row.get("brought", ())}
    reviews = github.rows(root, f"pulls/{number}/reviews")
    verdicts = {row["user"]["login"]: row["id"] for row in reviews if row["state"] in _VERDICTS and row.get("user")}
    found: list[Remark] = []
    unheard = 0
    lists = {
        "review": [row for row in reviews if row["state"] != "PENDING"],
        "line": github.rows(root, f"pulls/{number}/comments"),
        "comment": github.rows(root, f"issues/{number}/comments"),
    }
    for kind, rows in lists.items():
        for row in rows:
            name, text = f"{kind}/{row['id']}", str(row.get("body") or "")
            by = str(row["user"]["login"] if row.get("user") else "somebody who is gone")
            objects = row.get("state") == "CHANGES_REQUESTED" and verdicts.get(by) == row["id"]
            if name in brought or not (text.strip() or objects):
                continue
            if row.get("author_association") not in _HEARD:
                unheard += 1
                continue
            line = row.get("line") or row.get("original_line")
            where = f" on {row['path']}:{line or '?'}" if row.get("path") else ""
            says = f"{by}{where}{' asks for changes' if objects else ''}: {text or '(no words)'}"
            found.append(Remark(name, objects, one_line(says)))
    return found, unheard


def _checks(root: Path, commit: str) -> Iterator[Check]:
    """Yield the checks of a commit, and the statuses that older services give it."""
    for row in github.rows(root, f"commits/{commit}/check-runs", key="check_runs"):
        end = row["conclusion"] if row["status"] == "completed" else "pending"
        yield _check(row["name"], end, row.get("html_url"))
    for row in github.rows(root, f"commits/{commit}/status", key="statuses"):
        yield _check(row["context"], row["state"], row.get("target_url"))


def _check(name: str, end: str, link: str | None) -> Check:
    state: CheckState = "pending" if end == "pending" else "passed" if end in _GOOD else "failed"
    return Check(one_line(name), state, one_line(link or ""))


def _merged(root: Path, repository: Repository, remote: str, row: Mapping[str, Any], pull: PullRequest) -> PullRequest:
    """Write down that the work of a run has landed, remove its tree, and say so on its tickets."""
    commit, target = str(row["merge_commit_sha"]), str(row["base"]["ref"])
    repository.ask("fetch", "-q", "--no-tags", remote, f"+refs/heads/{target}:refs/remotes/{remote}/{target}")
    if not repository.has(f"refs/remotes/{remote}/{target}", commit):
        message = f"GitHub says that {commit[:12]} is on {target}, and {remote} does not have it there"
        raise GraphError(message, "Look at the pull request; give the command again later.", GIT)
    member = member_of(root, pull.run_id, repository)
    assert member.view is not None
    assert member.view.head is not None
    work, there = repository.changes(member.parent, member.work), repository.changes(member.work, commit)
    record_landing(root, Landing((pull.run_id,), "landed", target, commit, "pull request"))
    head = HeadRecord(seq=member.view.head.seq, hash=member.view.head.hash)
    write_back(root, pull.run_id, tickets_of(root, member.view.task), "merged", head, link=pull.url)
    return replace(pull, landed=commit, differs=tuple(sorted({*work} & {*there})))
