"""What the texts of other tools of this kind have their agents send is taken, and what is only claimed is checked."""

import json
from pathlib import Path

import pytest
from mcp import Client

from interlock.server import make_server
from tests.clients.scripted import TASK, make_project
from tests.server.reservation_team import call, team
from tests.server.test_app import error_of

pytestmark = pytest.mark.anyio


async def test_a_path_may_be_absolute_below_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    async with team(tmp_path, "anna", "ben") as (anna, ben):
        made = await call(anna, "reserve_files", patterns=[f"{tmp_path}/src/a.py"])
        assert [row["pattern"] for row in made["reservations"]] == ["src/a.py"]
        found = await call(ben, "check_conflicts", patterns=[f"{tmp_path}/src/*.py"])
        assert [row["held_pattern"] for row in found["conflicts"]] == ["src/a.py"]
        asked = await call(ben, "negotiate_release", file=f"{tmp_path}/src/a.py", reason="r")
        assert asked["status"] == "pending"
        for path in ("/etc/passwd", f"{tmp_path}/../x", f"{tmp_path}x/a.py"):
            refused = await call(ben, "reserve_files", patterns=[path])
            assert [row["code"] for row in refused["errors"]] == ["RSV101"]


async def test_a_requester_is_compared_and_an_answer_is_shown_as_an_acknowledgement(anna: Client, ben: Client) -> None:
    await call(anna, "reserve_files", patterns=["a.py"])
    asked = await call(ben, "negotiate_release", file="a.py", reason="r", urgency="urgent")
    thread = {"thread_id": asked["thread_id"], "action": "defer", "eta_minutes": 5, "file": "a.py"}
    wrong = await call(anna, "respond_to_release", **thread, requester="cleo")
    assert [(row["code"], row["place"], row["expected"]) for row in wrong["errors"]] == [("RSV304", "requester", "ben")]
    (row,) = json.loads((await ben.read_resource("interlock://reservations")).contents[0].text)["negotiations"]  # type: ignore[union-attr]
    assert (row["state"], row["ack_required"], row["acked_at"]) == ("pending", True, None)
    assert (await call(anna, "respond_to_release", **thread, requester="ben"))["status"] == "deferred"
    (row,) = json.loads((await ben.read_resource("interlock://reservations")).contents[0].text)["negotiations"]  # type: ignore[union-attr]
    assert (row["ack_required"], row["acked_at"] is not None) == (True, True)
    inbox = (await call(anna, "fetch_inbox", unread_only=False))["messages"]
    assert [message["acked_at"] == row["acked_at"] for message in inbox] == [True]


async def test_a_cursor_may_be_text_and_capabilities_are_said_to_be_unknown(anna: Client, ben: Client) -> None:
    await call(ben, "my_reservations")
    await call(anna, "send_message", to="ben", body="one")
    assert len((await call(ben, "fetch_inbox", cursor="0", unread_only=False))["messages"]) == 1
    listed = await call(anna, "list_agents", capability="python")
    assert {row["name"] for row in listed["agents"]} == {"anna", "ben"}
    assert "capabilities" in listed["note"]


async def test_a_longer_wait_is_cut_to_the_longest_one_and_the_answer_says_so(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("[reservations]\nmax_wait_seconds = 0.2\n")
    async with team(tmp_path, "anna", "ben") as (anna, ben):
        await call(anna, "reserve_files", patterns=["a.py"])
        waited = await call(ben, "reserve_files", patterns=["a.py"], wait_seconds=120)
        assert (waited["longest_wait_seconds"], waited["waiting"]["position"]) == (0.2, 1)
        asked = await call(ben, "negotiate_release", file="a.py", reason="r", wait_seconds=120)
        assert (asked["longest_wait_seconds"], asked["status"]) == (0.2, "timeout")
        assert "longest_wait_seconds" not in await call(ben, "reserve_files", patterns=["a.py"], wait_seconds=0.1)


async def test_a_run_is_ended_by_who_began_it_alone_and_its_files_are_free(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    who = ["builder"]
    async with Client(make_server(root, caller=lambda: who[0])) as client:
        begun = await client.call_tool("task_begin", {"task": TASK, "run_id": "r"})
        assert not begun.is_error
        who[0] = "tester"
        assert error_of(await client.call_tool("task_abandon", {"run_id": "r"}))["code"] == "MCP409"
        who[0] = "builder"
        for ended in (True, False):
            assert await call(client, "task_abandon", run_id="r") == {"run_id": "r", "ended": ended}
        taken = await client.call_tool("task_next", {"run_id": "r", "wait_seconds": 0})
        assert (taken.structured_content or {})["phase"] == "done"
        assert (await client.call_tool("task_abandon", {"run_id": "none"})).is_error
    async with Client(make_server(root)) as client:
        await client.call_tool("task_begin", {"task": TASK, "run_id": "s"})
        assert await call(client, "task_abandon", run_id="s") == {"run_id": "s", "ended": True}
