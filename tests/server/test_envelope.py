"""The envelope tools say what the `validate-envelope` command says, of the same text and the same files."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from interlock.envelope.protocol import DEFAULT_PROTOCOL
from interlock.envelope.template import template
from interlock.server import make_server
from tests.envelope.texts import BUILD, change

pytestmark = pytest.mark.anyio

BLOCKED = change(
    BUILD,
    STATUS="STATUS: BLOCKED",
    INPUTS_USED="INPUTS_USED: []",
    GATES_REQUIRED="GATES_REQUIRED:\n- GATE-MSG-STRICT\n- GATE-VISUAL-QA",
    GATES_PASSED="GATES_PASSED:\n- GATE-MSG-STRICT",
    FAIL_REASONS="FAIL_REASONS:\n- GATE-VISUAL-QA: an input does not exist",
    OUTPUT="OUTPUT:\nNothing was changed.",
)
PASSED = (
    BLOCKED.replace("STATUS: BLOCKED", "STATUS: QA_IN_PROGRESS")
    .replace("frontend-implementer", "a11y-auditor")
    .replace("GATES_REQUIRED:\n", "GATES_REQUIRED:\n- GATE-A11Y-BASELINE\n")
    .replace("GATES_PASSED:\n", "GATES_PASSED:\n- GATE-A11Y-BASELINE\n")
    .replace("  a11y: []", "  a11y:\n    - artifacts/a11y/none.axe.json")
    .replace("FAIL_REASONS:\n- GATE-VISUAL-QA: an input does not exist", "FAIL_REASONS: NONE")
)


async def validated(root: Path, text: str, **expected: Any) -> dict[str, Any]:
    """Return what the tool answers."""
    async with Client(make_server(root)) as connected:
        result = await connected.call_tool("validate_envelope", {"text": text, **expected})
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def by_command(root: Path, text: str, *options: str) -> dict[str, Any]:
    """Return what the command prints of the same text."""
    command = [sys.executable, "-m", "interlock.validate_envelope", "--format", "json", *options, "-"]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        command, cwd=root, input=text, capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    return json.loads(done.stdout)["files"][0]


CASES: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("good", BLOCKED, {}, []),
    ("fenced", f"Here it is:\n\n```\n{BLOCKED}```\n", {"extract": True}, ["--extract"]),
    (
        "another agent, task and gates",
        BLOCKED,
        {"agent": "visual-qa", "task_id": "HOME-UI-002", "gates": ["GATE-VISUAL-QA"]},
        ["--agent", "visual-qa", "--task-id", "HOME-UI-002", "--gates", "GATE-VISUAL-QA"],
    ),
    ("no evidence", PASSED, {"current_status": "QA_IN_PROGRESS"}, ["--current-status", "QA_IN_PROGRESS"]),
]


@pytest.mark.parametrize(("text", "expected", "options"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
async def test_the_tool_says_what_the_command_says(
    tmp_path: Path, text: str, expected: dict[str, Any], options: list[str]
) -> None:
    answer, printed = await validated(tmp_path, text, **expected), by_command(tmp_path, text, *options)
    for key in ("ok", "effective_status", "findings", "normalised"):
        assert answer[key] == printed[key], key
    assert bool(answer["reask"]) is not answer["ok"]


async def test_a_verdict_is_derived(tmp_path: Path) -> None:
    text = BLOCKED.replace("frontend-implementer", "a11y-auditor").replace(
        "- GATE-VISUAL-QA: an input does not exist", "- GATE-A11Y-BASELINE: a field has no label"
    )
    text = text.replace("GATES_REQUIRED:\n", "GATES_REQUIRED:\n- GATE-A11Y-BASELINE\n")
    answer = await validated(tmp_path, text, current_status="QA_IN_PROGRESS")
    assert (answer["ok"], answer["verdict"]) == (True, "FAIL"), answer["findings"]


async def test_the_roster_of_the_project_counts(tmp_path: Path) -> None:
    config = '[roles.ui-engineer]\nkind = "build"\nhands_over = true\nreplaces = "frontend-implementer"\n'
    (tmp_path / "interlock.toml").write_text(config)
    text = BLOCKED.replace("frontend-implementer", "ui-engineer")
    assert (await validated(tmp_path, text))["ok"]
    assert not (await validated(tmp_path, BLOCKED))["ok"]


async def test_a_template_is_the_commands_with_the_contract_of_the_role(tmp_path: Path) -> None:
    async with Client(make_server(tmp_path)) as connected:
        for role in DEFAULT_PROTOCOL.roles:
            result = await connected.call_tool("envelope_template", {"role": role, "task_id": "HOME-UI-001"})
            assert result.structured_content is not None
            assert result.structured_content["text"] == template(role, task_id="HOME-UI-001")
            assert f"`{role}`" in result.structured_content["contract"]
            assert len(json.dumps(result.structured_content)) < 6 * 1024
