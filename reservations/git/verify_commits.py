"""Commits checked against the leases that the journal records: what `interlock verify --commits` says.

Hooks can be bypassed; a commit that arrives cannot hide what it changes and when it says it was made. So the commits of
a range are read from git with their paths (`read_commits`), and each is judged by who held these then (`Judge`): what
an agent held is changed by that agent's `interlock commit` alone, which the journal records. Nothing is written.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from interlock.core.finding import Finding
from interlock.reservations import settings
from interlock.reservations.errors import ReservationError
from interlock.reservations.git import commands
from interlock.reservations.git.foreign_leases import project
from interlock.reservations.git.lease_history import leases_by_path, read_history
from interlock.reservations.rules import RULES, shown
from interlock.reservations.store.history import Held, History, RecordedCommit
from interlock.reservations.store.records import iso, key_of

Verdict: TypeAlias = Literal["clean", "incomplete", "refused"]
"""Of a commit, and of a range the worst of them. `clean`: what it changes nobody held, or the agent whose `interlock
commit` it is; `incomplete`: nobody is known to have held it, but events from then are missing; `refused`: an agent held
some of it, and no `interlock commit` of that agent made it."""

SHORT_ID_CHARS: Final = 12
"""How many digits of a commit's id are shown to people."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, with what it says of itself: when it was made, in whole seconds, and by whom.

    `paths` are those that it changes; of a merge, what differs from every parent.
    """

    id: str
    at: int
    committer: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Breach:
    """One path of a commit that an agent held, and that no `interlock commit` of that agent changed.

    Args:
        finding: `RSV209`, with the path.
        made: Whose `interlock commit` it was, and when; None when it was not one.
    """

    finding: Finding
    commit: Commit
    made: RecordedCommit | None
    held: Held

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        held, finding, made = self.held, self.finding, self.made
        return {
            **{name: getattr(finding, name) for name in ("code", "message", "found", "expected", "fix")},
            "path": finding.path.encode("utf-8", "backslashreplace").decode(),
            "commit": self.commit.id,
            "at": iso(self.commit.at if made is None else int(made.at)),
            "committer": shown(self.commit.committer),
            "maker": made and made.agent,
            "holder": held.agent,
            "lease": {
                **{name: getattr(held, name) for name in ("reservation_id", "pattern", "token")},
                "since": iso(held.since),
                "until": iso(held.until),
                "ending": held.ending or None,
            },
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What a check of a range found: the verdict of each commit, the newest first, and the breaches.

    Of each store, `missing` are the numbers of events that are in no journal here: a commit from then is `incomplete`.
    """

    range: str
    root: str
    journals: tuple[str, ...]
    verdicts: dict[str, Verdict]
    findings: tuple[Breach, ...]
    missing: dict[str, tuple[tuple[int, int], ...]]

    @property
    def verdict(self) -> Verdict:
        """The worst of all commits."""
        if self.count("refused"):
            return "refused"
        return "incomplete" if self.count("incomplete") else "clean"

    def count(self, verdict: Verdict) -> int:
        """Return how many commits have a verdict."""
        return sum(each == verdict for each in self.verdicts.values())

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "schema": "interlock.commits/2",
            "range": self.range,
            "root": self.root,
            "journals": list(self.journals),
            "verdict": self.verdict,
            "commits": [{"commit": commit, "verdict": verdict} for commit, verdict in self.verdicts.items()],
            "findings": [finding.to_json() for finding in self.findings],
            "missing": [
                {"store": store, "first": first, "last": last}
                for store, gaps in self.missing.items()
                for first, last in gaps
            ],
        }


def check_commits(start: str, wanted: str, journals: Sequence[str] = ()) -> Report:
    """Check each commit of a range against the leases that were held when it was made; nothing is written.

    Args:
        wanted: The range as `git rev-list` reads it, such as `origin/main..HEAD`; one name is all that led to it.
        journals: What to read besides the journals of the project's checkouts.

    Raises:
        JournalError: A journal is not what was written to it.
        ReservationError: The range names no commits, the clone is shallow, no journal records reservations, or git, a
            journal or the store cannot be read.
    """
    found = project(start)
    commits = read_commits(start, wanted)
    history, read = read_history(found, journals)
    if history.last_at is None:
        raise _unread(
            f"no journal here records reservations; read: {', '.join(read) or 'none'}",
            "Check where the agents work, or keep artifacts/interlock/events.jsonl with the commits; `--journal FILE` "
            "reads another one.",
        )
    # A lease that was granted in a gap may have been held for as long as one may.
    judge = Judge(history, settings.read(found.root).max_ttl_minutes * 60)
    judged = {commit.id: judge.of(commit) for commit in commits}
    return Report(
        range=wanted,
        root=found.root,
        journals=tuple(read),
        verdicts={commit: verdict for commit, (verdict, _) in judged.items()},
        findings=tuple(breach for _, breaches in judged.values() for breach in breaches),
        missing=dict(history.missing),
    )


