"""`interlock verify --commits`: real commits against what was reserved when they were made."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.journal import Journal, JournalError
from interlock.reservations.errors import ReservationError
from interlock.reservations.git.commit import commit as interlock_commit
from interlock.reservations.git.verify_commits import Judge, Report, check_commits, read_commits
from interlock.reservations.store import outbox
from interlock.reservations.store.history import Held, History, RecordedCommit, history_of
from tests.child import Ran
from tests.reservations.git.checkout import Checkout, make
from tests.table import each_row

LATER = 5
"""How many seconds after the grant of a lease a commit is made, by its committer's time."""


def committed(checkout: Checkout, name: str, *paths: str, later: float = LATER, message: str = "work") -> str:
    """Commit as any git user would, some seconds from now; the hooks are gone round."""
    for path in paths:
        checkout.write(path, f"{path} by {name} {time.monotonic_ns()}\n")
    checkout.must(name, "add", "--", *paths)
    at = {"GIT_COMMITTER_DATE": f"@{int(time.time() + later)} +0000"}
    done = checkout.run(name, "git", "commit", "-q", "--no-verify", "-m", message, "--", *paths, env=at)
    assert done.status == 0, done
    return checkout.head()


def checked(checkout: Checkout, wanted: str = "HEAD~1..HEAD", journals: Sequence[str] = ()) -> Report:
    return check_commits(str(checkout.root), wanted, journals)


def rows(report: Report) -> list[tuple[str, str, str]]:
    return [(finding.finding.code, finding.finding.path, finding.held.agent) for finding in report.findings]


@pytest.fixture
def bare(bare: Checkout) -> Checkout:
    """No hooks, and `ann` holds `ann.py` and `src/ann.py`."""
    bare.reserve("ann", "ann.py", "src/ann.py")
    return bare


# -- verdicts --------------------------------------------------------------------------------------------------------


def test_a_commit_of_what_nobody_held_is_clean(bare: Checkout) -> None:
    made = committed(bare, "bob", "bob.py")
    report = checked(bare)
    assert (report.verdict, report.verdicts, report.findings) == ("clean", {made: "clean"}, ())


def test_a_commit_of_a_held_path_by_nobody_known_is_refused(bare: Checkout) -> None:
    made = committed(bare, "bob", "ann.py", "bob.py")
    report = checked(bare)
    assert (report.verdict, report.verdicts) == ("refused", {made: "refused"})
    assert rows(report) == [("RSV209", "ann.py", "ann")]


def test_a_recorded_commit_that_carries_anothers_path_is_refused(bare: Checkout) -> None:
    made = committed(bare, "bob", "ann.py")
    with bare.runtime.store.transaction() as tx:
        data = {"agent": "bob", "commit": made, "paths": ["ann.py"], "count": 1}
        tx.add_event(str(bare.root), "committed", json.dumps(data), time.time() + LATER)
    report = checked(bare)
    assert (rows(report), report.findings[0].to_json()["maker"]) == ([("RSV209", "ann.py", "ann")], "bob")


def test_before_and_after_the_lease_a_path_is_free(bare: Checkout) -> None:
    committed(bare, "bob", "ann.py", later=-60)
    committed(bare, "bob", "ann.py", later=16 * 60)
    assert checked(bare, "HEAD~2..HEAD").verdict == "clean"
    bare.release("ann")
    committed(bare, "bob", "src/ann.py")
    assert checked(bare).verdict == "clean"


# -- what a commit changes -------------------------------------------------------------------------------------------


def test_deletions_renames_and_odd_names_count(bare: Checkout) -> None:
    bare.reserve("ann", "[[]x] ü?.txt")
    bare.must("bob", "mv", "ann.py", "moved.py")
    bare.must("bob", "rm", "-q", "src/ann.py")
    committed(bare, "bob", "[x] ü\n.txt")
    bare.must("bob", "commit", "-q", "--no-verify", "--amend", "--no-edit", "-a")
    (only,) = read_commits(str(bare.root), "HEAD~1..HEAD")
    assert set(only.paths) == {"ann.py", "moved.py", "src/ann.py", "[x] ü\n.txt"}


