"""The server as a client meets it: what it lists, what a call answers, what an error looks like."""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent
from syrupy.assertion import SnapshotAssertion

from interlock.graph import RunDamagedError
from interlock.server import make_server
from interlock.server.mcp.arguments import MAX_PROBLEMS
from interlock.server.mcp.prompts import COORDINATE, WORK
from interlock.server.mcp.toolsets import ALL
from interlock.server.rules import CallError
from tests.refusals import raises_code

pytestmark = pytest.mark.anyio

MAX_TOOL_LIST_BYTES = 18_432
"""What an agent pays for all tools before it has called one."""


def text_of(result: CallToolResult) -> str:
    """Return the text of a result that has one."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def error_of(result: CallToolResult) -> dict[str, Any]:
    """Return the error of an error result."""
    assert result.is_error
    return json.loads(text_of(result))["error"]


async def tool_list(root: Path, *toolsets: str) -> list[dict[str, Any]]:
    """Return the tools as they go over the wire."""
    server = make_server(root, toolsets=toolsets or ALL)
    return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in await server.list_tools()]


async def test_the_tool_list_is_the_one_that_was_reviewed(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert json.dumps(await tool_list(tmp_path, "tickets", "envelope"), indent=1) == snapshot


async def test_all_tools_with_their_schemas_are_small(tmp_path: Path) -> None:
    assert len(json.dumps(await tool_list(tmp_path), separators=(",", ":"))) <= MAX_TOOL_LIST_BYTES


async def test_every_tool_says_what_it_does_what_it_takes_and_what_it_answers(tmp_path: Path) -> None:
    for tool in await tool_list(tmp_path):
        assert tool["description"].strip(), tool["name"]
        assert tool["inputSchema"]["additionalProperties"] is False, tool["name"]
        assert tool["outputSchema"]["type"] == "object", tool["name"]
        hints = tool["annotations"]
        assert hints["openWorldHint"] is False, tool["name"]
        # Codex takes a missing one for the worst, and asks a person.
        assert hints.get("readOnlyHint") or hints["destructiveHint"] is False, tool["name"]
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)


async def test_toolsets_pick_the_tools(tmp_path: Path) -> None:
    names = {name: {tool["name"] for tool in await tool_list(tmp_path, name)} for name in ALL}
    assert names["tickets"] == {
        "interlock_begin_run",
        "interlock_submit_ticket",
        "interlock_submit_payload",
        "interlock_next_step",
        "interlock_run_status",
    }
    assert names["envelope"] == {"validate_envelope", "envelope_template"}
    assert {tool["name"] for tool in await tool_list(tmp_path)} == set().union(*names.values())


async def test_the_toolset_poc_has_one_tool_and_says_how_to_use_it(tmp_path: Path) -> None:
    (tool,) = await tool_list(tmp_path, "poc")
    assert tool["name"] == "interlock_next_step"
    assert tool in await tool_list(tmp_path, "tickets")
    assert len(await tool_list(tmp_path, "poc", "tickets")) == 5
    server = make_server(tmp_path, toolsets=["poc"])
    assert set(re.findall(r"`(interlock_\w+)`", server.instructions or "")) == {"interlock_next_step"}
    ticket = {"ticket_id": "DEMO-1", "title": "Greet", "state": "intake", "run_id": "r-1"}
    for given, status in (({**ticket, "title": ""}, "retry"), ({"title": "x"}, "retry"), (ticket, "pass")):
        answer = await server.call_tool("interlock_next_step", {"ticket_json": given})
        assert isinstance(answer, CallToolResult)
        assert json.loads(text_of(answer))["status"] == status


@pytest.mark.parametrize("toolsets", [["tickets", "all"], []])
def test_an_unknown_toolset_is_refused(tmp_path: Path, toolsets: list[str]) -> None:
    with raises_code(CallError, "MCP301"):
        make_server(tmp_path, toolsets=toolsets)


async def test_instructions_say_in_six_lines_how_to_work_a_ticket_and_share_a_checkout(tmp_path: Path) -> None:
    instructions = make_server(tmp_path).instructions
    assert instructions is not None
    assert len(instructions.splitlines()) == 6
    assert "interlock_begin_run" in instructions
    assert "reserve_files" in instructions


@pytest.mark.parametrize(
    ("name", "arguments", "codes"),
    [
        ("interlock_begn_run", {}, ["MCP201"]),
        ("interlock_begin_run", {}, ["MCP202"]),
        ("interlock_begin_run", {"ticket": "A-1"}, ["MCP202", "MCP202"]),
        ("interlock_begin_run", {"ticket_id": 1}, ["MCP202"]),
        ("interlock_submit_payload", {"run_id": "r", "revision": "1", "payload": []}, ["MCP202", "MCP202"]),
        ("validate_envelope", {"text": "", "current_status": "DONE"}, ["MCP202"]),
        ("validate_envelope", {"text": "", "gates": ["GATE-A", 1]}, ["MCP202"]),
        ("envelope_template", {"role": "visual-q"}, ["MCP402"]),
    ],
)
async def test_a_call_that_does_not_fit_is_an_error_result_with_code_and_fix(
    tmp_path: Path, name: str, arguments: dict[str, Any], codes: list[str], connected: Client
) -> None:
    error = error_of(await connected.call_tool(name, arguments))
    assert [error["code"], *(each["code"] for each in error.get("problems", []))] == codes
    assert error["message"]
    assert error["fix"]
    assert not (tmp_path / ".interlock").exists(), "nothing was begun"


async def test_a_refused_argument_is_named_with_the_call_that_fits(connected: Client) -> None:
    error = error_of(await connected.call_tool("task_next", {"run_id": "r", "wait_seconds": 41}))
    assert (error["code"], error["place"], error["found"]) == ("MCP202", "wait_seconds", "41")
    assert "`task_next(run_id, role?, wait_seconds?)`" in error["fix"]


async def test_a_call_with_very_many_wrong_arguments_is_answered_soon_and_in_short(connected: Client) -> None:
    wrong = {f"argument_{number}": number for number in range(3000)}
    with anyio.fail_after(5):
        error = error_of(await connected.call_tool("interlock_run_status", wrong))
    assert len(error["problems"]) == MAX_PROBLEMS - 1


async def test_the_prompts_name_the_ticket_and_only_tools_that_are_there(tmp_path: Path, connected: Client) -> None:
    assert [prompt.name for prompt in (await connected.list_prompts()).prompts] == [WORK, COORDINATE]
    tools = {tool["name"] for tool in await tool_list(tmp_path)}
    for name, arguments in ((WORK, {"ticket_id": "SHOP-17"}), (COORDINATE, {})):
        (message,) = (await connected.get_prompt(name, arguments)).messages
        assert isinstance(message.content, TextContent)
        named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)\(", message.content.text))
        assert named <= tools
        assert len(named) >= 3
        assert ("SHOP-17" in message.content.text) == (name == WORK)


async def test_the_workflow_names_every_part_of_the_loop(connected: Client) -> None:
    """Ticket Protocol §Workflow, §Terminal States, §Response Handling."""
    (message,) = (await connected.get_prompt(WORK, {"ticket_id": "A"})).messages
    assert isinstance(message.content, TextContent)
    words = (
        "interlock_begin_run",
        "tickets/ticket.json",
        "required_fields",
        "payload",
        "interlock_submit_ticket",
        "next_role",
        "retry",
        "stop",
        "invalidation_report",
        "complete",
        "fail_closed",
        "continue",
        "next_stage_fields",
        "reason",
    )
    assert [word for word in words if word not in message.content.text] == []


ERRORS = [
    (RunDamagedError("run r is damaged", "Restore it."), {"code": "RUN604", "message": "run r is damaged"}),
    (OSError(28, "No space left on device", "events.jsonl"), {"code": "SYSTEM"}),
    (ValueError("surprise"), {"code": "INTERNAL", "message": "ValueError: surprise"}),
]


@pytest.mark.parametrize(("raised", "expected"), ERRORS, ids=["ours", "system", "defect"])
async def test_an_error_in_a_tool_is_an_error_result_with_a_fix_and_the_server_lives_on(
    tmp_path: Path, raised: Exception, expected: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    server = make_server(tmp_path)

    @server.tool()
    def failing() -> dict[str, str]:
        raise raised

    @server.resource("interlock://failing")
    def failing_resource() -> str:
        raise raised

    async with Client(server) as connected:
        error = error_of(await connected.call_tool("failing", {}))
        assert {key: error[key] for key in expected} == expected
        assert error["fix"]
        with pytest.raises(Exception, match=expected["code"]):
            await connected.read_resource("interlock://failing")
        assert not (await connected.call_tool("interlock_begin_run", {"ticket_id": "A-1"})).is_error
    assert ("Traceback" in caplog.text) == (expected["code"] == "INTERNAL"), "a defect alone has a trace in the log"


async def test_a_broken_configuration_stops_what_needs_it_with_every_fault_and_nothing_else(tmp_path: Path) -> None:
    async with Client(make_server(tmp_path)) as connected:
        (tmp_path / "interlock.toml").write_text('[run]\nmax_reask = 1\n[envelope]\ninputs = "maybe"\n')
        error = error_of(await connected.call_tool("validate_envelope", {"text": "STATUS: BLOCKED"}))
        assert error["code"].startswith("CFG")
        assert len(error["problems"]) == 2
        assert error["message"].startswith("interlock.toml: envelope.inputs: ")
        assert (await connected.list_prompts()).prompts


async def test_the_text_of_a_result_is_its_structured_content(connected: Client) -> None:
    result = await connected.call_tool("interlock_begin_run", {"ticket_id": "Ünïcode-1", "run_id": "r1"})
    text = text_of(result)
    assert json.loads(text) == result.structured_content
    assert "\n" not in text
    assert "Ünïcode-1" in text
