"""A ticket from begin to complete inside the real Claude Code, Codex and Gemini CLI; their model is a script."""

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import Tickets
from tests.agents.providers.base import Reply, Request, ToolCall
from tests.clients import scripted
from tests.clients.programs import AFTER, PROGRAMS, Program, Stage

pytestmark = pytest.mark.slow

RUN_ID = "run-1"
BEGIN, SUBMIT = "interlock_begin_run", "interlock_submit_payload"
ASK = "Work ticket SHOP-7 with Interlock, from its first stage to its last."
COMMANDS = {
    "claude": ("claude", "-p", ASK, "--permission-mode", "acceptEdits", "--allowedTools", "mcp__interlock"),
    "codex": (
        "codex",
        "exec",
        "--skip-git-repo-check",
        "-s",
        "workspace-write",
        "--dangerously-bypass-hook-trust",
        ASK,
    ),
    "gemini": ("gemini", "--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", ASK),
}
PAYLOADS: dict[str, dict[str, Any]] = {
    **scripted.PAYLOADS,
    "scope_context": {"retrieval_targets": ["repo:src/free.py"], "retrieval_justification": "It is to say two."},
    "gather_evidence": {
        "evidence_items": [{"source_id": "ev_1", "source_type": "repo", "locator": "src/free.py:1", "snippet": "x = 1"}]
    },
    "act_via_tools": {
        "actions_taken": ["edited src/free.py"],
        "outputs": ["src/free.py"],
        "checkpoints": ["src/free.py says two"],
    },
    "record_and_finalize": {"artifacts": ["src/free.py"], "final_summary": "It says two.", "outcome": "success"},
}


SEARCH: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": ("ToolSearch", {"query": f"select:mcp__interlock__{BEGIN},mcp__interlock__{SUBMIT}", "max_results": 2}),
    "codex": ("tool_search", {"query": f"{BEGIN} {SUBMIT}", "limit": 8}),
}
"""How a model finds the tools of a server where a program does not offer them at once."""
SEARCHES = 30


class Worker:
    """The model: it begins the run, hands in a wrong payload once, then the right ones, and edits when it is to act.

    Args:
        stage: The project.
    """

    def __init__(self, stage: Stage) -> None:
        self._program = stage.program.name
        edits = [stage.program.edit(stage.free)]
        if self._program == "claude":
            edits.insert(0, ("Read", {"file_path": str(stage.free)}))
        self._steps: list[ToolCall] = [(BEGIN, {"ticket_id": "SHOP-7", "run_id": RUN_ID})]
        self._steps.append(self._payload(1, {"external_source": "jira"}))
        for revision, (state, payload) in enumerate(PAYLOADS.items(), 2):
            if state == "act_via_tools":
                self._steps += edits
            self._steps.append(self._payload(revision, payload))
        self._searches = 0

    @staticmethod
    def _payload(revision: int, payload: dict[str, Any]) -> ToolCall:
        return SUBMIT, {"run_id": RUN_ID, "revision": revision, "payload": payload}

    def __call__(self, request: Request) -> Reply:
        """Say what comes next."""
        if not self._steps:
            return Reply("The ticket is complete.")
        name, arguments = self._steps[0]
        known = next((tool for tool in offered(request) if tool.endswith(name)), "")
        if known or name not in (BEGIN, SUBMIT):
            self._steps.pop(0)
            return Reply(tool_calls=[(known or name, arguments)])
        self._searches += 1
        if self._program not in SEARCH or self._searches > SEARCHES:
            return Reply("There is no such tool.")
        time.sleep(0.5)  # the server of a program that was just started is still starting
        return Reply(tool_calls=[SEARCH[self._program]])


def offered(request: Request) -> list[str]:
    """Return the names by which tools can be called; one that was found in a namespace has that before a `/`."""
    found = [row for row in request.json.get("input", ()) if row.get("type") == "tool_search_output"]
    spaces = [space for row in found for space in row["tools"] if space["type"] == "namespace"]
    return [*request.tools, *(f"{space['name']}/{tool['name']}" for space in spaces for tool in space["tools"])]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_ticket_is_taken_from_begin_to_complete(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    # In its sandbox Codex writes nothing below /dev, where the tests' own folder may lie.
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="interlock-codex-")) if program.name == "codex" else tmp_path
    request.addfinalizer(lambda: shutil.rmtree(folder))
    stage = Stage(program, folder, monkeypatch)
    stage.interlock("init", "--client", program.name)
    worker = Worker(stage)
    with stage.model(worker):
        done = subprocess.run(
            COMMANDS[program.name],
            cwd=stage.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    output = done.stdout + done.stderr
    assert RUN_ID in Tickets(stage.root).runs(), output
    state = Tickets(stage.root).state(RUN_ID)
    assert (state["state"], [row["gate"] for row in state["history"]]) == ("complete", ["retry", *["pass"] * 7]), output
    assert state["history"][-2]["issues"] == [], json.dumps(state["gate"])
    assert stage.free.read_text() == AFTER
