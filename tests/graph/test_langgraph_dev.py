"""`langgraph dev` with the shipped `langgraph.json`, for real: both graphs are shown with their schemas, and run."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.child import git

REPO = Path(__file__).resolve().parents[2]
PROGRAM = REPO / ".venv-langgraph" / "bin" / "langgraph"
COPIED = ("langgraph.json", "pyproject.toml", "interlock")

Call = Callable[..., Any]


@pytest.fixture
def call(tmp_path: Path) -> Generator[Call]:
    """Start the server in a folder of its own, where it writes its state, and yield what asks it."""
    assert PROGRAM.exists(), "there is no .venv-langgraph; make it with `sh scripts/prepare langgraph`"
    served = tmp_path / "served"
    served.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name in COPIED:
        (served / name).symlink_to(REPO / name)
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    env = {
        "PATH": path,
        "HOME": str(tmp_path),
        "INTERLOCK_STATE": str(tmp_path / "state"),
        "LANGSMITH_TRACING": "false",
    }
    log = tmp_path / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [str(PROGRAM), "dev", "--port", str(port), "--no-browser", "--no-reload"],
            cwd=served,
            env=env,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def ask(path: str, data: object = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=180) as answer:
            return json.loads(answer.read())

    try:
        until = time.monotonic() + 120
        while True:
            try:
                ask("/ok")
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < until, log.read_text()  # noqa: PT018
                time.sleep(0.2)
        yield ask
        assert "BlockingError" not in log.read_text()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")
def test_both_graphs_are_shown_with_their_schemas_and_run_on_a_copy(call: Call) -> None:
    before = git(REPO, "status", "--porcelain", "examples")
    names = {row["graph_id"]: row["assistant_id"] for row in call("/assistants/search", {})}
    graphs = {name: call(f"/assistants/{assistant}/graph") for name, assistant in names.items()}
    nodes = {name: {node["id"] for node in graph["nodes"]} for name, graph in graphs.items()}
    assert {"IN_PROGRESS", "builder", "command-gates", "APPROVED", "BLOCKED"} <= nodes["task"]
    assert {"fetch_ticket", "act_via_tools", "complete", "fail_closed"} <= nodes["ticket"]
    schemas = {name: call(f"/assistants/{assistant}/schemas") for name, assistant in names.items()}
    assert set(schemas["task"]["input_schema"]["properties"]) == {"run_id", "frozen"}
    assert {"status", "fail_reasons"} <= set(schemas["task"]["output_schema"]["properties"])
    assert "ticket_id" in schemas["ticket"]["input_schema"]["properties"]
    assert "state" in schemas["ticket"]["output_schema"]["properties"]
    for _ in range(2):  # each thread has a copy of its own, with the bug still in it
        thread = call("/threads", {})["thread_id"]
        end = call(f"/threads/{thread}/runs/wait", {"assistant_id": "task", "input": {}})
        assert (end["run_id"], end["status"], end["attempt"]) == (thread, "APPROVED", 2)
    thread = call("/threads", {})["thread_id"]
    call(f"/threads/{thread}/runs/wait", {"assistant_id": "ticket", "input": {"ticket_id": "T-1"}})
    assert call(f"/threads/{thread}/state")["next"] == ["fetch_ticket"]
    assert git(REPO, "status", "--porcelain", "examples") == before
