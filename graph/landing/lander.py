"""The order in which approved work lands: merge, judge, move the target; batches, bisection, and what is flaky.

Nothing here knows how a tree is judged: a `Judge` is given, so that the same order serves any judge.

What must never happen: the target is at a commit whose tree was not judged; a commit is judged against anything but
what has landed; a failure is taken back without a word.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from interlock.core.errors import InterlockError
from interlock.core.text import count, few
from interlock.graph.errors import CONFLICT, GIT, RED, GraphError
from interlock.graph.landing.repository import Repository
from interlock.graph.landing.work import Member, message_of

_TRIES: Final = 5
"""So often the target may move while a tree is judged."""
_BISECTED_TO: Final = 4
"""A red batch of at most so many is tried one by one."""


@dataclass(frozen=True)
class Landing:
    """How landing ended for some runs, which are one commit where they landed together.

    Args:
        how: How what has landed was judged, as in `Verdict`; `before` where the target had its changes.
        files: The files that conflict.
        flaky: The tests that failed once and passed on the same tree then.
        error: Why it has not landed.
        rebuilt: The run that was begun because of a conflict.
    """

    run_ids: tuple[str, ...]
    state: Literal["landed", "conflict", "red", "refused"]
    target: str
    commit: str = ""
    how: str = ""
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    error: InterlockError | None = None
    rebuilt: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, with `code`, `message` and `fix` of its error."""
        values = {name: value for name, value in vars(self).items() if name != "error"}
        error = self.error
        return values | ({} if error is None else {"code": error.code, "message": error.message, "fix": error.fix})


class Merge(NamedTuple):
    """Members merged in order on the target: the commit that would land, and its tree."""

    head: str
    commit: str
    tree: str
    members: tuple[Member, ...]


JUDGED: Final = ("again", "kept", "run")
"""How a tree that landed was judged, if it was; see `Verdict.how`."""


class Verdict(NamedTuple):
    """What judging a merged tree came to.

    Args:
        ok: Whether it may land.
        tests: The tests that fail, or the gates where tests are not known one by one.
        why: Why not.
        how: One of `JUDGED`: `again`, `kept` from an earlier judgement of the same trees, or `run`: it is the tree that
            the run judged.
    """

    ok: bool
    tests: tuple[str, ...] = ()
    why: str = ""
    how: str = "again"


def not_landed(run_ids: Sequence[str], target: str, error: InterlockError, **more: Any) -> Landing:
    """Return that runs have not landed, and why."""
    given: dict[str, Any] = {"state": "refused", "target": target, "error": error, **more}
    return Landing((*run_ids,), **given)


