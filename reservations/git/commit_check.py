"""Commits checked against the leases that the journal records: what `interlock verify --commits` says.

Hooks can be bypassed; a commit that arrives cannot hide what it changes and when it says it was made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.core.finding import Finding
from interlock.reservations import place, settings
from interlock.reservations.answers import iso
from interlock.reservations.git import checkouts
from interlock.reservations.git.commit_range import Commit, CommitsUnreadError, read_commits
from interlock.reservations.git.journal_check import leases_by_path, read_history
from interlock.reservations.git.merges import Discarded, discarded
from interlock.reservations.rules import RULES, shown
from interlock.reservations.store.history import Held, History, RecordedCommit
from interlock.reservations.store.records import key_of

Verdict: TypeAlias = Literal["proven", "free", "incomplete", "unproven", "refused"]
"""Of a commit. `proven`: made by `interlock commit`, and it leaves alone what others held; `free`: nobody held what it
changes; `incomplete`: nobody is known to have, but events from then are missing; `unproven`: one agent held some of it,
and who made the commit is not known; `refused`: it changes what another agent held than the one that made it."""

_BAD: Final[tuple[Literal["refused", "unproven", "incomplete"], ...]] = ("refused", "unproven", "incomplete")
"""The verdicts that are not good, the worst first."""
SHORT_ID_CHARS: Final = 12
"""How many digits of a commit's id are shown to people."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One path of a commit that somebody held.

    Args:
        finding: `RSV209`: held by somebody else than the maker; `RSV210`: the maker is not known; `RSV214`: a merge
            that discards what the holder committed. Its `path` is the path.
        at: When it was made: as the journal has it, else as the commit says.
        maker: Whose `interlock commit` it was; None when it was not one.
    """

    finding: Finding
    commit: str
    at: int
    committer: str
    maker: str | None
    held: Held

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        held, found = self.held, self.finding
        return {
            "code": found.code,
            "commit": self.commit,
            "at": iso(self.at),
            "committer": shown(self.committer),
            "path": found.path.encode("utf-8", "backslashreplace").decode(),
            "maker": self.maker,
            "holder": held.agent,
            "lease": {
                "reservation_id": held.reservation_id,
                "pattern": held.pattern,
                "token": held.token,
                "since": iso(held.since),
                "until": iso(held.until),
                "ending": held.ending or None,
            },
            "message": found.message,
            "found": found.found,
            "expected": found.expected,
            "fix": found.fix,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What a check of a range found.

    Args:
        verdicts: Commit to verdict, the newest first.
        missing: Store to the numbers of events that are in no journal here: a commit from then is `incomplete`.
        later: How many commits are younger than the last event: what was reserved after it is not known.
    """

    range: str
    root: str
    journals: tuple[str, ...]
    verdicts: dict[str, Verdict]
    findings: tuple[Breach, ...]
    missing: dict[str, tuple[tuple[int, int], ...]]
    later: int
    last_at: float

    @property
    def verdict(self) -> Literal["clean", "incomplete", "unproven", "refused"]:
        """The worst of all commits."""
        for verdict in _BAD:
            if self.count(verdict):
                return verdict
        return "clean"

    def is_good(self, *, allow_unproven: bool = False, allow_incomplete: bool = False) -> bool:
        """Return whether nothing is wrong with any commit, or nothing worse than what is allowed."""
        allowed = {"unproven": allow_unproven, "incomplete": allow_incomplete, "refused": False}
        return not any(self.count(verdict) for verdict in _BAD if not allowed[verdict])

    def count(self, verdict: Verdict) -> int:
        """Return how many commits have a verdict."""
        return sum(each == verdict for each in self.verdicts.values())

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "schema": "interlock.commits/1",
            "range": self.range,
            "root": self.root,
            "journals": list(self.journals),
            "ok": self.is_good(),
            "verdict": self.verdict,
            "commits": [{"commit": commit, "verdict": verdict} for commit, verdict in self.verdicts.items()],
            "findings": [finding.to_json() for finding in self.findings],
            "missing": [
                {"store": store, "first": first, "last": last}
                for store, gaps in self.missing.items()
                for first, last in gaps
            ],
            "later": self.later,
            "last_event_at": iso(self.last_at),
        }


def check_commits(start: str, wanted: str, journals: Sequence[str] = ()) -> Report:
    """Check each commit of a range against the leases that were held when it was made; nothing is written.

    Args:
        wanted: The range as `git rev-list` reads it, such as `origin/main..HEAD`; one name is all that led to it.
        journals: What to read besides the journals of the project's checkouts.

    Raises:
        CommitsUnreadError: The range names no commits, the clone is shallow, or no journal records reservations.
        JournalDamaged: A journal is not what was written to it.
        ReservationError: Git, the journal or the store cannot be read.
    """
    found = place.find(start)
    commits = read_commits(start, found.root, wanted)
    roots = checkouts.roots_of(found)
    read = list(dict.fromkeys([*checkouts.journals_of(roots), *journals]))
    history = read_history(found.store_path, roots, read)
    if history.last_at is None:
        raise CommitsUnreadError(
            f"no journal here records reservations; read: {', '.join(read) or 'none'}",
            "Check where the agents work, or keep artifacts/interlock/events.jsonl with the commits; `--journal FILE` "
            "reads another one.",
        )
    # A lease that was granted in a gap may have been held for as long as one may.
    judge = Judge(history, settings.read(found.root).max_ttl_minutes * 60)
    judged = [(commit, _with_merge(commit, judge.of(commit), judge, start, found.root)) for commit in commits]
    return Report(
        range=wanted, root=found.root, journals=tuple(read),
        verdicts={commit.id: verdict for commit, (verdict, _) in judged},
        findings=tuple(finding for _, (_, findings) in judged for finding in findings),
        missing=dict(history.missing), later=sum(commit.at > history.last_at for commit in commits),
        last_at=history.last_at,
    )  # fmt: skip


