"""`interlock verify --commits` on merges: what one side committed while it held a file has to be in them."""

import json
import time

import pytest

from interlock.reservations.git.commit import commit as interlock_commit
from tests.reservations.git.checkout import Checkout
from tests.reservations.git.test_verify_commits import LATER, checked, rows


@pytest.fixture
def bare(bare: Checkout) -> Checkout:
    """No hooks, and `ann` holds `ann.py`."""
    bare.reserve("ann", "ann.py")
    return bare


def forked(checkout: Checkout, *, theirs: str | None = "first\nby ann\nlast\n", ours: str | None = "other\n") -> None:
    """Let ann commit or delete a held file on `theirs`, and bob change it or another one alone on `main`."""
    checkout.must("ann", "switch", "-q", "-c", "theirs")
    if theirs is None:
        checkout.must("ann", "rm", "-q", "--cached", "ann.py")
        (checkout.root / "ann.py").unlink()
    else:
        checkout.write("ann.py", theirs)
    assert interlock_commit(checkout.agent("ann"), "ann's work")["commit"] is not None
    checkout.release("ann")
    checkout.must("bob", "switch", "-q", "main")
    if ours is not None:
        checkout.write("ann.py", ours)
    checkout.write("bob.py", f"{time.monotonic_ns()}\n")
    checkout.must("bob", "commit", "-q", "--no-verify", "-a", "-m", "bob's work")


def by_bob(checkout: Checkout, command: str, *how: str) -> None:
    """Run git as bob would, hours after every lease was over; nobody holds anything then."""
    at = {"GIT_COMMITTER_DATE": f"@{int(time.time() + 7200)} +0000"}
    done = checkout.run("bob", "git", command, "-q", *how, env=at)
    assert done.status == 0, done


def merged(checkout: Checkout, *how: str) -> str:
    """Merge as bob would."""
    by_bob(checkout, "merge", "--no-edit", "--no-ff", *how)
    return checkout.head()


@pytest.mark.parametrize(
    ("how", "verdict"), [("-s ours theirs", "refused"), ("-X ours theirs", "refused"), ("-X theirs theirs", "free")]
)
def test_a_merge_that_keeps_one_side_throws_held_work_away(bare: Checkout, how: str, verdict: str) -> None:
    forked(bare)
    merge = merged(bare, *how.split())
    report = checked(bare, "HEAD^1..HEAD")
    assert report.verdicts[merge] == verdict
    assert rows(report) == ([] if verdict == "free" else [("RSV214", "ann.py", "ann")])


def test_the_other_side_may_be_the_one_that_is_thrown_away(bare: Checkout) -> None:
    """`-X theirs` on the holder's branch, and a fast-forward of main to that: the parents are the other way round."""
    forked(bare)
    bare.must("bob", "switch", "-q", "theirs")
    merged(bare, "-X", "theirs", "main")
    assert rows(checked(bare, "HEAD^2..HEAD")) == [("RSV214", "ann.py", "ann")]


def test_an_octopus_with_ours_throws_held_work_away(bare: Checkout) -> None:
    forked(bare)
    bare.must("bob", "switch", "-q", "-c", "third", "main")
    bare.write("src/bob.py", "third\n")
    bare.must("bob", "commit", "-q", "--no-verify", "-a", "-m", "third")
    bare.must("bob", "switch", "-q", "main")
    merged(bare, "-s", "ours", "theirs", "third")
    assert rows(checked(bare, "HEAD~1..HEAD")) == [("RSV214", "ann.py", "ann")]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [(None, "refused"), ("first\nlast\n", "unproven"), ("first\nby ann\nlast\nother\n", "free")],
    ids=["deleted", "a line taken out", "both kept"],
)
def test_an_evil_merge_is_held_to_the_lines_of_the_holder(bare: Checkout, text: str | None, verdict: str) -> None:
    forked(bare)
    merged(bare, "-X", "theirs", "theirs")
    if text is None:
        bare.must("bob", "rm", "-q", "ann.py")
    else:
        bare.write("ann.py", text)
    by_bob(bare, "commit", "-a", "--amend", "--no-verify", "--no-edit")
    report = checked(bare, "HEAD^1..HEAD")
    assert report.verdicts[bare.head()] == verdict
    assert {code for code, _, _ in rows(report)} == (set() if verdict == "free" else {"RSV214"})


def test_a_merge_that_git_makes_by_itself_is_clean(bare: Checkout) -> None:
    forked(bare, ours=None)
    merged(bare, "theirs")
    assert checked(bare, "HEAD^1..HEAD").verdict == "clean"


def test_a_deletion_that_a_merge_takes_back_is_found(bare: Checkout) -> None:
    forked(bare, theirs=None, ours=None)
    merged(bare, "-s", "ours", "theirs")
    assert rows(checked(bare, "HEAD^1..HEAD")) == [("RSV214", "ann.py", "ann")]


def test_a_merge_that_the_holder_made_may_drop_its_own_work(bare: Checkout) -> None:
    forked(bare)
    merge = merged(bare, "-s", "ours", "theirs")
    with bare.runtime.store.transaction() as tx:
        data = {"agent": "ann", "commit": merge, "paths": ["ann.py"], "count": 1}
        tx.add_event(str(bare.root), "committed", json.dumps(data), time.time() + LATER)
    assert checked(bare, "HEAD^1..HEAD").findings == ()
