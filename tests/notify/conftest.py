"""A server that takes webhooks, and programs that keep what they were given."""

import json
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Quiet, running

KEPT = """#!/bin/sh
printf '%s\\0' "$@" >> "$0.args"
cat >> "$0.input"
"""


def history(root: str | Path) -> list[dict[str, Any]]:
    """Return the last events of a project that were sent, the newest first, each with its deliveries."""
    path = Path(root) / ".interlock/notify.jsonl"
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"}")][::-1]


@dataclass
class Hook:
    """A server on a port of this machine: what it got, and with what it answers, the last one again and again."""

    url: str = ""
    answers: list[int] = field(default_factory=lambda: [200])
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list[tuple[str, dict[str, str], bytes]])


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Generator[Hook]:
    """Return a server that takes webhooks; no proxy of the environment leads to it."""
    made = Hook()
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    class Handler(Quiet):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            made.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(made.answers.pop(0) if len(made.answers) > 1 else made.answers[0])
            self.send_header("Location", f"{made.url}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        yield made


def program(path: Path, text: str = KEPT) -> Path:
    """Write a program; by default one that keeps its arguments in `NAME.args` and its input in `NAME.input`."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
