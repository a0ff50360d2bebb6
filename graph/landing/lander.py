"""The order in which approved work lands: merge, judge, move the target; batches, bisection, and what is flaky.

Nothing here knows how a tree is judged: a `Judge` is given, so that the same order serves any judge.

What must never happen: the target is at a commit whose tree was not judged; a commit is judged against anything but what
has landed; a failure is taken back without a word.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from interlock.core.errors import InterlockError
from interlock.core.text import count, few
from interlock.graph.errors import CONFLICT, GIT, RED, UNJUDGED, UNLANDABLE
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.work import Member, message_of

_TRIES: Final = 5
"""So often the target may move while a tree is judged."""
_BISECTED_TO: Final = 4
"""A red batch of at most so many is tried one by one."""


class Verdict(NamedTuple):
    """What judging a merged tree came to.

    Args:
        ok: Whether it may land.
        tests: The tests that fail, or the gates where tests are not known one by one.
        message: Why not.
        unjudged: Files that differ from the target and that no gate took from the work: another run says the same.
        how: `again`, `kept` from an earlier judgement of the same trees, or `run`: it is the tree that the run judged.
    """

    ok: bool
    tests: tuple[str, ...] = ()
    message: str = ""
    unjudged: tuple[str, ...] = ()
    how: Literal["again", "kept", "run"] = "again"


class Merge(NamedTuple):
    """A merged tree to be judged: the commit that would land, where the target is, and whose work it is."""

    head: str
    commit: str
    members: tuple[Member, ...]


Judge: TypeAlias = Callable[[Merge], Verdict]
"""Judges a merged tree.

Raises:
    InterlockError: It cannot be judged; what is wrong is no fault of the work.
