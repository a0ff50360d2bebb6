"""The order in which approved work lands: merge, judge, move the target; batches, bisection, and what is flaky.

Nothing here knows how a tree is judged: a `Judge` is given, so that the same order serves any judge.

What must never happen: the target is at a commit whose tree was not judged; a commit is judged against anything but
what has landed; a failure is taken back without a word.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.core.text import count, few
from interlock.graph.errors import CODES, CONFLICT, GIT, RED, UNJUDGED, UNLANDABLE, GraphError
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.work import Member, message_of

_TRIES: Final = 5
"""So often the target may move while a tree is judged."""
_MAX_NAMED: Final = 10
_BISECTED_TO: Final = 4
"""A red batch of at most so many is tried one by one."""


class Verdict(NamedTuple):
    """What judging a merged tree came to.

    Args:
        ok: Whether it may land.
        tests: The tests that fail, or the gates where tests are not known one by one.
        why: Why not.
        unjudged: Files that differ from the target and that no gate took from the work: another run says the same.
        how: `again`, `kept` from an earlier judgement of the same trees, or `run`: it is the tree that the run judged.
    """

    ok: bool
    tests: tuple[str, ...] = ()
    why: str = ""
    unjudged: tuple[str, ...] = ()
    how: str = "again"


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
        how: How what has landed was judged, as in `Verdict`; `before` and `there` where nothing was to be done: it had
            landed, or the target had its changes.
        finding: Why it has not landed, and what to do.
        rebuilt: The run that was begun because of a conflict.
    """

    run_ids: tuple[str, ...]
    state: Literal["landed", "conflict", "red", "refused"]
    commit: str = ""
    target: str = ""
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    how: str = ""
    finding: Finding | None = None
    rebuilt: str = ""

    @property
    def message(self) -> str:
        """Why it has not landed; empty where it has."""
        return "" if self.finding is None else self.finding.message

    @property
    def code(self) -> str:
        """The code of why it has not landed."""
        return "" if self.finding is None else self.finding.code

    @property
    def fix(self) -> str:
        """What to do where it has not landed."""
        return "" if self.finding is None else self.finding.fix


@dataclass
class Merge:
    """Members merged in order on the target: what is judged, and those that did not get so far.

    Args:
        head: Where the target is.
        commit: The commit that would land.
        tree: Its tree.
        members: Whose work it has.
        ended: How it ended for others.
        later: Those that conflict with these members alone.
    """

    head: str
    commit: str
    tree: str
    members: list[Member] = field(default_factory=list[Member])
    ended: list[Landing] = field(default_factory=list[Landing])
    later: list[Member] = field(default_factory=list[Member])


Judge: TypeAlias = Callable[[Merge], Verdict]
"""Judges a merged tree.

Raises:
    InterlockError: It cannot be judged; what is wrong is no fault of the work.
"""


class _Red(NamedTuple):
    """A batch that failed: its tree, and the tests."""

    tree: str
    tests: tuple[str, ...]


def refused(runs: Sequence[str], error: InterlockError) -> Landing:
    """Return that runs have not landed because of an error."""
    return Landing(tuple(runs), "refused", finding=Finding(error.code, "error", "", error.message, fix=error.fix))


