"""Two real clients share a checkout: over stdio, each with its own server process, and over HTTP with their tokens."""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client, StdioServerParameters

from interlock.graph import verify_journal
from interlock.journal import Journal
from tests.child import git, python
from tests.clients.test_sdk import MODES, call
from tests.server.stdio_process import COMMAND

REPO = str(Path(__file__).parents[2])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a git repository."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    return root


@asynccontextmanager
async def over_stdio(root: Path, agent: str, mode: Literal["auto", "legacy"]) -> AsyncGenerator[Client]:
    """Connect a client whose server is started with an agent's name, as its session would be."""
    environment = {**os.environ, "PYTHONPATH": REPO, "INTERLOCK_AGENT_ID": agent}
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=str(root), env=environment)
    async with Client(parameters, mode=mode) as client:
        yield client


async def walk(anna: Client, ben: Client) -> None:
    """Reserve, conflict, ask and wait, defer, ask again, release, and find the file handed over."""
    granted = await call(anna, "reserve_files", patterns=["src/app.py", "src/db/**"], reason="new login")
    assert [lease["holder"] for lease in granted["reservations"]] == ["anna", "anna"]
    again = await call(anna, "reserve_files", patterns=["src/app.py"], reason="new login")
    assert again["reservations"][0]["reservation_id"] in {row["reservation_id"] for row in granted["reservations"]}

    refused = await call(ben, "reserve_files", patterns=["src/db/schema.sql", "README.md"])
    assert refused["reservations"] == [], "all or nothing"
    (error,) = refused["errors"]
    assert (error["code"], error["conflict"]["holder"], error["conflict"]["holder_state"]) == (
        "RSV201",
        "anna",
        "alive",
    )
    checked = await call(ben, "check_conflicts", patterns=["src/db/schema.sql", "README.md"])
    assert (len(checked["conflicts"]), checked["clear"]) == (1, ["README.md"])

    asked = await call(ben, "negotiate_release", file="src/db/schema.sql", reason="index", urgency="urgent")
    thread = asked["thread_id"]
    assert asked["status"] == "pending"
    (message,) = (await call(anna, "fetch_inbox"))["messages"]
    body = json.loads(message["body"])
    assert (message["thread_id"], message["ack_required"]) == (thread, True)
    assert (body["file"], body["requester"], body["urgency"]) == ("src/db/schema.sql", "ben", "urgent")
    await call(anna, "respond_to_release", thread_id=thread, action="defer", eta_minutes=3, reason="a test runs")

    deferred = await call(ben, "negotiate_release", file="src/db/schema.sql", reason="index", urgency="urgent")
    assert (deferred["thread_id"], deferred["status"], deferred["eta_minutes"]) == (thread, "defer", 3)

    waited: list[dict[str, Any]] = []

    async def wait() -> None:
        waited.append(await call(ben, "reserve_files", patterns=["src/db/schema.sql"], wait_seconds=40))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            # The other client is served while this one waits.
            assert (await call(anna, "my_reservations"))["reservations"]
            done = await call(anna, "respond_to_release", thread_id=thread, action="release")
            assert done["status"] == "released"
    assert [lease["pattern"] for lease in waited[0]["reservations"]] == ["src/db/schema.sql"]
    assert waited[0]["errors"] == []

    topics = [message["topic"] for message in (await call(ben, "fetch_inbox"))["messages"]]
    assert topics.index("release-defer") < topics.index("release-ack")
    agents = {row["name"]: row["leases"] for row in (await call(ben, "list_agents"))["agents"]}
    assert agents == {"anna": 1, "ben": 1}
    sent = await call(ben, "send_message", to="Anna", body="Thank you.", topic="thanks")
    assert sent["sent"] is True
    assert [each["body"] for each in (await call(anna, "fetch_inbox"))["messages"]][-1] == "Thank you."
    assert (await call(anna, "release_all"))["released_count"] == 1
    assert (await call(ben, "release_all"))["released_count"] == 1


def story(root: Path) -> list[str]:
    """Return the events of the reservations in the journal, once it was verified."""
    assert verify_journal(root).problems == ()
    return [entry.type for entry in Journal(root / "artifacts/interlock/events.jsonl").entries("reservations")]


@pytest.mark.long
@pytest.mark.sample(every=2)
@pytest.mark.parametrize("mode", MODES)
def test_two_clients_share_a_checkout_over_stdio(project: Path, mode: Literal["auto", "legacy"]) -> None:
    async def both() -> None:
        async with over_stdio(project, "anna", mode) as anna, over_stdio(project, "ben", "auto") as ben:
            await walk(anna, ben)

    anyio.run(both)
    events = story(project)
    assert events.count("agent_joined") == 2
    assert {"release_requested", "release_deferred", "release_answered", "lease_refused"} <= set(events)


@pytest.mark.long
def test_a_client_that_dies_is_taken_over_with_a_word(project: Path) -> None:
    """The client's process is the holder: its server may end with it or not."""
    holder = (
        "import anyio, os, sys\n"
        "from mcp import Client, StdioServerParameters\n"
        "async def main():\n"
        f"    server = StdioServerParameters(command={COMMAND[0]!r}, args={COMMAND[1:]!r}, env=dict(os.environ))\n"
        "    async with Client(server) as client:\n"
        "        done = await client.call_tool('reserve_files', {'patterns': ['a.py']})\n"
        "        assert done.structured_content['errors'] == []\n"
        "        print('held', flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    environment = {**os.environ, "PYTHONPATH": REPO, "INTERLOCK_AGENT_ID": "anna"}
    with python(holder, cwd=project, env=environment) as client:
        try:
            assert client.line() == "held\n"
        finally:
            client.kill()

    async def take() -> dict[str, Any]:
        async with over_stdio(project, "ben", "auto") as ben:
            return await call(ben, "reserve_files", patterns=["a.py"])

    taken = anyio.run(take)
    assert (taken["errors"], len(taken["taken_over"])) == ([], 1)
