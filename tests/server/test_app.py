"""The server as a client meets it: what it lists, what a call answers, what an error looks like."""

import json
import logging
import re
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent
from pydantic import Field
from syrupy.assertion import SnapshotAssertion

from interlock.graph import RunDamagedError
from interlock.server import make_server
from interlock.server.mcp.toolsets import ALL, ToolsetError

pytestmark = pytest.mark.anyio

MAX_TOOL_LIST_BYTES = 18_432
"""What an agent pays for all twenty-three tools before it has called one."""


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


@pytest.mark.parametrize("toolsets", [["ticket"], ["tickets", "all"], [], [" "], ["nope"]])
def test_an_unknown_toolset_is_refused(tmp_path: Path, toolsets: list[str]) -> None:
    with pytest.raises(ToolsetError) as caught:
        make_server(tmp_path, toolsets=toolsets)
    assert (caught.value.code, toolsets != ["nope"] or "tickets, tasks" in caught.value.fix) == ("MCP301", True)


def test_the_logging_of_the_embedding_program_is_left_alone(tmp_path: Path) -> None:
    before = (logging.root.level, list(logging.root.handlers))
    make_server(tmp_path)
    assert (logging.root.level, list(logging.root.handlers)) == before


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
        ("interlock_begin_run", {}, ["MCP203"]),
        ("interlock_begin_run", {"ticket": "A-1"}, ["MCP202", "MCP203"]),
        ("interlock_begin_run", {"ticket_id": 1}, ["MCP204"]),
        ("interlock_submit_payload", {"run_id": "r", "revision": "1", "payload": []}, ["MCP204", "MCP204"]),
        ("validate_envelope", {"text": "", "current_status": "DONE"}, ["MCP204"]),
        ("envelope_template", {"role": "visual-q"}, ["MCP302"]),
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


async def test_a_limit_that_only_the_tool_knows_is_reported_the_same_way(tmp_path: Path) -> None:
    server = make_server(tmp_path, toolsets=["envelope"])

    @server.tool()
    def limited(count: Annotated[int, Field(le=3)]) -> dict[str, int]:
        return {"count": count}

    async with Client(server) as connected:
        error = error_of(await connected.call_tool("limited", {"count": 4}))
        assert (error["code"], error["place"], error["found"]) == ("MCP204", "count", "4")
        assert (await connected.call_tool("limited", {"count": 3})).structured_content == {"count": 3}


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
        for listing in (connected.list_prompts(), connected.read_resource("interlock://gates")):
            with pytest.raises(Exception, match=r"CFG\d+: interlock.toml: \w+\.") as caught:
                await listing
            assert ".." not in str(caught.value)
        (tmp_path / "interlock.toml").write_text("")
        assert (await connected.list_prompts()).prompts


async def test_the_text_of_a_result_is_its_structured_content(connected: Client) -> None:
    result = await connected.call_tool("interlock_begin_run", {"ticket_id": "Ünïcode-1", "run_id": "r1"})
    text = text_of(result)
    assert json.loads(text) == result.structured_content
    assert "\n" not in text
    assert "Ünïcode-1" in text