def test_of_a_merge_counts_what_differs_from_every_parent(bare: Checkout) -> None:
    bare.must("bob", "switch", "-q", "-c", "theirs")
    committed(bare, "bob", "ann.py", "bob.py", later=-60)
    bare.must("bob", "switch", "-q", "main")
    committed(bare, "bob", "src/bob.py", later=-60)
    at = {"GIT_COMMITTER_DATE": f"@{int(time.time() + LATER)} +0000"}
    assert bare.run("bob", "git", "merge", "-q", "--no-edit", "theirs", env=at).status == 0
    assert checked(bare, "HEAD^1..HEAD").verdict == "clean"
    bare.write("ann.py", "neither\n")
    assert bare.run("bob", "git", "commit", "-q", "-a", "--amend", "--no-edit", env=at).status == 0
    assert rows(checked(bare, "HEAD^1..HEAD")) == [("RSV209", "ann.py", "ann")]


def test_the_first_commit_and_an_empty_one_are_read(bare: Checkout) -> None:
    bare.must("bob", "commit", "-q", "--allow-empty", "-m", "empty")
    last, first = read_commits(str(bare.root), "HEAD")
    assert (last.paths, set(first.paths)) == ((), {"ann.py", "bob.py", "src/ann.py", "src/bob.py"})


@pytest.mark.parametrize("command", [("cherry-pick", "theirs"), ("rebase", "-q", "theirs")])
def test_the_ways_past_a_pre_commit_hook_are_seen(bare: Checkout, command: tuple[str, ...]) -> None:
    """What hooks cannot hold is found where the commits arrive."""
    start = bare.head()
    bare.must("bob", "switch", "-q", "-c", "theirs")
    committed(bare, "bob", "ann.py")
    bare.must("bob", "switch", "-q", "main")
    at = {"GIT_COMMITTER_DATE": f"@{int(time.time() + LATER)} +0000"}
    assert bare.run("bob", "git", *command, env=at).status == 0
    assert rows(checked(bare, f"{start}..HEAD")) == [("RSV209", "ann.py", "ann")]


# -- where the record is ---------------------------------------------------------------------------------------------


def test_a_clone_reads_the_journal_that_came_with_the_commits(bare: Checkout, tmp_path: Path) -> None:
    committed(bare, "bob", "ann.py")
    outbox.drain_events(bare.runtime.store, str(bare.root))
    bare.must("bob", "add", "-f", "artifacts")
    bare.must("bob", "commit", "-q", "--no-verify", "-m", "records")
    bare.must("bob", "clone", "-q", str(bare.root), str(tmp_path / "clone"), cwd=tmp_path)
    report = check_commits(str(tmp_path / "clone"), "HEAD~2..HEAD")
    assert rows(report) == [("RSV209", "ann.py", "ann")]
    assert report.journals == (str(tmp_path / "clone" / "artifacts" / "interlock" / "events.jsonl"),)


