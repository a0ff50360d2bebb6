"""Tracing with the settings of LangSmith: what it sends where, and that nothing is sent unless it is switched on."""

import os
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests import warm
from tests.campaign.test_kills import greeting_project
from tests.serving import Quiet, running

KEYS = {"LANGSMITH_API_KEY": "lsv2_pt_0123456", "OPENAI_API_KEY": "sk-9876543210ab", "MY_SERVICE_TOKEN": "tok_abcdefg"}


class Collector(ThreadingHTTPServer):
    """A server on loopback that takes whatever is posted."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.requests: list[tuple[str, bytes]] = []
        self.keys: set[str | None] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def posted(self) -> bytes:
        return b"\n".join(body for _, body in self.requests)


class Taking(Quiet):
    """Keeps each request and answers with an empty object."""

    def do_GET(self) -> None:
        self._take()

    def do_POST(self) -> None:
        self._take()

    def _take(self) -> None:
        assert isinstance(self.server, Collector)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.path, body))
        self.server.keys.add(self.headers.get("x-api-key"))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def run(root: Path, **settings: str) -> None:
    """Run the small project to its end, with keys in the environment."""
    greeting_project(root)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH_", "LANGCHAIN_"))}
    done = warm.interlock(root, "run", "task.toml", env={**clean, **KEYS, **settings})
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_a_run_posts_its_nodes_to_the_endpoint_and_none_of_the_keys_beside_the_one_that_signs(tmp_path: Path) -> None:
    with running(Collector()) as server:
        run(
            tmp_path / "p",
            LANGSMITH_TRACING="true",
            LANGSMITH_ENDPOINT=server.url,
            LANGSMITH_PROJECT="our-runs",
            LANGSMITH_DISABLE_RUN_COMPRESSION="true",
        )
    assert {path for path, _ in server.requests} <= {"/info", "/runs/multipart"}
    for name in ("task HELLO-001", "IN_PROGRESS", "builder", "QA_IN_PROGRESS", "tester", "reviewer", "APPROVED"):
        assert f'"name":"{name}"'.encode() in server.posted
    assert b'"session_name":"our-runs"' in server.posted
    assert server.keys == {KEYS["LANGSMITH_API_KEY"]}
    assert [name for name, key in KEYS.items() if key.encode() in server.posted] == []


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("settings", [{}, {"LANGSMITH_TRACING": "false"}], ids=["by default", "switched off"])
def test_nothing_is_sent_unless_tracing_is_switched_on(tmp_path: Path, settings: dict[str, str]) -> None:
    with running(Collector()) as server:
        run(tmp_path / "p", LANGSMITH_ENDPOINT=server.url, **settings)
    assert server.requests == []