@dataclass
class Lander:
    """Lands members on the target of a repository.

    Args:
        judge: Judges each merged tree; it raises an `InterlockError` where that is no fault of the work.
        batch: How many members are judged together at most.
        notice: Takes the ids of runs and a line about what happens to them.
    """

    repository: Repository
    judge: Callable[[Merge], Verdict]
    batch: int = 1
    notice: Callable[[Sequence[str], str], object] = lambda _runs, _line: None
    _failed: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The tests that failed last on each tree, and with each run."""

    def land(self, members: Sequence[Member]) -> Iterator[Landing]:
        """Land members in their order, and yield how it ended for each or for those that landed together.

        It is yielded as soon as the target has them, before anything else happens.
        """
        waiting = [[*members[first : first + self.batch]] for first in range(0, len(members), self.batch)]
        while waiting:
            group = waiting.pop(0)
            try:
                yield from self._land(group, waiting)
            except InterlockError as error:
                yield not_landed(_ids(group), self.repository.target, error)

    def _land(self, group: list[Member], waiting: list[list[Member]]) -> Iterator[Landing]:
        """Land a group; what is left of it to try goes to those that wait."""
        target, flaky = self.repository.target, dict[str, None]()
        for _ in range(_TRIES):
            made = yield from self._merged(group, waiting)
            runs = _ids(group)
            if not runs:
                return
            self.repository.check_files(made.commit, made.head)
            verdict, failed = self._judged(made)
            flaky |= dict.fromkeys(failed)
            if not verdict.ok and len(runs) > 1:
                self.notice(runs, f"red together: {few(verdict.tests) or verdict.why}")
                waiting[:0] = self._parts(group, verdict.tests)
                return
            if not verdict.ok:
                text = verdict.why or "what passed in the run fails together with what has landed"
                fix = f"Start a new run of the task on {target}: `interlock run TASK.toml`."
                yield not_landed(runs, target, GraphError(text, fix, RED), state="red", tests=verdict.tests)
                return
            if self.repository.advance(made.commit, made.head):
                yield Landing(runs, "landed", target, made.commit, verdict.how, flaky=(*flaky,))
                return
            self.notice(runs, f"{target} moved meanwhile; it is merged and judged again")
        raise GraphError(f"{target} moved {_TRIES} times", "Land again when nobody moves it.", GIT)

    def _merged(self, group: list[Member], waiting: list[list[Member]]) -> Generator[Landing, None, Merge]:
        """Merge the members of a group one after another; those that cannot land with it leave it.

        Yields:
            How it ended for those that had landed, or conflict with what has.
        """
        repository, target = self.repository, self.repository.target
        head = repository.head()
        before = tree = repository.tree_of(head)
        parents, later = [head], 0
        for member in [*group]:
            is_first, run = member is group[0], (member.run_id,)
            if repository.has(head, member.work):
                group.remove(member)
                yield Landing(run, "landed", target, member.work, "before")
                continue
            merged, conflicts = repository.merge(tree, member.work, member.parent)
            if conflicts and not is_first:
                # With what has landed, or with others of the group alone: it is known once these have.
                group.remove(member)
                waiting.insert(later, [member])
                later += 1
            elif conflicts:
                group.remove(member)
                by_hand = f"`interlock commit {member.run_id}` and `git merge interlock/{member.run_id}`"
                fix = f"Start a new run of the task on {target}, or merge by hand: {by_hand}."
                why = GraphError(f"it conflicts with what has landed on {target}", fix, CONFLICT)
                yield not_landed(run, target, why, state="conflict", files=conflicts)
            elif is_first and merged == before:
                group.remove(member)
                yield Landing(run, "landed", target, head, "before")
            else:
                tree = merged
                # A commit that the target does not have, such as one of uncommitted changes, would come with its child.
                parents += [member.work] if repository.has(head, member.parent) else []
        members = tuple(group)
        if [member.parent for member in members] == [head]:
            return Merge(head, members[0].work, tree, members)
        return Merge(head, self._commit(tree, parents, members) if members else head, tree, members)

    def _commit(self, tree: str, parents: Sequence[str], members: Sequence[Member]) -> str:
        text = members[0].subject
        if len(members) > 1:
            text = "\n".join([f"Land {len(members)} runs", "", *(f"- {member.subject}" for member in members)])
        trailers = dict.fromkeys(row for member in members for row in member.trailers)
        return self.repository.commit(tree, (*parents,), message_of(text, [*trailers]))

    def _judged(self, made: Merge) -> tuple[Verdict, tuple[str, ...]]:
        """Return the verdict on a merged tree, and the tests that failed on this tree before they passed."""
        runs, failed = _ids(made.members), self._failed.get(made.tree, ())
        # Of a red batch whose first part has landed: only parts of it can pass.
        if failed and len(runs) > 1:
            return Verdict(ok=False, tests=failed), ()
        self.notice(runs, f"judging {count(runs, 'run')} on {self.repository.target}")
        verdict = self.judge(made)
        # What failed in a batch with the run, too, has failed twice.
        known = verdict.tests and {*self._failed.get(made.members[0].run_id, ())}.issuperset(verdict.tests)
        if not verdict.ok and len(runs) == 1 and not known:
            self.notice(runs, f"failed: {few(verdict.tests) or verdict.why}; once more")
            failed, verdict = verdict.tests, self.judge(made)
        if not verdict.ok:
            self._failed |= dict.fromkeys((made.tree, *runs), verdict.tests)
        return verdict, failed if verdict.ok else ()

    def _parts(self, group: list[Member], tests: Sequence[str]) -> list[list[Member]]:
        """Return a red batch without those who changed a file of its failing tests, and these; else its halves."""
        files = {test.partition("::")[0] for test in tests}
        suspects = [row for row in group if not files.isdisjoint(self.repository.changes(row.parent, row.work))]
        if 0 < len(suspects) < len(group):
            return [[row for row in group if row not in suspects], suspects]
        size = 1 if len(group) <= _BISECTED_TO else (len(group) + 1) // 2
        return [group[first : first + size] for first in range(0, len(group), size)]


def _ids(members: Sequence[Member]) -> tuple[str, ...]:
    return tuple(member.run_id for member in members)
