"""A gate that only listens, and runners with an observer in them as a mount would put it there."""

import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.gates.sealed.sealing import write

PROBES = Path(__file__).resolve().parents[3] / "gates" / "sealed" / "probes"
LINE = """
exec(compile(__spec__.loader.get_data("{folder}/{file}"), "{folder}/{file}", "exec"), {{"__name__": "{name}", "FOLDER": "{folder}", "SOCKET": "{socket}", "TARGET": globals()}})
"""  # noqa: E501
LATE = """
import _pytest.config
_space = {{"__name__": "_pytest.config", "FOLDER": "{folder}", "SOCKET": "{socket}", "TARGET": vars(_pytest.config), "LATE": True}}
exec(compile(__spec__.loader.get_data("{folder}/pytest_observer.py"), "{folder}/pytest_observer.py", "exec"), _space)
pytest_configure = _space["register"]
"""  # noqa: E501
KEY = "5a" * 32


@dataclass
class Connection:
    """What one process said."""

    hello: dict[str, Any]
    ignored: bool
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    intact: bool = True

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["e"] == kind]


@dataclass
class Observed:
    """A run, as those saw it who listened."""

    connections: list[Connection]
    output: str
    status: int

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for each in self.connections for event in each.of(kind)]

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        return {event["id"].rpartition("::")[2]: event for event in self.of("case")}

    @property
    def outcomes(self) -> dict[str, str]:
        return {name: case["outcome"] for name, case in self.cases.items()}

    @property
    def ran(self) -> dict[str, str]:
        return {name: case["ran"] for name, case in self.cases.items()}

    @property
    def session(self) -> dict[str, Any]:
        assert all(each.intact for each in self.connections)
        (event,) = self.connections[0].of("session")
        return event


class Listener:
    """Answers each process that connects, and keeps what it says."""

    def __init__(self, path: str, answer: Callable[[dict[str, Any], list[Connection]], dict[str, Any]]) -> None:
        self.connections: list[Connection] = []
        self._answer, self._threads = answer, list[threading.Thread]()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._listen, args=(peer,))
            self._threads.append(thread)
            thread.start()

    def _listen(self, peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as lines:
            hello = json.loads(lines.readline())
            default: dict[str, Any] = {"ignored": False, "key": KEY, "only": []}
            answer = default | self._answer(hello, self.connections)
            connection = Connection(hello, answer["ignored"])
            self.connections.append(connection)
            peer.sendall(json.dumps(answer).encode() + b"\n")
            last = b""
            for line in lines:
                event, _, mac = line.rstrip(b"\n").rpartition(b" ")
                last = hmac.digest(bytes.fromhex(KEY), last + event, hashlib.sha256).hex().encode()
                connection.intact = connection.intact and mac == last
                connection.events.append(json.loads(event))

    def close(self) -> list[Connection]:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join(10)
        return self.connections


@cache
def _place(python: str, package: str) -> Path:
    code = f"import {package}; print({package}.__path__[0])"
    return Path(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip())


def _mount(python: str, folder: Path, sock: str) -> None:
    """Make copies of the packages of the runners, of which one file has a line more."""
    for package, inner, name in (("_pytest", "config", "_pytest.config"), ("unittest", "", "unittest")):
        copy, real = folder / package, _place(python, package)
        copy.mkdir(parents=True)
        for each in real.iterdir():
            if each.name not in (inner, "__init__.py"):
                (copy / each.name).symlink_to(each)
        if inner:
            shutil.copy(real / "__init__.py", copy)
            shutil.copytree(real / inner, copy / inner, ignore=shutil.ignore_patterns("__pycache__"))
        target = copy / inner / "__init__.py"
        line = LINE.format(folder=PROBES, socket=sock, name=name, file=f"{name.split('.')[0].strip('_')}_observer.py")
        target.write_text((real / inner / "__init__.py").read_text() + line)


def observe(
    root: Path, files: dict[str, str], *argv: str, python: str = sys.executable, late: bool = False,
    env: dict[str, str] | None = None, **answer: Any,
) -> Observed:  # fmt: skip
    """Run a command of Python on files with observers in the runners; nested runners are ignored."""
    write(root, files)
    with tempfile.TemporaryDirectory(prefix="gate") as name:
        sock, folder = f"{name}/socket", Path(name) / "packages"

        def reply(hello: dict[str, Any], known: list[Connection]) -> dict[str, Any]:
            return {"ignored": bool(known) and not hello.get("worker"), "root": str(root)} | answer

        listener = Listener(sock, reply)
        if late:
            write(folder, {"interlock_observer.py": LATE.format(folder=PROBES, socket=sock)})
        else:
            _mount(python, folder, sock)
        variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV"))}
        variables |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        variables |= {"PYTEST_PLUGINS": "interlock_observer"} if late else {}
        run = subprocess.run(
            [python, *argv], cwd=root, env=variables | (env or {}), capture_output=True, text=True, timeout=120,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return Observed(listener.close(), run.stdout + run.stderr, run.returncode)
