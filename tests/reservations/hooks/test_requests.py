"""Release requests that wait when the edit hook of their holder runs (Negotiation PRD F2, Reservation Tools)."""

import json
import time
from typing import Any

import pytest

from interlock.reservations.hooks.release_requests import look, message, mode_of
from interlock.reservations.leases import calls
from interlock.reservations.store.records import replace
from tests.child import git
from tests.reservations.hooks.checkout import Checkout, Ran
from tests.table import each_row

HOLDER = "claude-one"


def asked(checkout: Checkout, file: str = "a.py", *, holds: str = "", **arguments: Any) -> str:
    """Let the session `one` hold a file, and bob ask for it; returns the thread."""
    checkout.agent(HOLDER).reserve_files([holds or file])
    answer = checkout.agent("bob").negotiate_release(file, "for the release notes", **arguments)
    assert answer["status"] == "pending"
    assert answer["thread_id"]
    return answer["thread_id"]


def make_overdue(checkout: Checkout, thread: str) -> None:
    """Move the time limit of a request into the past."""
    with checkout.runtime.store.transaction() as tx:
        row = tx.negotiation(thread)
        assert row is not None
        tx.put_negotiation(replace(row, deadline=row.created_at - 180))


def test_a_new_request_is_mentioned_once_with_the_number_that_waits(checkout: Checkout) -> None:
    asked(checkout)
    first = checkout.edit("one", "b.py")
    assert "1 release request waits" in first.context
    assert checkout.edit("one", "b.py") == Ran(0, "", "")
    asked(checkout, "src/c.py")
    assert "2 release requests wait" in checkout.edit("one", "b.py").context


def test_without_a_request_nothing_is_said_of_other_messages_neither(checkout: Checkout) -> None:
    checkout.edit("one", "a.py")
    checkout.agent("bob").send_message(HOLDER, "please hurry", "hello")
    for mode in ("", "1", "clean"):
        assert checkout.edit("one", "a.py", INTERLOCK_AUTO_RELEASE=mode) == Ran(0, "", "")


def test_the_advisory_mode_shows_each_request_once_with_the_calls_to_make(checkout: Checkout) -> None:
    thread = asked(checkout, urgency="urgent")
    ran = checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="1")
    assert f'respond_to_release(thread_id="{thread}", action="release")' in ran.context
    assert "bob" in ran.context
    assert "urgent" in ran.context
    assert "for the release notes" in ran.context
    assert json.loads(ran.out)["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    assert checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="1") == Ran(0, "", "")
    assert checkout.leases["a.py"] == HOLDER


def test_the_advisory_mode_shows_a_request_whose_time_ran_out_until_it_is_answered(checkout: Checkout) -> None:
    thread = asked(checkout)
    checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="1")
    make_overdue(checkout, thread)
    for _ in range(2):
        assert "time ran out 3 min ago" in checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="1").context
    assert checkout.leases["a.py"] == HOLDER
    checkout.agent(HOLDER).respond_to_release(thread, "release")
    assert checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="1") == Ran(0, "", "")


def test_a_clean_file_is_released_and_acknowledged_on_the_thread_and_the_agent_is_notified(checkout: Checkout) -> None:
    thread = asked(checkout)
    ran = checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean")
    assert ran.status == 0
    assert "released a.py" in ran.context
    assert "bob" in ran.context
    (ack,) = checkout.messages("bob", "release-ack")
    assert ack.thread_id == thread
    body = json.loads(ack.body)
    assert (body["file"], body["released"], body["released_by"]) == ("a.py", True, HOLDER)
    assert checkout.leases.get("a.py") != HOLDER


def test_a_file_with_uncommitted_changes_is_kept(checkout: Checkout) -> None:
    thread = asked(checkout)
    (checkout.root / "a.py").write_text("second\n")
    ran = checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean")
    assert ran.status == 0
    assert thread in ran.context
    assert checkout.leases["a.py"] == HOLDER
    assert checkout.messages("bob", "release-ack") == []


@pytest.mark.parametrize("how", ["ignored", "assume-unchanged", "skip-worktree"])
def test_work_that_git_does_not_see_is_kept_at_a_request_and_at_the_end_of_the_session(
    checkout: Checkout, how: str
) -> None:
    asked(checkout)
    if how == "ignored":
        git(checkout.root, "rm", "-q", "--cached", "a.py")
        (checkout.root / ".git" / "info" / "exclude").write_text("a.py\n")
        git(checkout.root, "commit", "-qm", "ignored")
    else:
        git(checkout.root, "update-index", f"--{how}", "a.py")
        (checkout.root / "a.py").write_text("second\n")
    checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean")
    assert checkout.leases["a.py"] == HOLDER
    assert checkout.hook("stop", checkout.event("one", "SessionEnd")).status == 0
    assert checkout.leases["a.py"] == HOLDER
    (checkout.root / "a.py").unlink()
    checkout.hook("stop", checkout.event("one", "SessionEnd"))
    assert checkout.leases.get("a.py") != HOLDER


