"""An agent of LangChain with its MCP adapters, in an environment of its own, which holds yesterday's SDK."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.graph import verify_journal
from tests.clients.scripted import GATES, make_project

REPO = Path(__file__).resolve().parents[2]
PYTHON = REPO / ".venv-clients" / "bin" / "python"
LOCK = Path(__file__).with_name("requirements.lock")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Let the agent work its ticket and its task, and return what it reports."""
    assert PYTHON.exists(), "there is no .venv-clients; make it with `sh scripts/prepare clients`, as `make test` does"
    root = make_project(tmp_path_factory.mktemp("langchain") / "project")
    server = [sys.executable, "-m", "interlock", "mcp", "--root", str(root)]
    done = subprocess.run(
        [PYTHON, "-m", "tests.clients.old_client", str(root), *server],
        cwd=REPO,
        env={"PATH": os.environ["PATH"], "HOME": str(root), "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "root": root}


@pytest.mark.long
def test_an_agent_works_a_ticket_from_its_first_state_to_complete(result: dict[str, Any]) -> None:
    ticket = result["ticket"]
    assert ticket["states"] == [
        "fetch_ticket",
        "extract_requirements",
        "scope_context",
        "gather_evidence",
        "propose_plan",
        "act_via_tools",
        "record_and_finalize",
        "complete",
    ]
    assert ticket["status"] == "complete"
    assert [refusal[0] for refusal in ticket["refusals"]] == ["gather_evidence", "propose_plan"]
    assert all(refusal[1:] for refusal in ticket["refusals"])
    assert "hello" in (result["root"] / "README.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_an_agent_drives_a_task_from_dispatch_to_approved(result: dict[str, Any]) -> None:
    task = result["task"]
    assert task["steps"] == ["builder invalid", "builder handover", "tester pass", "reviewer pass"]
    assert (task["status"], task["passed"], task["wrong"]) == ("APPROVED", list(GATES), "RUN605")


@pytest.mark.long
def test_the_client_is_of_the_sdks_first_major_version_and_speaks_an_older_revision(result: dict[str, Any]) -> None:
    assert result["sdk"].startswith("1.")
    assert result["protocol"] < "2026"
    assert {"interlock_begin_run", "task_begin", "validate_envelope"} <= set(result["tools"])


@pytest.mark.long
def test_what_the_agents_did_is_whole_in_the_journal(result: dict[str, Any]) -> None:
    report = verify_journal(result["root"])
    assert (report.problems, report.runs, report.tickets) == ((), 1, 1)


def test_the_lock_of_the_clients_pins_every_package_exactly_and_names_no_address() -> None:
    lines = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == sorted(set(lines))
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9][A-Za-z0-9.+]*", line)] == []
    assert {"langchain-mcp-adapters==0.3.2", "mcp==1.30.0"} <= set(lines)
