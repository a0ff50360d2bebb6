"""A gate's side of the protocol, for tests of the observer in Node: a real socket, and real runners behind it."""

import hmac
import json
import os
import secrets
import shutil
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

_ROOT: Final = Path(__file__).resolve().parents[3]
PROBES: Final = _ROOT / "gates" / "sealed" / "probes"
RUNNERS: Final = Path(os.environ.get("NODE_RUNNERS", _ROOT / ".npm-clients"))
"""Where vitest and jest are installed, each in a folder of its own."""
_SECONDS: Final = 60.0


@dataclass
class Observed:
    """What one command came to: its exit status and output, and the events of each connection that was not ignored."""

    status: int
    stdout: str
    stderr: str
    hellos: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sessions: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])
    forged: int = 0

    @property
    def cases(self) -> dict[str, str]:
        """The outcome of each test, by its id."""
        return {event["id"]: event["outcome"] for event in self.of("case")}

    @property
    def end(self) -> dict[str, Any]:
        """The last event of the only session, which says that nothing was cut off; empty where there is none."""
        last = self.sessions[0][-1] if len(self.sessions) == 1 and self.sessions[0] else {}
        return last if last.get("e") == "session" else {}

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind, of all sessions."""
        return [event for session in self.sessions for event in session if event["e"] == kind]


class Gate:
    """A folder with the observer and a socket that answers it."""

    def __init__(self, folder: Path, root: Path, *, ignores: bool) -> None:
        self.folder, self.root, self._ignores = folder, root, ignores
        self.hellos: list[dict[str, Any]] = []
        self.sessions: list[list[dict[str, Any]]] = []
        self.forged = 0
        self._threads: list[threading.Thread] = []
        self._server = socket.socket(socket.AF_UNIX)
        shutil.copytree(PROBES, folder / "probes", dirs_exist_ok=True)

    def __enter__(self) -> "Gate":
        path = self.folder / "socket"
        path.unlink(missing_ok=True)
        self._server.bind(os.fspath(path))
        self._server.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            hello = lines.readline()
            if not hello:
                return
            self.hellos.append(json.loads(hello))
            key, mac, session = secrets.token_bytes(32), b"", list[dict[str, Any]]()
            self.sessions.append(session)
            answer: dict[str, Any] = {
                "ignored": self._ignores,
                "key": key.hex(),
                "root": os.fspath(self.root),
                "only": [],
            }
            connection.sendall(json.dumps(answer).encode() + b"\n")
            for line in lines:
                body, _, found = line.rstrip(b"\n").rpartition(b" ")
                expected = hmac.new(key, mac + body, "sha256").hexdigest().encode()
                if found == expected:
                    mac = expected
                    session.append(json.loads(body))
                else:
                    self.forged += 1


def installed(name: str) -> Path:
    """Return the `node_modules` in which a runner is installed, or skip the test."""
    modules = RUNNERS / name / "node_modules"
    if not (modules / name).is_dir():
        pytest.skip(f"{name} is not installed: `npm install --prefix {RUNNERS / name} {name}` does that")
    return modules


def environment(folder: Path | None) -> dict[str, str]:
    """Return the variables of a command; with a folder, those that bring its observer in."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
    found = {**kept, "NO_COLOR": "1", "npm_config_update_notifier": "false"}
    return found | ({"NODE_OPTIONS": f"--require {folder}/probes/node_observer.cjs"} if folder else {})


def observe(
    folder: Path, root: Path, argv: Sequence[str], *, env: Mapping[str, str] | None = None, ignores: bool = False
) -> Observed:
    """Run a command in a project while a gate listens."""
    with Gate(folder, root, ignores=ignores) as gate:
        done = run(root, argv, {**environment(folder), **(env or {})})
    events = [session for session in gate.sessions if session]
    return Observed(done.returncode, done.stdout, done.stderr, gate.hellos, events, gate.forged)


def run(root: Path, argv: Sequence[str], env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a command in a project."""
    return subprocess.run(
        argv, cwd=root, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
        check=False,
    )  # fmt: skip
