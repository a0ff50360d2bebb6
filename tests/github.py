"""GitHub in a file of JSON and a bare repository, as far as `interlock` asks it, and the program `gh` that asks it.

`gh ARGUMENTS` is a shell script that `install` writes: it starts this file, which needs the standard library alone.
`serving` answers the same over HTTP, for a real `gh`: as a proxy, since that asks nobody but https:// hosts directly.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

STATE = "GH_STATE_OF_THE_TESTS"
ABOVE = "https://github.example"


class GitHub:
    """A repository on GitHub: issues, pull requests, reviews, checks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def open(self) -> Generator[dict[str, Any]]:
        """Read the state, and write it at the end; one at a time."""
        with self.path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state = json.loads(file.read())
            yield state
            file.seek(0)
            file.write(json.dumps(state).encode())
            file.truncate()

    def answer(self, method: str, address: str, body: Any = None) -> tuple[int, dict[str, str], Any]:
        """Return status, headers and JSON value of the answer to a request."""
        with self.open() as state:
            state["requests"] = [*state.get("requests", []), f"{method} {address}"]
            if state.get("faults"):
                fault = state["faults"].pop(0)
                if fault:
                    return fault["status"], fault.get("headers", {}), {"message": fault.get("message", "no")}
            return self._route(state, method, address, body)

    def _route(self, state: dict[str, Any], method: str, address: str, body: Any) -> tuple[int, dict[str, str], Any]:
        parts = urlsplit(address)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        found = re.fullmatch(r"/?repos/([^/]+/[^/]+)(?:/(.*))?", parts.path)
        if found is None:
            return 404, {}, {"message": "Not Found"}
        path = found[2] or ""
        if not path:
            return 200, {}, {"default_branch": state.get("default_branch", "main"), "full_name": found[1]}
        if path == "pulls" and method == "POST":
            return self._opened(state, body)
        if path == "pulls":
            branch = query["head"].partition(":")[2]
            rows = [self._pull(state, pull) for pull in state["pulls"].values() if pull["head"] == branch]
            return 200, {}, _page([row for row in rows if query["state"] in ("all", row["state"])], query)
        kind, number, *rest = path.split("/")
        if kind == "commits":
            rows = state["checks"].get("*", []) + state["checks"].get(number, [])
            if rest == ["check-runs"]:
                runs = [row for row in rows if "name" in row]
                return 200, {}, {"total_count": len(runs), "check_runs": _page(runs, query)}
            return 200, {}, {"state": "pending", "statuses": _page([row for row in rows if "context" in row], query)}
        if kind == "pulls" and number in state["pulls"]:
            pull = state["pulls"][number]
            if method == "PATCH":
                pull |= body
            rows = {"reviews": pull["reviews"], "comments": pull["lines"]}.get(rest[0] if rest else "")
            return 200, {}, self._pull(state, pull) if rows is None else _page(rows, query)
        if kind == "issues" and (number in state["issues"] or number in state["pulls"]):
            where = state["pulls"].get(number) or state["issues"][number]
            if rest == ["comments"] and method == "POST":
                row = {"id": 1000 + len(where["comments"]), "body": body["body"], "user": {"login": "interlock"}}
                where["comments"].append({**row, "author_association": "NONE"})
                return 201, {}, row
            if rest == ["comments"]:
                return 200, {}, _page(where["comments"], query)
            shown = {name: where.get(name) for name in ("title", "body", "state")}
            return 200, {}, {**shown, "number": int(number), "html_url": f"{ABOVE}/ada/shop/issues/{number}"}
        return 404, {}, {"message": "Not Found"}

    def _opened(self, state: dict[str, Any], body: Any) -> tuple[int, dict[str, str], Any]:
        branch = body["head"].partition(":")[2]
        if not _sha(state, branch):
            return 422, {}, {"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]}
        number = str(len(state["pulls"]) + len(state["issues"]) + 1)
        lists: dict[str, Any] = {"reviews": [], "lines": [], "comments": []}
        state["pulls"][number] = {**body, "head": branch, "number": int(number), "state": "open", **lists}
        return 201, {}, self._pull(state, state["pulls"][number])

    def _pull(self, state: dict[str, Any], pull: dict[str, Any]) -> dict[str, Any]:
        shown = {name: pull[name] for name in ("number", "title", "body", "state")}
        shown |= {"merged": "merged" in pull, "merge_commit_sha": pull.get("merged")}
        shown |= {"html_url": f"{ABOVE}/ada/shop/pull/{pull['number']}", "base": {"ref": pull["base"]}}
        return {**shown, "head": {"ref": pull["head"], "sha": pull.get("head_at_end") or _sha(state, pull["head"])}}


def _page(rows: list[Any], query: dict[str, str]) -> list[Any]:
    size, number = int(query.get("per_page", 30)), int(query.get("page", 1))
    return rows[(number - 1) * size : number * size]


def _sha(state: dict[str, Any], branch: str) -> str:
    words = ["git", "-C", state["repository"], "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def make_github(folder: Path, repository: Path) -> GitHub:
    """Make GitHub for a bare repository, with an issue."""
    path = folder / "github.json"
    issue: dict[str, Any] = {
        "title": "Count to two",
        "body": "The file src/a.txt must say two.",
        "state": "open",
        "comments": [],
    }
    state: dict[str, Any] = {"repository": str(repository), "issues": {"7": issue}, "pulls": {}, "checks": {}}
    path.write_text(json.dumps(state))
    return GitHub(path)


def install(folder: Path) -> None:
    """Write the program `gh`."""
    folder.mkdir(exist_ok=True)
    program = folder / "gh"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {Path(__file__).resolve()} "$@"\n')
    program.chmod(0o755)


@contextmanager
def serving(github: GitHub) -> Generator[dict[str, str]]:
    """Answer requests over HTTP; yields the variables with which a real `gh` asks here."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(length)
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    data += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            if self.headers.get("Authorization") != "token token-of-the-tests":
                status, headers, found = 401, {}, {"message": "Bad credentials"}
            else:
                path = self.path.split("/", 3)[3]
                status, headers, found = github.answer(self.command, path, json.loads(data) if data else None)
            body = json.dumps(found).encode()
            self.send_response(status)
            for name, value in {
                **headers,
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = answer

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        here = f"http://127.0.0.1:{server.server_port}"
        yield {"HTTP_PROXY": here, "http_proxy": here, "GH_HOST": "github.localhost", "GH_TOKEN": "token-of-the-tests"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> int:
    """Be `gh`, as far as `interlock` uses it, with its words and its exit codes."""
    github = GitHub(Path(os.environ[STATE]))
    with github.open() as state:
        version, signed_in = state.get("version", "2.23.0"), state.get("signed_in", True)
    words = sys.argv[1:]
    if words == ["--version"]:
        if version:
            print(f"gh version {version} (2023-02-27 Debian {version}+dfsg1-1)")
        return 0
    if words[:2] != ["api", "-i"] or words[2] != "-X" or len(words) not in (5, 7):
        print(f"unknown flags: {words}", file=sys.stderr)
        return 1
    if not signed_in:
        print("To get started with GitHub CLI, please run:  gh auth login", file=sys.stderr)
        return 4
    method, path, *more = words[3:]
    body = json.loads(sys.stdin.read()) if more == ["--input", "-"] else None
    status, headers, answer = github.answer(method, path.replace("{owner}/{repo}", "ada/shop"), body)
    print(f"HTTP/2.0 {status} Something\nContent-Type: application/json; charset=utf-8\r")
    for name, value in headers.items():
        print(f"{name}: {value}\r")
    print(f"\r\n{json.dumps(answer)}", end="")
    if status >= 400:
        print(f"gh: {answer['message']} (HTTP {status})", file=sys.stderr)
    return int(status >= 400)


if __name__ == "__main__":
    sys.exit(main())
