"""GitHub by the program `gh`: requests to its REST API with the person's own login, and nothing else of `gh`.

Only `gh api` with `-i`, `-X` and `--input` is used, for `repos/{owner}/{repo}`, which every `gh` from 2.0 has, Debian's
2.23 too: what `gh pr` and `gh issue` print, and can print as JSON, changes from release to release.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from time import sleep, time
from typing import Any, Final, cast

from interlock.core.process import capture
from interlock.core.text import shown, whole
from interlock.graph.errors import SOURCE_BUSY, SOURCE_LOGIN, SOURCE_SETUP, SOURCE_UNKNOWN, GraphError

OLDEST: Final = (2, 0)
SECONDS: Final = 45.0
_LONGEST_PAUSE_SECONDS: Final = 20.0
_PAGE: Final = 100
_MAX_PAGES: Final = 100
_INSTALL: Final = "Install it from Debian or https://cli.github.com, and sign in: `gh auth login`."
_UNSIGNED: Final = 4
"""What `gh` exits with where it has no login."""


def check_program(root: Path) -> None:
    """Refuse to go on where there is no `gh`, or one that is too old.

    Raises:
        GraphError: `SRC101`.
    """
    said = _run(root, "--version").output.decode("utf-8", "replace")
    number = re.search(r"gh version (\d+)\.(\d+)", said)
    if number is None or (int(number[1]), int(number[2])) < OLDEST:
        which = f"what is called gh names no version: it says {shown(said, 60) or 'nothing'}"
        if number is not None:
            which = f"gh {number[1]}.{number[2]} is too old"
        message = f"{which}; {OLDEST[0]}.{OLDEST[1]} or newer is needed"
        raise GraphError(message, _INSTALL, SOURCE_SETUP)


def ask(root: Path, path: str, *, method: str = "GET", body: Mapping[str, Any] | None = None, repo: str = "") -> Any:
    """Make a request, and return the JSON value of its answer.

    Args:
        root: The checkout, whose remote says which repository is meant.
        path: Below that repository, such as `issues/12`; empty for the repository itself.
        method: The method of HTTP.
        body: What is sent.
        repo: OWNER/NAME of another repository.

    Raises:
        GraphError: `SRC101` there is no `gh`, `SRC102` it is not signed in, `SRC103` GitHub does not have that,
            `SRC104` GitHub gave no answer, or refused.
    """
    words = ["api", "-i", "-X", method, f"repos/{repo or '{owner}/{repo}'}{'/' if path else ''}{path}"]
    words += [] if body is None else ["--input", "-"]
    data = b"" if body is None else json.dumps(body).encode()
    done = _run(root, *words, data=data)
    head, text = _parts(done.output)
    pause = whole(head.get("retry-after"), 1)
    # What was asked for too often, GitHub did not do: it can be asked for again, whatever it is.
    if head["status"] in ("429", "503") and pause <= _LONGEST_PAUSE_SECONDS:
        sleep(pause)
        done = _run(root, *words, data=data)
        head, text = _parts(done.output)
    if done.status != 0:
        check_program(root)
        raise _fault(path, done.status, head, done.complaints.decode("utf-8", "replace"))
    try:
        return json.loads(text) if text.strip() else None
    except ValueError as error:
        raise GraphError(f"gh printed no JSON for {path}", "Try again; see `gh api --help`.", SOURCE_BUSY) from error


def rows(root: Path, path: str, *, key: str = "", repo: str = "") -> list[dict[str, Any]]:
    """Return the rows of all pages of a list; with `key`, of the list that the answer has there.

    Raises:
        GraphError: As for `ask`.
    """
    found: list[dict[str, Any]] = []
    for page in range(1, _MAX_PAGES + 1):
        answer = ask(root, f"{path}{'&' if '?' in path else '?'}per_page={_PAGE}&page={page}", repo=repo)
        part = cast("list[dict[str, Any]]", answer[key] if key else answer)
        found += part
        if len(part) < _PAGE:
            break
    return found


def _run(root: Path, *words: str, data: bytes = b"") -> Any:
    try:
        return capture(["gh", *words], cwd=root, env=None, timeout_seconds=SECONDS, stdin=data, grace_seconds=1.0)
    except FileNotFoundError as error:
        message = "the program gh is not on PATH, and GitHub is reached by it"
        raise GraphError(message, _INSTALL, SOURCE_SETUP) from error
    except OSError as error:
        raise GraphError(f"gh cannot be started: {error.strerror}", _INSTALL, SOURCE_SETUP) from error


def _parts(output: bytes) -> tuple[dict[str, str], str]:
    """Return the headers of an answer, with its status under `status`, and its body."""
    head, _, body = output.decode("utf-8", "replace").replace("\r\n", "\n").partition("\n\n")
    first, *lines = head.split("\n")
    fields = (line.partition(":") for line in lines)
    return {**{name.lower(): value.strip() for name, _, value in fields}, "status": [*first.split(), "", ""][1]}, body


def _fault(path: str, status: int, head: Mapping[str, str], said: str) -> GraphError:
    why = shown(said.strip(), 300)
    if status == _UNSIGNED or head["status"] == "401":
        return GraphError(
            f"gh is not signed in: {why}", "Sign in, and give the command again: `gh auth login`.", SOURCE_LOGIN
        )
    if head["status"] == "404":
        fix = "Correct the number, or see with `gh auth status` and `gh repo view` who is signed in and what is seen."
        return GraphError(f"GitHub has no {path}, or does not show it to you", fix, SOURCE_UNKNOWN)
    if head["status"] in ("403", "429") and (head.get("retry-after") or head.get("x-ratelimit-remaining") == "0"):
        wait = whole(head.get("retry-after")) or max(0, whole(head.get("x-ratelimit-reset"), 10**9) - int(time()))
        return GraphError(f"GitHub wants fewer requests: {why}", f"Give the command again in {wait} s.", SOURCE_BUSY)
    if not head["status"] and "remotes" in said:
        fix = "Add the repository on GitHub as a remote: `git remote add origin URL`; for another host, set GH_HOST."
        return GraphError(f"gh does not know which repository is meant: {why}", fix, SOURCE_SETUP)
    return GraphError(f"GitHub refused {path}: {why or f'gh ended with {status}'}", "Do what it says.", SOURCE_BUSY)