"""


@dataclass(frozen=True)
class Landing:
    """How landing ended for some runs, which are one commit where they landed together.

    Args:
        state: `landed`, `conflict` with what has landed, `red` when the gates do not pass, or `refused`.
        commit: The commit of the target that has them.
        target: The branch.
        files: The files that conflict, or that no gate judged.
        tests: The tests that fail on the merged tree.
        flaky: The tests that failed once and passed on the same tree then.
        message: What is to be said of it.
        fix: What to do.
        code: The code of a refusal.
        how: How it was judged; see `Verdict`.
        rebuilt: The run that was begun because of a conflict.
    """

    run_ids: tuple[str, ...]
    state: Literal["landed", "conflict", "red", "refused"]
    commit: str = ""
    target: str = ""
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    message: str = ""
    fix: str = ""
    code: str = ""
    how: str = ""
    rebuilt: str = ""


@dataclass
class _Group:
    """Members merged in order on the target: the last commit, and those that did not get so far."""

    head: str
    commit: str = ""
    tree: str = ""
    members: list[Member] = field(default_factory=list[Member])
    ended: list[Landing] = field(default_factory=list[Landing])
    later: list[Member] = field(default_factory=list[Member])


@dataclass
class Lander:
    """Lands members on the target of a repository.

    Args:
        judge: Judges each merged tree.
        batch: How many members are judged together at most.
        notice: Takes the ids of runs and a line about what happens to them.
        record: Takes each landing as soon as the target has it, before anything else happens.
    """

    repository: Repository
    judge: Judge
    batch: int = 1
    notice: Callable[[Sequence[str], str], object] = lambda _runs, _line: None
    record: Callable[[Landing], object] = lambda _landing: None

    def land(self, members: Sequence[Member]) -> Iterator[Landing]:
        """Land members in their order, and yield how it ended for each or for those that landed together."""
        waiting = [*members]
        while waiting:
            group = [waiting.pop(0)]
            while waiting and len(group) < self.batch and not (group[0].alone or waiting[0].alone):
                group.append(waiting.pop(0))
            later = list[Member]()
            yield from self._land(group, frozenset(), (), later)
            # Those that conflict with others of their group alone: what became of these is known now.
            waiting[:0] = later

    def _land(
        self, group: Sequence[Member], failed: frozenset[str], doubtful: tuple[str, ...], later: list[Member]
    ) -> Iterator[Landing]:
        """Land a group.

        Args:
            group: The members.
            failed: The tests that failed on a batch with these members.
            doubtful: The same, if all others of that batch have landed: if these land too, its tree has passed.
            later: Takes the members that conflict with others of the group.
        """
        for _ in range(_TRIES):
            ended, refusal, moved = list[Landing](), None, False
            merge, verdict, flaky = None, Verdict(ok=False), tuple[str, ...]()
            try:
                self.repository.follow_remote()
                made = self._merged(group)
                ended, group = made.ended, made.members
                later += made.later
                if group:
                    merge = Merge(made.head, made.commit, tuple(group))
                    verdict, flaky = self._judged(merge, failed)
                    moved = verdict.ok and self.repository.advance(merge.commit, merge.head)
            except InterlockError as error:
                refusal = error
            yield from map(self._said, ended)
            runs = tuple(member.run_id for member in group)
            if refusal is not None:
                text, fix, code = refusal.message, refusal.fix, refusal.code
                yield self._said(Landing(runs, "refused", message=text, fix=fix, code=code))
            elif merge is None:
                return
            elif moved:
                flaky = flaky or doubtful
                yield self._said(Landing(runs, "landed", commit=merge.commit, flaky=flaky, how=verdict.how))
            elif not verdict.ok and len(group) > 1:
                yield from self._split(group, verdict, later)
            elif not verdict.ok:
                yield self._said(self._red(group[0], verdict))
            else:
                self.notice(runs, f"{self.repository.target} moved meanwhile; it is merged and judged again")
                continue
            return
        text, fix = f"{self.repository.target} moved {_TRIES} times", "Land again when nobody else moves it."
        yield self._said(Landing(tuple(row.run_id for row in group), "refused", message=text, fix=fix, code=GIT))

    def _merged(self, group: Sequence[Member]) -> _Group:
        """Merge members one after another; the commit has the target and all of their commits as parents."""
        repository = self.repository
        head = repository.head()
        made = _Group(head, head, repository.tree_of(head))
        for member in group:
            run = (member.run_id,)
            common = repository.common(head, member.work)
            if common == member.work:
                brought = repository.bringer_of(member.work)
                made.ended.append(Landing(run, "landed", commit=brought, message="it has landed before"))
                continue
            # Else the merge would bring commits that are none of the run's work.
            if common != member.parent:
                text = f"it began from commit {member.parent[:12]}, which {repository.target} does not have"
                fix = (
                    f"Take its work over by hand: `interlock commit {run[0]}` and `git cherry-pick interlock/{run[0]}`."
                )
                made.ended.append(Landing(run, "refused", message=text, fix=fix, code=UNLANDABLE))
                continue
            tree, conflicts = repository.merge(made.commit, member.work)
            if conflicts and made.members:
                made.later.append(member)
                continue
            if conflicts:
                text = f"it conflicts with what has landed on {repository.target} in {few(conflicts)}"
                fix = f"Start a new run of the task on {repository.target}, or merge by hand: {_by_hand(member)}"
                made.ended.append(Landing(run, "conflict", files=conflicts, message=text, fix=fix, code=CONFLICT))
                continue
            if tree == made.tree and not made.members:
                text = f"{repository.target} has its changes already"
                made.ended.append(Landing(run, "landed", commit=head, message=text))
                continue
            made.members.append(member)
            made.tree = tree
            # The next one is merged with this; where there is no next one, it is the commit itself that lands.
            made.commit = member.work if member.parent == head and len(made.members) == 1 else self._commit(made)
        return made

    def _commit(self, made: _Group) -> str:
        members = made.members
        subject, trailers = members[0].subject, [row for member in members for row in member.trailers]
        if len(members) > 1:
            subject = "\n".join([f"Land {len(members)} runs", "", *(f"- {member.subject}" for member in members)])
        message = message_of(subject, tuple(dict.fromkeys(trailers)))
        return self.repository.commit(made.tree, (made.head, *(member.work for member in members)), message)

    def _judged(self, merge: Merge, failed: frozenset[str]) -> tuple[Verdict, tuple[str, ...]]:
        """Return the verdict on a merged tree, and the tests that failed at first; one that fails alone has two runs."""
        runs = [member.run_id for member in merge.members]
        self.notice(runs, f"judging {count(runs, 'run')} on {self.repository.target}")
        verdict = self.judge(merge)
        # What failed in the batch, too, has failed twice.
        known = verdict.unjudged or (verdict.tests and failed.issuperset(verdict.tests))
        if verdict.ok or known or len(runs) > 1:
            return verdict, ()
        self.notice(runs, f"failed: {few(verdict.tests) or verdict.message}; once more")
        again = self.judge(merge)
        return again, (verdict.tests or ("the gate",)) if again.ok else ()

    def _split(self, members: Sequence[Member], verdict: Verdict, later: list[Member]) -> Iterator[Landing]:
        """Land the parts of a red batch: halves, or one by one."""
        self.notice([row.run_id for row in members], f"red together: {few(verdict.tests) or verdict.message}")
        size = 1 if len(members) <= _BISECTED_TO else (len(members) + 1) // 2
        all_landed = True
        for first in range(0, len(members), size):
            doubtful = verdict.tests if all_landed and first + size >= len(members) else ()
            before = len(later)
            for landing in self._land(members[first : first + size], frozenset(verdict.tests), doubtful, later):
                all_landed = all_landed and landing.state == "landed"
                yield landing
            all_landed = all_landed and len(later) == before

    def _red(self, member: Member, verdict: Verdict) -> Landing:
        run = (member.run_id,)
        if verdict.unjudged:
            text = f"no gate judges {few(verdict.unjudged)}, which would land: {verdict.message}"
            fix = f"Look at them and merge by hand: {_by_hand(member)}"
            return Landing(run, "refused", files=verdict.unjudged, message=text, fix=fix, code=UNJUDGED)
        text = verdict.message or f"what passed in the run fails together with what has landed: {few(verdict.tests)}"
        fix = f"Start a new run of the task on {self.repository.target}: `interlock run TASK.toml`."
        return Landing(run, "red", tests=verdict.tests, message=text, fix=fix, code=RED)

    def _said(self, landing: Landing) -> Landing:
        """Return a landing with its target; what has landed is recorded."""
        landing = replace(landing, target=self.repository.target)
        if landing.state == "landed":
            self.record(landing)
        return landing


def _by_hand(member: Member) -> str:
    return f"`interlock commit {member.run_id}` and `git merge interlock/{member.run_id}`."
