"""A prompt for each role of the present roster, and for the ticket workflow."""

import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from interlock.agents.contract import contract
from interlock.envelope.protocol import DEFAULT_PROTOCOL
from interlock.server import make_server
from interlock.server.mcp.prompts import COORDINATE, WORK, WORKFLOW

pytestmark = pytest.mark.anyio

ROLES = [role.name for role in DEFAULT_PROTOCOL.roles.values() if role.kind != "orchestrator"]


async def text_of(connected: Client, name: str, arguments: dict[str, str] | None = None) -> str:
    """Return the text of a prompt."""
    (message,) = (await connected.get_prompt(name, arguments)).messages
    assert isinstance(message.content, TextContent)
    return message.content.text


async def test_there_is_one_for_each_role_and_for_the_workflow(connected: Client) -> None:
    listed = (await connected.list_prompts()).prompts
    assert [prompt.name for prompt in listed] == [WORKFLOW, WORK, COORDINATE, *ROLES]
    assert all(prompt.description for prompt in listed)


@pytest.mark.parametrize("role", ROLES)
async def test_the_prompt_of_a_role_holds_its_contract(role: str, connected: Client) -> None:
    assert contract(role, DEFAULT_PROTOCOL) in await text_of(connected, role)


async def test_a_role_of_the_project_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "docs.md").write_text("---\nname: docs-writer\ndescription: Writes docs.\n---\n\nWrite.\n")
    config = '[roles.docs-writer]\nkind = "build"\n[agents.docs-writer]\nprompt = "prompts/docs.md"\n'
    async with Client(make_server(tmp_path)) as connected:
        (tmp_path / "interlock.toml").write_text(config)
        listed = {prompt.name: prompt.description for prompt in (await connected.list_prompts()).prompts}
        assert listed["docs-writer"] == "Writes docs."
        text = await text_of(connected, "docs-writer")
    assert text.startswith("Write.")
    assert "ASSIGNED_AGENT is `docs-writer`" in text


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    "word",
    [
        "interlock_begin_run", "tickets/ticket.json", "required_fields", "payload", "interlock_submit_ticket",
        "next_role", "retry", "stop", "invalidation_report", "complete", "fail_closed", "continue", "next_stage_fields",
        "reason",
    ],
)  # fmt: skip
async def test_the_workflow_names_every_part_of_the_loop(word: str, connected: Client) -> None:
    """Ticket Protocol §Workflow, §Terminal States, §Response Handling."""
    assert word in await text_of(connected, WORKFLOW)


async def test_work_this_ticket_is_the_workflow_with_the_ticket(connected: Client) -> None:
    workflow = await text_of(connected, WORKFLOW)
    text = await text_of(connected, WORK, {"ticket_id": "SHOP-17"})
    assert text.startswith(workflow)
    assert "SHOP-17" in text


async def test_the_one_on_coordination_names_only_tools_that_are_there(tmp_path: Path) -> None:
    server = make_server(tmp_path, toolsets=["reservations"])
    tools = {tool.name for tool in await server.list_tools()}
    async with Client(server) as connected:
        text = await text_of(connected, COORDINATE)
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)\(", text))
    assert {"reserve_files", "negotiate_release", "respond_to_release"} <= named
    assert named <= tools


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("visual-q", {}), ("orchestrator", {}), (WORK, {}), (WORK, {"ticket_id": "A", "x": "y"}), (WORKFLOW, {"x": "y"})],
)
async def test_what_does_not_fit_is_refused(name: str, arguments: dict[str, Any], connected: Client) -> None:
    with pytest.raises(MCPError) as caught:
        await connected.get_prompt(name, arguments)
    assert caught.value.error.code == -32602
