"""A caller with a token learns nothing of files that it may not see, by any tool: not even that they are there."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import TextContent

from interlock.server import make_server
from tests.child import git
from tests.clients.scripted import TASK, make_project
from tests.gates.support import put
from tests.graph.ticket.walk import PAYLOADS

pytestmark = pytest.mark.anyio

SECRET = "STRIPE_SECRET=sk_live_abcdefgh"

PAIRS = {
    "ignored": (".env", ".env.none"),
    "ignored by its kind": ("src/server.pem", "src/none.pem"),
    "outside": ("../outside.txt", "../none.txt"),
    "behind a link": ("src/link.txt", "src/link.pem"),
    "state": (".interlock/tokens.json", ".interlock/none.json"),
    "beside evidence": ("artifacts/private/x.md", "artifacts/private/none.md"),
    "a name with a dot": (".netrc", ".nonerc"),
}
"""A file that is there, and one like it that is not."""

ENVELOPE = """TASK_ID: HELLO-001
AGENT: builder
TASK: Write the greeting
STATUS: IN_PROGRESS
INPUTS_USED:
- PATH
GATES_REQUIRED:
- GATE-MSG-STRICT
GATES_PASSED: []
EVIDENCE:
  reports:
  - PATH
FAIL_REASONS: NONE
OUTPUT:
- PATH
NEXT_ACTIONS:
- go on
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_project(tmp_path / "project")
    put(root, ".gitignore", ".env*\nbuild/\n*.pem\nartifacts/\n.interlock/\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    for path, _ in PAIRS.values():
        if not path.startswith(("/", ".git/")) and path != "src/link.txt":
            put(root, path, f"{SECRET}\n")
    (root / "src/link.txt").symlink_to("../.env")
    return root


@pytest.fixture
async def client(root: Path) -> AsyncIterator[Client]:
    async with Client(make_server(root, caller=lambda: "builder")) as connected:
        yield connected


async def said(client: Client, tool: str, path: str, **arguments: Any) -> str:
    """Return what a tool answers, without the name of the file and what differs each time."""
    result = await client.call_tool(tool, arguments)
    texts = " ".join(block.text for block in result.content if isinstance(block, TextContent))
    for name in (path, json.dumps(path)[1:-1], repr(path)[1:-1], path.rpartition("/")[2]):
        texts = texts.replace(name, "PATH")
    return texts


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("kind", PAIRS)
async def test_an_envelope_is_judged_alike_whether_a_hidden_file_is_there(client: Client, kind: str) -> None:
    answers = [
        await said(client, "validate_envelope", path, text=ENVELOPE.replace("PATH", path), agent="builder")
        for path in PAIRS[kind]
    ]
    assert answers[0] == answers[1]
    assert "sk_live" not in answers[0]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("more", [{"inputs": ["PATH"]}, {"page": "PATH"}, {"scope": ["src/**", "PATH"]}], ids=str)
async def test_a_task_names_no_hidden_file(client: Client, root: Path, kind: str, more: dict[str, Any]) -> None:
    answers: list[str] = []
    for path in PAIRS[kind]:
        task = {**TASK, "scope": ["src/*.py"], **json.loads(json.dumps(more).replace("PATH", path))}
        answers.append(await said(client, "task_begin", path, task=task))
    assert answers[0] == answers[1]
    assert "error" in answers[0]
    assert not list(root.rglob("run.json"))


@pytest.mark.parametrize("kind", PAIRS)
async def test_a_hidden_file_is_no_page(client: Client, kind: str) -> None:
    answers = [await said(client, "collect_evidence", path, page=path) for path in PAIRS[kind]]
    assert answers[0] == answers[1]
    assert "MCP408" in answers[0]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(
    "envelope",
    [
        ENVELOPE,
        ENVELOPE.replace("USED:\n- PATH", "USED: []").replace("reports:\n  - PATH", "console: [PATH]"),
    ],
    ids=["all", "console in one line"],
)
async def test_an_answer_to_an_ask_names_no_hidden_file(client: Client, kind: str, envelope: str) -> None:
    begun = await client.call_tool("task_begin", {"task": {**TASK, "scope": ["src/*.py"]}, "run_id": "r"})
    assert not begun.is_error, begun
    answers = [
        await said(client, "task_submit", path, run_id="r", role="builder", envelope=envelope.replace("PATH", path))
        for path in PAIRS[kind]
    ]
    assert answers[0] == answers[1]
    assert "MCP408" in answers[0]


async def test_no_line_of_a_file_comes_back_in_any_answer_about_a_ticket(client: Client, root: Path) -> None:
    ids = {"run_id": "r"}
    await client.call_tool("interlock_begin_run", {"ticket_id": "SHOP-7", **ids})
    targets = {"retrieval_targets": ["repo:**"], "retrieval_justification": "all"}
    stages = (PAYLOADS["fetch_ticket"], PAYLOADS["extract_requirements"], targets)
    for revision, payload in enumerate(stages, 1):
        await client.call_tool("interlock_submit_payload", {**ids, "revision": revision, "payload": payload})
    for locator in (".env:1", "README.md:3", "src/server.pem:1"):
        item = {"source_id": "e", "source_type": "repo", "locator": locator, "snippet": "STRIPE_SECRET=sk_live_guess"}
        item["snippet"] = "The greeting is still to be" if locator.startswith("README") else item["snippet"]
        given = {**ids, "revision": 4, "payload": {"evidence_items": [item]}}
        status = await client.call_tool("interlock_run_status", ids)
        given["revision"] = (status.structured_content or {})["revision"]
        answer = await said(client, "interlock_submit_payload", "no path", **given)
        assert "STG3" in answer
        assert "sk_live_abc" not in answer
        assert "be written" not in answer
    for uri in ("interlock://runs/r/events", "interlock://runs/r/ticket"):
        read = str(await client.read_resource(uri))
        assert "sk_live_abc" not in read
        assert "be written" not in read
    assert "sk_live_abc" not in (root / "artifacts/interlock/tickets.jsonl").read_text()
