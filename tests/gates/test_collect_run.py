"""The collector as a program: the same bytes each time, nothing half-written, no process left."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from interlock.gates.collect import collect
from interlock.gates.errors import CollectorError
from tests.gates.collecting import BINDING, PAGES, errors, everything_in, look, processes_naming, records, wait_for_end
from tests.refusals import raises_code
from tests.serving import Quiet, running

pytestmark = pytest.mark.browser


class Server(ThreadingHTTPServer):
    """A server of the user's: serves the fixture pages, and a few answers of its own."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.connections = 0
        self.reached = threading.Event()
        self.release = threading.Event()

    def get_request(self) -> tuple[socket.socket, object]:
        self.connections += 1
        return super().get_request()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(Quiet):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        server.asked.append(self.path)
        if self.path == "/hangs":
            server.reached.set()
            server.release.wait(60)
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/clean.html")
            self.end_headers()
            return
        page = PAGES / self.path.lstrip("/")
        found = page.is_file()
        self.send_response(200 if found else 500)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page.read_bytes() if found else b"<h1>broken</h1>")


@pytest.fixture
def server() -> Iterator[Server]:
    with running(Server()) as made:
        yield made
        made.release.set()


@pytest.mark.long
def test_the_same_page_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for page in ("moves.html", "errors.html"):
            look(tmp_path / name, page, "screenshots", "console", "a11y")
    assert everything_in(tmp_path / "first") == everything_in(tmp_path / "second")


def test_a_timeout_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(CollectorError):
        look(tmp_path, "endless-loop.html", "console", timeout_seconds=1)
    assert not processes_naming(f"{tmp_path}/interlock-")
    assert not list(tmp_path.iterdir())


CALL = """
import sys
from interlock.gates.collect import collect
from interlock.gates.manifest import Binding
collect("GATE-VISUAL-QA", target=sys.argv[1], root=sys.argv[2], binding=Binding("r", "PAGE-UI-001", 1, "t"))
"""


def test_a_killed_parent_takes_worker_and_browser_with_it(tmp_path: Path, server: Server) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", CALL, f"{server.url}/hangs", str(tmp_path)], env=environ, stderr=subprocess.DEVNULL
    )
    assert server.reached.wait(30)
    family = processes_naming(f"{tmp_path}/interlock-")
    assert any("interlock.gates.collect.worker" in command for command in family.values())
    assert any("--type=renderer" in command for command in family.values())
    parent.kill()
    parent.wait()
    assert wait_for_end(family)
    server.release.set()


@pytest.mark.long
def test_a_crashed_page_is_reported(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(look, tmp_path, f"{server.url}/frame-hangs.html", "a11y")
        assert server.reached.wait(30)
        family = processes_naming(f"{tmp_path}/interlock-")
        renderers = [pid for pid, command in family.items() if "--type=renderer" in command]
        for pid in renderers:
            # One that the browser keeps in reserve may have ended by itself since.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with raises_code(CollectorError, "COL305"):
            waiting.result()
    assert renderers


@pytest.mark.long
def test_a_page_of_a_server_is_looked_at(tmp_path: Path, server: Server) -> None:
    assert look(tmp_path, f"{server.url}/clean.html", "screenshots", "console").ok


@pytest.mark.long
@pytest.mark.parametrize(("path", "code"), [("/broken", "COL305"), ("/moved", "COL305")])
def test_any_other_answer_of_a_server_leaves_no_evidence(path: str, code: str, tmp_path: Path, server: Server) -> None:
    with raises_code(CollectorError, code):
        look(tmp_path, f"{server.url}{path}", "console")


def test_nothing_reaches_another_origin(tmp_path: Path, server: Server) -> None:
    page = f"""<!doctype html><html lang="en"><title>Calls out</title><h1>Calls out</h1>
      <link rel="preconnect" href="{server.url}/preconnect"><link rel="prefetch" href="{server.url}/prefetch">
      <img alt="x" src="{server.url}/image"><script>
      const there = "{server.url}";
      fetch(there + "/fetch", {{ mode: "no-cors" }}).catch(() => {{}});
      navigator.sendBeacon(there + "/beacon", "x");
      new WebSocket(there.replace("http", "ws") + "/socket");
      new EventSource(there + "/events");
      new Worker(URL.createObjectURL(new Blob([`fetch("${{there}}/worker", {{mode: "no-cors"}}).catch(() => {{}})`])));
      open(there + "/window");
      </script>"""
    (tmp_path / "index.html").write_text(page)
    collection = look(tmp_path, "index.html", "console", root=tmp_path)
    assert (server.connections, server.asked) == (0, [])
    blocked = {row["url"].rpartition("/")[2] for row in records(tmp_path, collection) if row["kind"] == "blocked"}
    assert blocked >= {"image", "fetch", "beacon", "socket", "events", "worker"}
    assert errors(collection) in ([], ["EVD533"])


def test_a_browser_that_fails_is_reported_with_its_own_message_and_gets_nothing_of_the_users_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "do not show")
    program = tmp_path / "browser"
    program.write_text(f"#!/bin/sh\nenv > {tmp_path}/seen\necho no display today >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("INTERLOCK_BROWSER", str(program))
    with raises_code(CollectorError, "COL304", "no display today"):
        collect("GATE-VISUAL-QA", target="clean.html", root=PAGES, binding=BINDING, out=tmp_path)
    names = {line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "OLDPWD", "_"} == {"PATH", "HOME", "LANG", "TZ"}


BAD_TARGETS = {
    "missing": "missing.html",
    "absolute": "/etc/passwd",
    "folder": "folder",
    "link": "link.html",
    "scheme": "ftp://host/page",
    "password": "http://user:secret@127.0.0.1/",
    "no page": "notes.txt",
}


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_a_page_that_cannot_be_meant_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "page.html").write_text("<p>")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "link.html").symlink_to("page.html")
    with raises_code(CollectorError, "COL302"):
        look(tmp_path, BAD_TARGETS[name], "console", root=tmp_path)


def test_a_task_id_that_is_no_folder_and_a_gate_without_browser_evidence_are_refused(tmp_path: Path) -> None:
    rows = [("GATE-VISUAL-QA", replace(BINDING, task_id=task_id)) for task_id in ("../X-1", "X 1", "X-1/..", "")]
    for gate, binding in (*rows, ("GATE-CODE-REVIEW", BINDING)):
        with raises_code(CollectorError, "COL302"):
            collect(gate, target="clean.html", root=PAGES, binding=binding, out=tmp_path)


@pytest.mark.long
def test_the_example_page_fails_both_gates_and_its_fixed_files_pass_them(root: Path, tmp_path: Path) -> None:
    example = root / "examples" / "landing-page"
    shutil.copytree(example / "site", tmp_path / "site")

    def both() -> list[list[str]]:
        gates = ("GATE-VISUAL-QA", "GATE-A11Y-BASELINE")
        made = [collect(gate, target="site/index.html", root=tmp_path, binding=BINDING) for gate in gates]
        return [[finding.code for finding in item.findings] for item in made]

    assert both() == [["EVD533"], ["EVD543"]]
    shutil.copytree(example / "fixed", tmp_path / "site", dirs_exist_ok=True)
    assert both() == [[], []]