def _with_merge(
    commit: Commit, judged: tuple[Verdict, list[Breach]], judge: "Judge", start: str, root: str
) -> tuple[Verdict, list[Breach]]:
    """Return the verdict on a commit with what it discards where it is a merge; the worse of both counts."""
    if len(commit.parents) < 2:
        return judged
    verdict, findings = judged
    for row in discarded(start, root, commit, judge.made):
        held = judge.held_for(row)
        if held is not None and not judge.is_of(commit, held.agent):
            findings = [*findings, _thrown_away(commit, row, held)]
            verdict = "refused" if row.whole or verdict == "refused" else "unproven"
    return verdict, findings


def _thrown_away(commit: Commit, row: Discarded, held: Held) -> Breach:
    short, source, holder = commit.id[:SHORT_ID_CHARS], row.source[:SHORT_ID_CHARS], shown(held.agent)
    how = "nothing" if row.whole else "not all"
    found = _about(
        "RSV214", row.path,
        f"a merge at {iso(commit.at)} that keeps {how} of what {holder} committed there in {source}",
        f"a merge that keeps the lines of {source}, or one that {holder} made by `interlock commit`",
        f"Compare `git diff {source} {short} -- '{shown(row.path)}'`. Merge again and keep both sides. If it is "
        f"right as it is, {holder} says so in review{'' if row.whole else ', or pass --allow-unproven'}.",
    )  # fmt: skip
    return Breach(found, commit.id, commit.at, commit.committer, None, held)


def _about(code: str, path: str, found: str, expected: str, fix: str) -> Finding:
    return Finding(code, "error", "", RULES[code], found, expected, fix, path=path)


class Judge:
    """Judges commits by one history; a lease of which nothing is known may have been held for `longest` seconds."""

    def __init__(self, history: History, longest: float = 0.0) -> None:
        self.made = history.made
        self._blind = [(begin, end + longest) for begin, end in history.blind]
        self._leases = leases_by_path(history)

    def is_of(self, commit: Commit, agent: str) -> bool:
        """Return whether `interlock commit` made a commit for an agent."""
        made = self.made.get(commit.id)
        return made is not None and key_of(made.agent) == key_of(agent)

    def held_for(self, row: Discarded) -> Held | None:
        """Return the lease under which the commit was recorded whose work a merge discards, if there was one."""
        made = self.made[row.source]
        for held in self._leases.covering(row.path):
            in_order = held.granted < made.number and (held.ended is None or held.ended > made.number)
            if held.store == made.store and in_order and key_of(held.agent) == key_of(made.agent):
                return held
        return None

    def of(self, commit: Commit) -> tuple[Verdict, list[Breach]]:
        """Return the verdict of the history on a commit, with its breaches.

        One that `interlock commit` made is judged by the leases that were held when that was recorded, whatever time it
        bears. Of any other, the committer's time is all there is; a lease that began or ended in that second does not
        count, for which came first is not known.
        """
        made = self.made.get(commit.id)
        covered = [(path, held) for path in commit.paths for held in self._leases.covering(path)]
        if made is None:
            hits = [(path, held) for path, held in covered if held.held_during(commit.at)]
        else:
            mine = key_of(made.agent)
            hits = [(path, held) for path, held in covered if held.held_at(made) and key_of(held.agent) != mine]
        if not hits:
            is_blind = made is None and any(begin <= commit.at <= end for begin, end in self._blind)
            return "incomplete" if is_blind else "free" if made is None else "proven", []
        holders = sorted({held.agent for _, held in hits}, key=key_of)
        certain = made is not None or len({key_of(name) for name in holders}) > 1
        return ("refused" if certain else "unproven"), [
            _finding(commit, path, held, made, holders, certain=certain) for path, held in hits
        ]


def _finding(
    commit: Commit, path: str, held: Held, made: RecordedCommit | None, holders: Sequence[str], *, certain: bool
) -> Breach:
    short, holder = commit.id[:SHORT_ID_CHARS], shown(held.agent)
    seen = f"`git show {short} -- '{shown(path)}'`"
    at = commit.at if made is None else int(made.at)
    when = iso(at)
    if not certain:
        found = f"a commit at {when} that no `interlock commit` made"
        fix = (
            f"See {seen}. Whoever holds files commits them with `interlock commit`, which is recorded: make it again "
            "so. If you know that the holder made it, pass --allow-unproven."
        )
    else:
        by = f"by {shown(made.agent)}" if made is not None else f"of what {' and '.join(map(shown, holders))} held"
        found = f"a commit {by} at {when}"
        fix = f"Show {holder} {seen}. If it is to stay, {holder} says so in review; else `git revert {short}`."
    code, expected = "RSV209" if certain else "RSV210", f"one that {holder} made by `interlock commit`"
    whole = _about(code, path, found, expected, fix)
    return Breach(whole, commit.id, at, commit.committer, made and made.agent, held)