def test_the_journals_of_all_worktrees_are_read(bare: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "other"
    bare.must("bob", "worktree", "add", "-q", str(other))
    outbox.drain_events(bare.runtime.store, str(bare.root))
    Checkout(other).reserve("cid", "src/bob.py")
    outbox.drain_events(bare.runtime.store, str(other))
    committed(bare, "bob", "src/bob.py")
    report = checked(bare)
    assert (rows(report), len(report.journals)) == ([("RSV209", "src/bob.py", "cid")], 2)


def test_a_journal_that_misses_events_says_so(bare: Checkout, tmp_path: Path) -> None:
    bare.reserve("cid", "src/bob.py")
    whole = Journal(tmp_path / "whole.jsonl")
    outbox.drain_events(bare.runtime.store, str(bare.root), whole)
    part = Journal(tmp_path / "part.jsonl")
    last = list(whole.entries())[-1]
    part.append(last.run, last.key, last.type, last.data)
    committed(bare, "bob", "src/bob.py", "ann.py")
    report = checked(bare, journals=[str(part.path)])
    store, _, number = last.key.partition("/")
    assert (rows(report), report.missing) == ([("RSV209", "src/bob.py", "cid")], {store: ((1, int(number) - 1),)})
    whole_report = checked(bare, journals=[str(part.path), str(whole.path)])
    assert (whole_report.verdict, whole_report.missing) == ("refused", {})


def test_a_commit_from_a_time_whose_events_are_missing_is_not_said_to_be_good(bare: Checkout, tmp_path: Path) -> None:
    outbox.drain_events(bare.runtime.store, str(bare.root), Journal(tmp_path / "lost.jsonl"))
    made = committed(bare, "bob", "bob.py")
    bare.reserve("cid", "src/bob.py")
    report = checked(bare)
    assert (report.verdict, report.verdicts) == ("incomplete", {made: "incomplete"})
    longest = bare.runtime.settings.max_ttl_minutes * 60
    committed(bare, "bob", "bob.py", later=longest + 60)
    assert checked(bare).verdict == "clean"


def test_a_journal_that_was_cut_off_is_noticed_where_the_store_is(bare: Checkout) -> None:
    outbox.drain_events(bare.runtime.store, str(bare.root))
    path = bare.root / "artifacts" / "interlock" / "events.jsonl"
    early = path.read_bytes()
    made = committed(bare, "bob", "bob.py")
    assert checked(bare).verdicts == {made: "clean"}
    bare.reserve("cid", "src/bob.py")
    outbox.drain_events(bare.runtime.store, str(bare.root))
    path.write_bytes(early)
    assert checked(bare).verdicts == {made: "incomplete"}


def test_a_recorded_commit_is_clean_whatever_else_is_missing(bare: Checkout, tmp_path: Path) -> None:
    outbox.drain_events(bare.runtime.store, str(bare.root), Journal(tmp_path / "lost.jsonl"))
    bare.write("ann.py", "ann\n")
    made = interlock_commit(bare.agent("ann"), "work")["commit"]
    assert checked(bare).verdicts == {made: "clean"}


def test_a_damaged_journal_is_believed_nothing(bare: Checkout) -> None:
    outbox.drain_events(bare.runtime.store, str(bare.root))
    path = bare.root / "artifacts" / "interlock" / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"pattern":"ann.py"', b'"pattern":"bnn.py"'))
    with pytest.raises(JournalError):
        checked(bare, "HEAD")


def test_without_a_record_nothing_is_said_to_be_good(checkout: Checkout, tmp_path: Path) -> None:
    checkout.must("bob", "clone", "-q", str(checkout.root), str(tmp_path / "clone"), cwd=tmp_path)
    with pytest.raises(ReservationError):
        check_commits(str(tmp_path / "clone"), "HEAD")


def test_a_shallow_clone_is_refused(bare: Checkout, tmp_path: Path) -> None:
    committed(bare, "bob", "bob.py")
    bare.must("bob", "clone", "-q", "--depth", "1", f"file://{bare.root}", str(tmp_path / "clone"), cwd=tmp_path)
    with pytest.raises(ReservationError, match="shallow"):
        check_commits(str(tmp_path / "clone"), "HEAD")


@pytest.mark.parametrize("wanted", ["nowhere..HEAD", "--output=x", ""])
def test_what_names_no_commits_is_refused(bare: Checkout, wanted: str) -> None:
    with pytest.raises(ReservationError):
        checked(bare, wanted)


# -- the second of the commit ----------------------------------------------------------------------------------------


@each_row(
    ("since", "until", "was_held"),
    [(9, 20, True), (10, 20, False), (9, 11, True), (9, 10.5, False), (9, 10, False), (9, 11.5, True), (11, 20, False)],
)
def test_leases_from_or_to_the_second_of_the_commit_do_not_count(since: float, until: float, was_held: bool) -> None:
    held = Held("s", "rsv_1", "ann", "a", exclusive=True, claim=False, token=1, since=since, expires_at=until)
    assert held.held_during(10) is was_held


def test_a_recorded_commit_is_judged_by_the_order_of_events_and_not_by_its_time(bare: Checkout) -> None:
    made = committed(bare, "bob", "ann.py", later=10**6)
    (commit,) = read_commits(str(bare.root), "HEAD~1..HEAD")
    held = Held("one", "rsv_1", "ann", "ann.py", True, False, 1, since=100.0, expires_at=1000.0, granted=5, ended=9)

    def verdict(store: str, agent: str, number: int, at: float) -> str:
        return Judge(History((held,), {made: RecordedCommit(agent, store, number, at)}, {}, at)).of(commit)[0]

    assert verdict("one", "bob", 7, 500.0) == "refused"
    assert verdict("one", "ANN", 7, 500.0) == "clean"
    assert verdict("another", "bob", 7, 500.0) == "clean"
    assert verdict("one", "bob", 4, 500.0) == "clean"
    assert verdict("one", "bob", 10, 500.0) == "clean"
    assert Judge(history_of([])).of(commit)[0] == "clean"


# -- the command -----------------------------------------------------------------------------------------------------


def verify(checkout: Checkout, *arguments: str) -> Ran:
    return checkout.run("bob", sys.executable, "-m", "interlock", "verify", *arguments)


def test_the_command_names_rule_path_lease_and_fix_and_ends_with_1(bare: Checkout) -> None:
    made = committed(bare, "bob", "ann.py")
    done = verify(bare, "--commits", "HEAD~1..HEAD")
    assert (done.status, done.err) == (1, "")
    for part in (f"{made[:12]}: RSV209 ann.py", "lease: rsv_", "of ann, token 1", "fix: ", "bob <bob@example.org>"):
        assert part in done.out
    data: dict[str, Any] = json.loads(verify(bare, "--commits", "HEAD~1..HEAD", "--json").out)
    assert (data["schema"], data["ok"], data["verdict"]) == ("interlock.commits/2", False, "refused")
    assert data["commits"] == [{"commit": made, "verdict": "refused"}]
    assert (data["findings"][0]["holder"], data["findings"][0]["lease"]["pattern"]) == ("ann", "ann.py")


@pytest.mark.long
def test_the_command_ends_with_1_where_the_record_is_missing_unless_allowed(bare: Checkout, tmp_path: Path) -> None:
    outbox.drain_events(bare.runtime.store, str(bare.root), Journal(tmp_path / "lost.jsonl"))
    committed(bare, "bob", "bob.py")
    bare.reserve("cid", "src/bob.py")
    done = verify(bare, "--commits", "HEAD~1..HEAD", "--json")
    data: dict[str, Any] = json.loads(done.out)
    assert (done.status, data["ok"], data["verdict"]) == (1, False, "incomplete")
    assert verify(bare, "--commits", "HEAD~1..HEAD", "--allow-incomplete").status == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--journal", "ann.py"),
        ("--commits", "HEAD", "--head", "a:1:2"),
        ("--commits", "nowhere"),
    ],
)
def test_a_wrong_command_line_ends_with_2(bare: Checkout, arguments: tuple[str, ...]) -> None:
    assert verify(bare, *arguments).status == 2


@pytest.mark.long
def test_where_nothing_was_reserved_verify_says_nothing_of_it(tmp_path: Path) -> None:
    checkout = make(tmp_path)
    done = verify(checkout)
    assert (done.status, "lease" in done.out) == (2, False)  # there is no record either
    assert not (checkout.root / ".git" / "interlock").exists()
