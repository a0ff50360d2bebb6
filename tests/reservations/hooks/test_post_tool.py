"""`interlock hook post-tool`: writes that went round the edit hook."""

import time
from pathlib import Path

import pytest

from interlock.reservations.store.records import replace
from tests.reservations.hooks.checkout import Checkout, Ran

NOTHING = Ran(0, "", "")


def run_tool(checkout: Checkout, session: str = "one", use: str = "toolu_1", tool: str = "Bash", **writes: str) -> Ran:
    """Let a session run a shell command that writes files: the hook before, the writes, the hook after."""
    call = checkout.call(session, tool, {"command": "make all"}) | {"tool_use_id": use}
    assert checkout.hook("pre-edit", call).status == 0
    for name, text in writes.items():
        (checkout.root / name.replace("__", "/").replace("_py", ".py")).write_text(text)
    return checkout.hook("post-tool", call | {"hook_event_name": "PostToolUse"})


def an_hour_later(checkout: Checkout) -> None:
    """Let every lease be an hour older."""
    with checkout.runtime.store.transaction() as tx:
        for lease in tx.leases():
            tx.put_lease(replace(lease, granted_at=lease.granted_at - 3600, renewed_at=lease.renewed_at - 3600))


@pytest.fixture
def held(checkout: Checkout) -> Checkout:
    """Give a checkout in which alice has held `a.py` and `src/**` for an hour, and has touched nothing since."""
    checkout.agent("alice").reserve_files(["a.py", "src/**"], ttl_minutes=240)
    an_hour_later(checkout)
    return checkout


def test_a_write_to_a_held_file_is_reported_to_writer_and_holder(held: Checkout) -> None:
    ran = run_tool(held, a_py="second\n", src__c_py="second\n", b_py="second\n")
    assert ran.status == 0
    assert "a.py: held by alice as a.py" in ran.context
    assert "src/c.py: held by alice as src/**" in ran.context
    assert "b.py" not in ran.context
    notices = held.messages("alice", "surprise-write")
    assert len(notices) == 1
    assert "claude-one" in notices[0].body
    assert len(held.events("surprise_write")) == 2


def test_each_file_is_reported_once_for_each_lease(held: Checkout) -> None:
    assert run_tool(held, a_py="second\n").context
    assert run_tool(held, use="toolu_2", a_py="third\n") == NOTHING
    assert len(held.messages("alice", "surprise-write")) == 1


def test_what_was_changed_before_the_command_is_not_its_doing(held: Checkout) -> None:
    old = time.time() - 600
    for name in ("a.py", "b.py"):
        (held.root / name).write_text("second\n")
    # The time of the last change of an entry cannot be set, so the command begins later in its place.
    call = held.call("one", "Bash", {"command": "make"})
    held.hook("pre-edit", call)
    with held.runtime.store.transaction() as tx:
        tx.remember("claude-one", "\x1fhook tool toolu_1", "", repr(time.time() + 600), old)
    assert held.hook("post-tool", call) == NOTHING


def test_a_file_that_a_command_removed_is_reported(held: Checkout) -> None:
    call = held.call("one", "Bash", {"command": "python clean.py"})
    held.hook("pre-edit", call)
    (held.root / "src" / "c.py").unlink()
    assert "src/c.py" in held.hook("post-tool", call).context


def test_a_holder_at_work_is_not_surprised_by_its_own_changes(held: Checkout) -> None:
    call = held.call("one", "Bash", {"command": "sleep 60"})
    held.hook("pre-edit", call)
    held.agent("alice").reserve_files(["a.py"])
    (held.root / "a.py").write_text("alice wrote this\n")
    assert held.hook("post-tool", call) == NOTHING


def test_own_files_are_nobodys_surprise(checkout: Checkout) -> None:
    checkout.edit("one", "a.py")
    assert run_tool(checkout, a_py="second\n") == NOTHING


def test_a_tool_that_was_not_seen_to_begin_is_not_judged(held: Checkout) -> None:
    (held.root / "a.py").write_text("second\n")
    assert held.hook("post-tool", held.call("one", "Bash", {"command": "make"})) == NOTHING


@pytest.mark.parametrize("tool", ["Edit", "Read"])
def test_editing_and_reading_tools_are_the_business_of_other_hooks(held: Checkout, tool: str) -> None:
    assert held.hook("post-tool", held.call("one", tool, {"file_path": "a.py"})) == NOTHING


def test_where_nothing_was_ever_reserved_no_store_is_made(checkout: Checkout) -> None:
    assert run_tool(checkout, a_py="second\n") == NOTHING
    assert not (checkout.root / ".git" / "interlock").exists()


def test_without_git_single_files_are_watched(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("")
    (tmp_path / "a.py").write_text("first\n")
    checkout = Checkout(tmp_path.resolve())
    checkout.agent("alice").reserve_files(["a.py"], ttl_minutes=240)
    an_hour_later(checkout)
    assert "a.py: held by alice" in run_tool(checkout, a_py="second\n").context


@pytest.mark.parametrize("data", [b"", b"{", b"[]"])
def test_input_that_is_not_understood_ends_with_one_line_and_stops_nothing(checkout: Checkout, data: bytes) -> None:
    ran = checkout.hook("post-tool", data)
    assert ran.status == 1
    assert "RSV907" in ran.err
    assert not ran.out
