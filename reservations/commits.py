"""Commits against the leases that the journal tells of: what `interlock verify --commits` says.

Hooks can be gone round; a commit that arrives cannot hide what it changes and when it says it was made.
"""

import os
import os.path
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.reservations import checkouts, place, settings
from interlock.reservations.answers import iso
from interlock.reservations.arrivals import Commit, CommitsUnread, read_commits
from interlock.reservations.comparing import look
from interlock.reservations.history import (
    Happened,
    Held,
    History,
    HistoryUnreadable,
    Made,
    from_journal,
    from_queue,
    history_of,
)
from interlock.reservations.patterns import FOLD_CASE, Pattern, canonical, matches
from interlock.reservations.records import key_of
from interlock.reservations.rules import RULES, shown

Verdict: TypeAlias = Literal["proven", "free", "incomplete", "unproven", "refused"]
"""Of a commit. `proven`: made by `interlock commit`, and it leaves alone what others held; `free`: nobody held what it
changes; `incomplete`: nobody is known to have, but events from then are missing; `unproven`: one agent held some of it,
and who made the commit is not known; `refused`: it changes what somebody else held than whoever made it."""

_BAD: Final[tuple[Literal["refused", "unproven", "incomplete"], ...]] = ("refused", "unproven", "incomplete")
"""The verdicts that are not good, the worst first."""
SHORT: Final = 12
"""So many digits of a commit's id are shown to people."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One path of a commit that somebody held.

    Args:
        code: `RSV209`: held by somebody else than the maker; `RSV210`: the maker is not known.
        commit: The commit.
        at: When it was made: as the journal has it, else as the commit says.
        committer: Who it says made it.
        path: The path.
        maker: Whose `interlock commit` it was; None when it was none.
        held: The lease.
        found: What is the case.
        expected: What would be right.
        fix: What to do.
    """

    code: str
    commit: str
    at: int
    committer: str
    path: str
    maker: str | None
    held: Held
    found: str
    expected: str
    fix: str

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        held = self.held
        return {
            "code": self.code,
            "commit": self.commit,
            "at": iso(self.at),
            "committer": shown(self.committer),
            "path": self.path.encode("utf-8", "backslashreplace").decode(),
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
            "message": RULES[self.code],
            "found": self.found,
            "expected": self.expected,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What a check of a range found.

    Args:
        range: As it was given.
        root: The project.
        journals: What was read.
        verdicts: Commit to verdict, the newest first.
        findings: All, in that order.
        missing: Store to the numbers of events that stand in no journal here: a commit from then is `incomplete`.
        later: How many commits are younger than the last event: what was reserved after it is not known.
        last_at: When that event happened.
    """

    range: str
    root: str
    journals: tuple[str, ...]
    verdicts: dict[str, Verdict]
    findings: tuple[Finding, ...]
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
        """Say whether nothing is wrong with any commit, or nothing worse than what is allowed."""
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
    """Hold each commit of a range against the leases that stood when it was made.

    Nothing is written.

    Args:
        start: A folder of the repository.
        wanted: The range as `git rev-list` reads it, such as `origin/main..HEAD`; one name is all that led to it.
        journals: What to read besides the journals of the project's checkouts.

    Raises:
        CommitsUnread: The range names no commits, the clone is shallow, or no journal tells of reservations.
        GitFailed: There is no git, or it hangs.
        JournalDamaged: A journal is not what was written to it.
        ReservationError: The journal or the store cannot be read.
    """
    found = place.find(start)
    commits = read_commits(start, found.root, wanted)
    roots = checkouts.roots_of(found)
    read = list(dict.fromkeys([*checkouts.journals_of(roots), *journals]))
    history = _history(found.store_path, roots, read)
    if history.last_at is None:
        raise CommitsUnread(
            f"no journal here tells of reservations; read: {', '.join(read) or 'none'}",
            "Check where the agents work, or keep artifacts/interlock/events.jsonl with the commits; `--journal FILE` "
            "reads another one.",
        )
    # A lease that was granted in a gap may have stood for as long as one may.
    judge = Judge(history, settings.read(found.root).max_ttl_minutes * 60)
    judged = [(commit, judge.of(commit)) for commit in commits]
    return Report(
        range=wanted,
        root=found.root,
        journals=tuple(read),
        verdicts={commit.id: verdict for commit, (verdict, _) in judged},
        findings=tuple(finding for _, (_, findings) in judged for finding in findings),
        missing=dict(history.missing),
        later=sum(commit.at > history.last_at for commit in commits),
        last_at=history.last_at,
    )


class Judge:
    """Judges commits by one history.

    Args:
        history: What is known of leases and commits.
        longest: How long a lease may have stood that nothing is known of, in seconds.

    Raises:
        HistoryUnreadable: A lease has a pattern that cannot be read.
    """

    def __init__(self, history: History, longest: float = 0.0) -> None:
        self._made = history.made
        self._blind = [(begin, end + longest) for begin, end in history.blind]
        self._rows = [(_pattern(held), held) for held in history.leases]
        self._wide = [(pattern, held) for pattern, held in self._rows if not pattern.literal]
        self._literal: dict[str, list[Held]] = {}
        for pattern, held in self._rows:
            if pattern.literal:
                self._literal.setdefault(pattern.path, []).append(held)

    def of(self, commit: Commit) -> tuple[Verdict, list[Finding]]:
        """Say what the history makes of a commit.

        One that `interlock commit` made is judged by the leases that stood when that was recorded, whatever time it
        bears. Of any other, the committer's time is all there is; a lease that began or ended in that second does not
        count, for which came first is not known.
        """
        made = self._made.get(commit.id)
        if made is None:
            hits = [(path, held) for path, held in self._covering(commit.paths) if held.stood(commit.at)]
        else:
            mine = key_of(made.agent)
            hits = [(path, held) for path, held in self._covering(commit.paths)
                    if held.stood_at(made) and key_of(held.agent) != mine]  # fmt: skip
        if not hits:
            is_blind = made is None and any(begin <= commit.at <= end for begin, end in self._blind)
            return "incomplete" if is_blind else "free" if made is None else "proven", []
        holders = sorted({held.agent for _, held in hits}, key=key_of)
        certain = made is not None or len({key_of(name) for name in holders}) > 1
        return ("refused" if certain else "unproven"), [
            _finding(commit, path, held, made, holders, certain=certain) for path, held in hits
        ]

    def _covering(self, paths: Sequence[str]) -> Iterator[tuple[str, Held]]:
        """Yield each path with each lease that ever covered it."""
        for path in paths:
            # Most names are spelled in one way only: a look into a table in place of one at each lease.
            plain = path.isascii() and not FOLD_CASE
            near = [row for row in self._wide if path.startswith(row[0].prefix)] if plain else self._rows
            yield from ((path, held) for held in self._literal.get(path, []) if plain)
            yield from ((path, held) for pattern, held in near if matches(pattern, path))


def _finding(
    commit: Commit, path: str, held: Held, made: Made | None, holders: Sequence[str], *, certain: bool
) -> Finding:
    short, holder = commit.id[:SHORT], shown(held.agent)
    seen = f"`git show {short} -- '{shown(path)}'`"
    at = commit.at if made is None else int(made.at)
    when = iso(at)
    if not certain:
        found = f"a commit at {when} that no `interlock commit` made"
        fix = (
            f"See {seen}. Whoever holds files commits them with `interlock commit`, which is recorded: make it anew "
            "so. If you know that the holder made it, pass --allow-unproven."
        )
    else:
        by = f"by {shown(made.agent)}" if made is not None else f"of what {' and '.join(map(shown, holders))} held"
        found = f"a commit {by} at {when}"
        fix = f"Show {holder} {seen}. If it is to stay, {holder} says so in review; else `git revert {short}`."
    return Finding(
        "RSV209" if certain else "RSV210", commit.id, at, commit.committer, path, made and made.agent, held, found,
        f"one that {holder} made by `interlock commit`", fix,
    )  # fmt: skip


def _pattern(held: Held) -> Pattern:
    found = canonical(held.pattern)
    if isinstance(found, Pattern):
        return found
    raise HistoryUnreadable(
        f"the lease {held.reservation_id} in the journal has the pattern {shown(held.pattern)}: {found.message}",
        "Upgrade interlock if a newer version wrote it; else restore the journal from a copy.",
    )


# -- reading ---------------------------------------------------------------------------------------------------------


def _history(store_path: str, roots: Sequence[str], journals: Sequence[str]) -> History:
    """Read what the journals tell, what still waits in the store, and how many events that ever had."""
    waiting: list[Happened] = []
    counts: dict[str, int] = {}
    if os.path.exists(store_path):
        from interlock.reservations.sqlite import SqliteStore  # noqa: PLC0415 - where no store is, none is needed

        store = SqliteStore(store_path)
        try:
            # Before the journals: an event leaves the queue when it stands there.
            seen = look(store, roots)
            waiting, counts = list(from_queue(seen.store, seen.queue)), {seen.store: seen.events}
        finally:
            store.close()
    return history_of([*waiting, *from_journal(checkouts.told(journals))], counts)
