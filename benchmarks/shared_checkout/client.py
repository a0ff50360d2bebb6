"""The client of one agent: a process that calls the hooks of its tools and runs its commands, as it is told to.

    python -m benchmarks.shared_checkout.client

It reads one JSON object a line and answers with one. So hooks and commands have the ancestors that they have in real
clients, the agents' clients are different processes, and one can be killed while its command runs.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.shared_checkout.programs import Interlock

KILLED: Final = 137
_OUTPUT_BYTES: Final = 4000


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Run a command until it ends or its time is over, and return its status and what it said.

    Output goes to a file, so that what a command leaves in the background holds nobody up.
    """
    target = Path(order["output"])
    begun = time.monotonic()
    with target.open("wb") as file:
        child = subprocess.Popen(
            ["bash", "-c", order["line"]],
            cwd=order["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **order.get("env", {})},
        )
        try:
            status = child.wait(order["seconds"])
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            status = KILLED
    said = target.read_bytes()[-_OUTPUT_BYTES:].decode("utf-8", "replace")
    return {"status": status, "said": said, "begun": begun, "ended": time.monotonic()}


def hook(order: dict[str, Any]) -> dict[str, Any]:
    """Call a hook, and return its status, what it said to the agent, and why it refused."""
    done = subprocess.run(
        order["command"],
        cwd=order["cwd"],
        input=json.dumps(order["input"]).encode(),
        capture_output=True,
        check=False,
    )
    text = done.stdout.decode("utf-8", "replace").strip()
    try:
        context = json.loads(text)["hookSpecificOutput"]["additionalContext"] if text else ""
    except (ValueError, KeyError):
        context = text
    return {"status": done.returncode, "context": context, "error": done.stderr.decode("utf-8", "replace").strip()}


def main() -> None:
    """Do what standard input says, line by line."""
    for line in sys.stdin:
        order = json.loads(line)
        answer = hook(order) if order["do"] == "hook" else run(order)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


class Client:
    """The client process of one agent, from the side of the harness."""

    def __init__(self, name: str, session: str, env: dict[str, str], folder: Path) -> None:
        self.name, self.session, self.folder = name, session, folder
        self.number = 0
        named = {"INTERLOCK_AGENT_ID": name} if name else {}
        marks = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session} if session else {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.shared_checkout.client"],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**env, **named, **marks},
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        """Let the process do something, and return its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise BrokenPipeError(f"the client of {self.name} has ended")
        return json.loads(answer)

    def hook(
        self,
        build: Interlock,
        name: str,
        event: str,
        tool: str,
        tool_input: dict[str, Any],
        cwd: Path,
        use: str,
        **more: Any,
    ) -> dict[str, Any]:
        """Call a hook with the input of a tool call, as the client sends it."""
        data = {
            "session_id": self.session,
            "transcript_path": "/dev/null",
            "cwd": str(cwd),
            "permission_mode": "default",
            "hook_event_name": event,
            "tool_name": build.tool(tool),
            "tool_input": tool_input,
            "tool_use_id": use,
            **more,
        }
        where = str(cwd) if cwd.is_dir() else str(self.folder)
        return self.ask(do="hook", command=build.hook(name), input=data, cwd=where)

    def use_id(self) -> str:
        """Return the id of the next use of a tool."""
        self.number += 1
        return f"toolu_{self.name}_{self.number}"

    def run(self, line: str, cwd: Path, seconds: float, env: dict[str, str] | None = None) -> dict[str, Any]:
        """Run a command line."""
        output = self.folder / f"output-{self.name or 'person'}"
        where = str(cwd) if cwd.is_dir() else str(self.folder)
        return self.ask(do="run", line=line, cwd=where, seconds=seconds, output=str(output), env=env or {})

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    main()