def _finding(code: str, message: str, found: Sequence[str], fix: str) -> Finding:
    return Finding(code, "error", "", message, few(found, _MAX_NAMED), CODES[code].title, fix)


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
            yield from self._land(group, None, later)
            # Those that conflict with others of their group alone: what became of these is known now.
            waiting[:0] = later

    def _land(self, group: Sequence[Member], red: _Red | None, later: list[Member]) -> Iterator[Landing]:
        """Land a group.

        Args:
            group: The members.
            red: The batch that failed and that the group is a part of.
            later: Takes the members that conflict with others of the group alone.
        """
        flaky = dict[str, None]()
        for _ in range(_TRIES):
            made, error, moved = None, None, False
            verdict = Verdict(ok=False, tests=() if red is None else red.tests)
            try:
                self.repository.follow_remote()
                made = self._merged(group)
                group = made.members
                # Of a batch whose others have landed the very tree has failed: only parts of it can pass.
                if group and (red is None or made.tree != red.tree or len(group) == 1):
                    verdict = self._judged(made, red, flaky)
                    moved = verdict.ok and self.repository.advance(made.commit, made.head)
            except InterlockError as caught:
                error = caught
            if made is not None:
                later += made.later
                yield from map(self._said, made.ended)
            runs = tuple(member.run_id for member in group)
            if error is not None:
                yield self._said(refused(runs, error))
            elif made is None or not group:
                return
            elif moved:
                yield self._said(Landing(runs, "landed", made.commit, flaky=tuple(flaky), how=verdict.how))
            elif not verdict.ok and len(group) > 1:
                self.notice(runs, f"red together: {few(verdict.tests) or verdict.why}")
                for part in self._parts(group, verdict.tests):
                    yield from self._land(part, _Red(made.tree, verdict.tests), later)
            elif not verdict.ok:
                yield self._said(self._red(group[0], verdict))
            else:
                self.notice(runs, f"{self.repository.target} moved meanwhile; it is merged and judged again")
                continue
            return
        moves = GraphError(f"{self.repository.target} moved {_TRIES} times", "Land again when nobody moves it.", GIT)
        yield self._said(refused([member.run_id for member in group], moves))

    def _merged(self, group: Sequence[Member]) -> Merge:
        """Merge members one after another; the commit has the target and all of their commits as parents."""
        repository = self.repository
        head = repository.head()
        made = Merge(head, head, repository.tree_of(head))
        for member in group:
            run = (member.run_id,)
            common = repository.common(head, member.work)
            if common == member.work:
                made.ended.append(Landing(run, "landed", repository.bringer_of(member.work), how="before"))
                continue
            # Else the merge would bring commits that are none of the run's work.
            if common != member.parent:
                text = f"it began from a commit that {repository.target} does not have"
                fix = f"Take its work over by hand: `interlock commit {run[0]}`, `git cherry-pick interlock/{run[0]}`."
                finding = _finding(UNLANDABLE, text, [member.parent[:12]], fix)
                made.ended.append(Landing(run, "refused", finding=finding))
                continue
            tree, conflicts = repository.merge(made.commit, member.work)
            if conflicts and made.members:
                # With others of the group, which may not land, or with what has landed.
                conflicts = repository.merge(head, member.work).conflicts
                if not conflicts:
                    made.later.append(member)
                    continue
            if conflicts:
                fix = f"Start a new run of the task on {repository.target}, or merge by hand: {_by_hand(member)}"
                text = f"it conflicts with what has landed on {repository.target}"
                finding = _finding(CONFLICT, text, conflicts, fix)
                made.ended.append(Landing(run, "conflict", files=conflicts, finding=finding))
            elif tree == made.tree and not made.members:
                made.ended.append(Landing(run, "landed", head, how="there"))
            else:
                made.members.append(member)
                made.tree = tree
                # The next one is merged with this; where there is no next one, it is the commit itself that lands.
                is_first = member.parent == head and len(made.members) == 1
                made.commit = member.work if is_first else self._commit(made)
        return made

    def _commit(self, made: Merge) -> str:
        members = made.members
        text, trailers = members[0].subject, [row for member in members for row in member.trailers]
        if len(members) > 1:
            text = "\n".join([f"Land {len(members)} runs", "", *(f"- {member.subject}" for member in members)])
        message = message_of(text, tuple(dict.fromkeys(trailers)))
        return self.repository.commit(made.tree, (made.head, *(member.work for member in members)), message)

    def _judged(self, made: Merge, red: _Red | None, flaky: dict[str, None]) -> Verdict:
        """Return the verdict on a merged tree; `flaky` takes the tests that failed on this tree before they passed."""
        runs = [member.run_id for member in made.members]
        self.notice(runs, f"judging {count(runs, 'run')} on {self.repository.target}")
        verdict = self.judge(made)
        if verdict.ok:
            flaky |= dict.fromkeys(red.tests if red is not None and red.tree == made.tree else ())
            return verdict
        # What failed in the batch, too, has failed twice.
        known = verdict.tests and red is not None and {*red.tests}.issuperset(verdict.tests)
        if len(runs) > 1 or verdict.unjudged or known:
            return verdict
        self.notice(runs, f"failed: {few(verdict.tests) or verdict.why}; once more")
        again = self.judge(made)
        flaky |= dict.fromkeys(verdict.tests if again.ok else ())
        return again

    def _parts(self, group: Sequence[Member], tests: Sequence[str]) -> list[Sequence[Member]]:
        """Return a red batch without those who changed a file of its failing tests, and these; else its halves."""
        files = {test.partition("::")[0] for test in tests}
        suspects = [row for row in group if not files.isdisjoint(self.repository.changes(row.parent, row.work))]
        if 0 < len(suspects) < len(group):
            return [[row for row in group if row not in suspects], suspects]
        size = 1 if len(group) <= _BISECTED_TO else (len(group) + 1) // 2
        return [group[first : first + size] for first in range(0, len(group), size)]

    def _red(self, member: Member, verdict: Verdict) -> Landing:
        run, files = (member.run_id,), verdict.unjudged
        if files:
            text = f"no gate judges files that would land: {verdict.why}"
            finding = _finding(UNJUDGED, text, files, f"Look at them and merge by hand: {_by_hand(member)}")
            return Landing(run, "refused", files=files, finding=finding)
        text = verdict.why or "what passed in the run fails together with what has landed"
        fix = f"Start a new run of the task on {self.repository.target}: `interlock run TASK.toml`."
        return Landing(run, "red", tests=verdict.tests, finding=_finding(RED, text, verdict.tests, fix))

    def _said(self, landing: Landing) -> Landing:
        """Return a landing with its target; what has landed is recorded."""
        landing = replace(landing, target=self.repository.target)
        if landing.state == "landed":
            self.record(landing)
        return landing


def _by_hand(member: Member) -> str:
    return f"`interlock commit {member.run_id}` and `git merge interlock/{member.run_id}`."
