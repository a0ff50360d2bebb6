"""`interlock hook post-tool`, as the clients call it: before a tool, after it, and where it failed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from interlock.reservations import place
from interlock.reservations.git.lease_history import read_history
from tests.child import git
from tests.reservations.hooks.checkout import Checkout, Ran

NOTHING = Ran(0, "", "")
AFTER = {"claude": "PostToolUse", "codex": "PostToolUse", "gemini": "AfterTool"}
SHELL = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command"}


def calls_of(checkout: Checkout, client: str, session: str, tool: str, arguments: object) -> dict[str, Any]:
    """Return what a client says of a call; Gemini's has no id."""
    call = checkout.call(session, tool, arguments)
    if client == "gemini":
        del call["tool_use_id"]
    return call


def edited(checkout: Checkout, session: str, name: str, text: str, client: str = "claude") -> None:
    """Let a session write a file by its editing tool."""
    call = calls_of(checkout, client, session, "Write", {"file_path": name, "content": text})
    assert checkout.hook("pre-edit", call, "--client", client).status == 0
    (checkout.root / name).write_text(text)
    checkout.hook("post-tool", call | {"hook_event_name": AFTER[client]}, "--client", client)


def harmed(checkout: Checkout, session: str, name: str, client: str = "claude", after: str = "", **more: object) -> Ran:
    """Let a session's command write over a file."""
    call = calls_of(checkout, client, session, SHELL[client], {"command": "python fix.py"}) | more
    assert checkout.hook("pre-edit", call, "--client", client).status == 0
    (checkout.root / name).write_text("harm\n")
    return checkout.hook("post-tool", call | {"hook_event_name": after or AFTER[client]}, "--client", client)


@pytest.mark.parametrize("client", AFTER)
def test_what_a_command_did_to_a_held_file_is_undone_and_told(checkout: Checkout, client: str) -> None:
    edited(checkout, "one", "a.py", "mine\n", client)
    ran = harmed(checkout, "two", "a.py", client)
    assert (checkout.root / "a.py").read_text() == "mine\n"
    assert f"They were put back as {client}-one left them" in ran.context
    assert [
        f"{client}-two ({SHELL[client]})" in row.body for row in checkout.messages(f"{client}-one", "shared-checkout")
    ]
    data = json.loads(checkout.events("surprise_write")[0].data)
    assert (data["agent"], data["holder"], data["outcome"]) == (f"{client}-two", f"{client}-one", "back")


def test_what_a_line_with_a_patch_does_beside_it_is_undone(checkout: Checkout) -> None:
    edited(checkout, "one", "a.py", "mine\n")
    patch = (
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: own.py\n+x\n*** End Patch\nEOF\nsed -i s/mine/harm/ a.py"
    )
    call = checkout.call("two", "Bash", {"command": patch})
    assert checkout.hook("pre-edit", call).status == 0
    (checkout.root / "own.py").write_text("x\n")
    (checkout.root / "a.py").write_text("harm\n")
    ran = checkout.hook("post-tool", call | {"hook_event_name": "PostToolUse"})
    assert "put back" in ran.context
    assert [(checkout.root / name).read_text() for name in ("a.py", "own.py")] == ["mine\n", "x\n"]
    assert checkout.leases["own.py"] == "claude-two"


def test_a_command_that_failed_has_an_event_of_its_own(checkout: Checkout) -> None:
    edited(checkout, "one", "a.py", "mine\n")
    assert "put back" in harmed(checkout, "two", "a.py", after="PostToolUseFailure").context
    assert (checkout.root / "a.py").read_text() == "mine\n"


def test_where_nothing_was_ever_reserved_no_store_is_made(checkout: Checkout) -> None:
    assert harmed(checkout, "one", "a.py") == NOTHING
    assert not (checkout.root / ".git" / "interlock").exists()


def test_without_git_held_files_are_watched_as_well(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("")
    checkout = Checkout(tmp_path.resolve())
    edited(checkout, "one", "a.py", "mine\n")
    harmed(checkout, "two", "a.py")
    assert (checkout.root / "a.py").read_text() == "mine\n"


def test_subagents_of_one_session_are_agents(checkout: Checkout) -> None:
    first = checkout.call("one", "Edit", {"file_path": "a.py"}, agent_id="sub-1")
    assert checkout.hook("pre-edit", first).status == 0
    (checkout.root / "a.py").write_text("mine\n")
    checkout.hook("post-tool", first | {"hook_event_name": "PostToolUse"})
    refused = checkout.hook("pre-edit", first | {"agent_id": "sub-2"})
    assert refused.status == 2
    assert "claude-one/sub-1" in refused.err
    assert "put back" in harmed(checkout, "one", "a.py", agent_id="sub-2").context
    end = checkout.event("one", "SubagentStop", agent_id="sub-1")
    assert checkout.hook("stop", end).status == 0
    assert checkout.leases == {"a.py": "claude-one"}
    history, _ = read_history(place.find(str(checkout.root)))
    (held,) = [lease for lease in history.leases if lease.ended is None]
    assert held.agent == "claude-one", "what verifies commits later knows who held it since"
    assert checkout.hook("pre-edit", first | {"agent_id": "sub-3"}).status == 0, "its session's files are free for it"


def test_a_file_of_a_worktree_that_a_session_elsewhere_edits_is_watched_there(checkout: Checkout) -> None:
    tree = checkout.root.parent / "tree"
    git(checkout.root, "worktree", "add", "-q", str(tree))
    edited(checkout, "one", str(tree / "a.py"), "mine\n")
    harmed(checkout, "two", str(tree / "a.py"))
    assert (tree / "a.py").read_text() == "mine\n"
    assert (checkout.root / "a.py").read_text() == "first\n"


def test_held_files_of_a_checkout_that_is_removed_whole_come_back(checkout: Checkout) -> None:
    edited(checkout, "one", "a.py", "mine\n")
    call = checkout.call("two", "Bash", {"command": "python clean.py"})
    assert checkout.hook("pre-edit", call).status == 0
    shutil.rmtree(checkout.root)
    ran = checkout.hook("post-tool", call | {"hook_event_name": "PostToolUse"}, cwd=checkout.root.parent)
    assert "put back as claude-one left them" in ran.context
    assert (checkout.root / "a.py").read_text() == "mine\n"


def test_input_that_is_not_understood_ends_with_one_line_and_stops_nothing(checkout: Checkout) -> None:
    ran = checkout.hook("post-tool", b"{")
    assert ran.status == 1
    assert "RSV907" in ran.err
    assert not ran.out