@pytest.mark.parametrize("staged", [False, True])
def test_a_new_file_is_kept_until_it_is_committed(checkout: Checkout, staged: bool) -> None:
    (checkout.root / "new.py").write_text("x\n")
    if staged:
        git(checkout.root, "add", "new.py")
    asked(checkout, "new.py")
    checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean")
    assert checkout.leases["new.py"] == HOLDER
    git(checkout.root, "add", "new.py")
    git(checkout.root, "commit", "-qm", "new")
    assert "released new.py" in checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean").context


def test_a_wide_lease_is_kept_while_anything_under_it_is_changed(checkout: Checkout) -> None:
    (checkout.root / "src" / "other.py").write_text("x\n")
    asked(checkout, "src/c.py", holds="src/**")
    checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean")
    assert checkout.leases["src/**"] == HOLDER


def test_without_git_nothing_counts_as_clean(checkout: Checkout) -> None:
    (checkout.root / ".git").rename(checkout.root.parent / "gone")
    asked(checkout)
    checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean")
    assert checkout.leases["a.py"] == HOLDER


def test_a_file_is_not_released_by_the_very_call_that_edits_it(checkout: Checkout) -> None:
    asked(checkout)
    ran = checkout.edit("one", "a.py", INTERLOCK_AUTO_RELEASE="clean")
    assert (ran.status, "released a.py" in ran.context) == (0, False)
    assert "respond_to_release" in ran.context
    assert checkout.leases["a.py"] == HOLDER
    assert "released a.py" in checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean").context


def test_an_unknown_mode_is_refused_with_those_that_exist(checkout: Checkout) -> None:
    ran = checkout.edit("one", "a.py", INTERLOCK_AUTO_RELEASE="yes")
    assert ran.status == 2
    assert "RSV904" in ran.err
    assert checkout.leases == {}


@each_row(("value", "mode"), [("", ""), ("0", ""), ("off", ""), ("1", "1"), ("clean", "clean"), ("CLEAN ", "clean")])
def test_the_switch_has_three_positions(value: str, mode: str) -> None:
    assert mode_of({"INTERLOCK_AUTO_RELEASE": value}) == mode


@pytest.mark.parametrize(("place", "pattern"), [(".worktrees/one", "src/c.py"), ("lib", "lib/src/c.py")])
@pytest.mark.usefixtures("library")
def test_unsaved_work_in_another_worktree_or_a_submodule_is_not_handed_over_as_clean(
    checkout: Checkout, place: str, pattern: str
) -> None:
    """PRD F2: with uncommitted changes the agent retains the reservation, in whichever worktree it has them.

    Of a submodule git says only that `lib` has changed content, which is no reason to call `lib/src/c.py` clean.
    """
    git(checkout.root, "worktree", "add", "-q", ".worktrees/one")
    file = checkout.root / place / "src" / "c.py"
    assert checkout.edit("one", file).status == 0
    file.write_text("unsaved\n")
    assert checkout.agent("bob").negotiate_release(pattern, "mine next")["status"] == "pending"
    assert checkout.edit("one", "b.py", INTERLOCK_AUTO_RELEASE="clean").status == 0
    assert checkout.leases[pattern] == HOLDER


def test_a_release_that_would_end_a_lease_with_changes_is_not_made_for_a_clean_one(checkout: Checkout) -> None:
    checkout.agent(HOLDER).reserve_files(["a.py"])
    checkout.agent(HOLDER).reserve_files(["b.py"])
    asked(checkout, "{a,b}.py", holds="a.py")
    (checkout.root / "b.py").write_text("second\n")
    checkout.edit("one", "src/c.py", INTERLOCK_AUTO_RELEASE="clean")
    assert {checkout.leases["a.py"], checkout.leases["b.py"]} == {HOLDER}
    git(checkout.root, "checkout", "b.py")
    assert "a.py, b.py" in checkout.edit("one", "src/c.py", INTERLOCK_AUTO_RELEASE="clean").context
    assert HOLDER not in {checkout.leases.get("a.py"), checkout.leases.get("b.py")}


def test_looking_for_requests_costs_less_than_200_ms(checkout: Checkout) -> None:
    ada, bob = checkout.agent(HOLDER), checkout.agent("bob")
    for number in range(10):
        ada.reserve_files([f"src/{number}.py"])
        bob.negotiate_release(f"src/{number}.py", "need it")
    for number in range(30):
        bob.send_message(HOLDER, f"message {number}")
    took: list[float] = []
    for _ in range(5):
        begin = time.perf_counter()
        with calls.entered(ada) as entry:
            waiting = look(entry)
        message(waiting, "1")
        took.append(time.perf_counter() - begin)
        assert len(waiting.open) == 10
    assert min(took) < 0.2