def read_commits(start: str, wanted: str) -> list[Commit]:
    """Return the commits of a range, the newest first."""
    wrong = _unread(
        f"{shown(wanted)} names no commits in {start}", "Give a range such as origin/main..HEAD; fetch what it names."
    )
    if wanted.startswith("-"):
        raise wrong
    shallow = commands.answer(start, ["rev-parse", "--is-shallow-repository"])
    ids = commands.answer(start, ["--no-replace-objects", "rev-list", wanted, "--"])
    if ids is None or (not ids and ".." not in wanted):
        raise wrong
    if shallow == b"true\n":
        raise _unread(
            "this clone is shallow: where its history is cut, a commit seems to change every file",
            "Fetch the whole history: `git fetch --unshallow`, or `fetch-depth: 0` in a workflow.",
        )
    arguments = ["--no-replace-objects", "diff-tree", "--stdin", "--always", "-r", "-c", "-z", "--root", "--raw"]
    arguments += ["--no-renames", "--no-ext-diff", "--pretty=tformat:%H %ct %cn <%ce>"]
    return list(_parsed(commands.ask(start, arguments, data=ids)))


def _unread(message: str, fix: str) -> ReservationError:
    return ReservationError(message, fix, "RSV909")


def _parsed(output: bytes) -> Iterator[Commit]:
    """Read a header per commit, and per path a row that begins with a colon and then the path itself."""
    header, paths = "", list[str]()
    items = iter([*output.split(b"\0"), b"end"])
    for item in items:
        text = item.lstrip(b"\n")
        if text.startswith(b":"):
            paths.append(os.fsdecode(next(items)))
        elif text:
            if header:
                name, at, committer = header.split(" ", 2)
                yield Commit(name, int(at), committer, tuple(paths))
            header, paths = os.fsdecode(text), []


class Judge:
    """Judges commits by one history; a lease of which nothing is known may have been held for `longest` seconds."""

    def __init__(self, history: History, longest: float = 0.0) -> None:
        self._made = history.made
        self._blind = [(begin, end + longest) for begin, end in history.blind]
        self._leases = leases_by_path(history)

    def of(self, commit: Commit) -> tuple[Verdict, list[Breach]]:
        """Return the verdict of the history on a commit, with its breaches.

        One that `interlock commit` made is judged by the leases that were held when that was recorded, whatever time it
        bears. Of any other, the committer's time is all there is; a lease that began or ended in that second does not
        count, for which came first is not known.
        """
        made = self._made.get(commit.id)
        breaches: list[Breach] = []
        for path in commit.paths:
            for held in self._leases.covering(path):
                was_held = held.held_during(commit.at) if made is None else held.held_at(made)
                if was_held and (made is None or key_of(held.agent) != key_of(made.agent)):
                    breaches.append(_breach(commit, path, held, made))
        if breaches:
            return "refused", breaches
        is_blind = made is None and any(begin <= commit.at <= end for begin, end in self._blind)
        return "incomplete" if is_blind else "clean", []


def _breach(commit: Commit, path: str, held: Held, made: RecordedCommit | None) -> Breach:
    short, holder = commit.id[:SHORT_ID_CHARS], shown(held.agent)
    at = iso(commit.at if made is None else int(made.at))
    found = f"a commit at {at} {'without a record' if made is None else f'by {shown(made.agent)}'}"
    expected = f"an `interlock commit` of {holder}"
    fix = (
        f"Show {holder} `git show {short} -- '{shown(path)}'`. If it is to stay, {holder} says so in review, or makes "
        f"it again by `interlock commit`; else `git revert {short}`."
    )
    return Breach(Finding("RSV209", "error", "", RULES["RSV209"], found, expected, fix, path=path), commit, made, held)
