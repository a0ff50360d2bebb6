"""Sends events to people at once, in order, and writes down what became of each.

`.interlock/notify.jsonl` of a project holds a line for each event, written when it has been sent, with what failed.
An event whose key has a line is not sent again; a crash between the two may send one twice. Losing the file loses
nothing else.
"""

import hashlib
import hmac
import json
import os
import shutil
import time
import urllib.request
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple, TypeAlias, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit

from interlock.core.finding import Finding
from interlock.core.locks import locked
from interlock.core.process import capture
from interlock.core.rule import rules
from interlock.core.text import shown
from interlock.notify.settings import Settings, build, is_loopback
from interlock.redaction import redactor_for

SECONDS: Final = 20.0
"""How long a command or a server may take."""
_FILE: Final = "notify.jsonl"
_TEXT_CHARS: Final = 1000

CODES: Final = rules(
    {
        "NTF101": (
            "A notification is delivered: the command ends with 0 in time, the webhook answers 2xx.",
            "Repair what the message names, and try it with `interlock notify --test`.",
        ),
        "NTF103": (
            "What [notify] names is there: the program, the variables with the key or the addresses, apprise.",
            "Set or install it where `interlock run`, the server or the client is started.",
        ),
    }
)
"""Why a notification was not delivered."""

Kind: TypeAlias = Literal["waits", "ended", "test"]


class Event(NamedTuple):
    """Something that a person may want to know.

    Args:
        key: What it is known by in its project: the same for the same thing, whoever sees it.
        kind: Somebody is waited for, or a run has ended.
        why: What in particular: docs/watch.md has the words.
        run: The run, or the request, that it is about.
        title: What happened, in a few words.
        text: The same in a sentence.
        next: The command that goes on from here, or nothing.
    """

    key: str
    kind: Kind
    why: str
    run: str
    title: str
    text: str
    next: str = ""

    def row(self, root: str) -> dict[str, Any]:
        """Return it as it is sent, as JSON values without keys of the environment."""
        row = {
            "schema": "interlock.notification/1",
            "id": self.key,
            "event": self.kind,
            "why": self.why,
            "run": self.run,
            "title": self.title,
            "text": self.text[:_TEXT_CHARS],
            "next": self.next,
            "at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "root": root,
        }
        return redactor_for(root).value(row)


def post(root: str | Path, table: Mapping[str, Any], events: Iterable[Event]) -> list[Finding]:
    """Send events as a `[notify]` table says, each once, and return what could not be delivered.

    Nothing here stops a run: where the file cannot be written, nobody is notified.
    """
    settings, home, failed = build(table), os.fspath(root), list[Finding]()
    path = Path(home) / ".interlock" / _FILE
    if not settings.channels or not path.parent.is_dir():
        return []
    # A link there could lead to a file that a shell or a program reads, and the lines quote agents.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError), os.fdopen(os.open(path, flags, 0o600), "r+b") as file, locked(file):
        known = [row["id"] for row in _rows(file)]
        for event in events:
            row = event.row(home)
            if row["id"] in known:
                continue
            known.append(row["id"])
            # One way that fails keeps no other from being taken.
            outcomes = {channel: deliver(channel, settings, home, row) for channel in settings.channels}
            errors = {name: f"{each.code}: {each.message}" if each else "" for name, each in outcomes.items()}
            row["deliveries"] = [{"channel": name, "error": error} for name, error in errors.items()]
            # The newline comes first: it ends a line that a killed process wrote half.
            file.write(b"\n" + json.dumps(row).encode("ascii"))
            file.flush()
            failed += [each for each in outcomes.values() if each is not None]
    return failed


def _rows(file: IO[bytes]) -> list[dict[str, Any]]:
    """Return the events of the file; what is no line of ours, or was written half, is passed over."""
    file.seek(0)
    rows: list[dict[str, Any]] = []
    for line in file.read().splitlines():
        with suppress(ValueError, RecursionError):
            row: Any = json.loads(line)
            if isinstance(row, dict) and {"id", "deliveries"} <= row.keys():
                rows.append(cast("dict[str, Any]", row))
    return rows


def deliver(channel: str, settings: Settings, root: str, row: Mapping[str, Any]) -> Finding | None:
    """Send one event in one way, and return what went wrong."""
    lacks = missing(channel, settings, root, os.environ)
    if lacks is not None:
        return lacks
    if channel == "command":
        error = _run_command(settings.command, root, row)
    elif channel == "webhook":
        error = _post_to_webhook(settings, row)
    else:
        error = _send_by_apprise(settings, row)
    # A server or a program may repeat the key that it was given.
    return _finding("NTF101", channel, redactor_for(root).text(error)) if error else None


def missing(channel: str, settings: Settings, root: str, env: Mapping[str, str]) -> Finding | None:
    """Return why a configured channel cannot work in an environment, as far as that shows."""
    if channel == "command":
        word = settings.command[0]
        # With a slash it is found from the project, where it will run; without one on PATH.
        program = str(Path(root, word)) if "/" in word else word
        if shutil.which(program, path=env.get("PATH", os.defpath)) is None:
            return _finding("NTF103", channel, f"{shown(word, 100)} is not there, or is no program")
        return None
    name = settings.webhook_key_env if channel == "webhook" else settings.apprise_env
    if not env.get(name):
        return _finding("NTF103", channel, f"the variable {name} is not set here")
    if channel == "apprise" and find_spec("apprise") is None:
        return _finding("NTF103", channel, "apprise is not installed: `pip install './interlock[notify]'`")
    return None


def _finding(code: str, channel: str, message: str) -> Finding:
    rule = CODES[code]
    return Finding(code, "error", f"notify.{channel}", message, message, rule.title, rule.remedy)


def _run_command(argv: tuple[str, ...], root: str, row: Mapping[str, Any]) -> str:
    name, body = shown(argv[0], 100), json.dumps(row).encode("ascii") + b"\n"
    try:
        ended = capture(list(argv), cwd=root, env=None, timeout_seconds=SECONDS, stdin=body, grace_seconds=1.0)
    except (OSError, ValueError) as error:
        return f"{name} cannot be started: {error}"
    if ended.stopped:
        return f"{name} took longer than {SECONDS:g} s, or printed too much"
    complaint = shown(ended.complaints.decode("utf-8", "replace").strip(), 200)
    return f"{name} ended with {ended.status}: {complaint}" if ended.status else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are not followed: the events are for the configured address alone."""

    def redirect_request(self, *_given: Any, **_named: Any) -> None:
        """Follow nothing."""


def _post_to_webhook(settings: Settings, row: Mapping[str, Any]) -> str:
    key = os.environ[settings.webhook_key_env].encode("utf-8", "surrogateescape")
    body, stamp = json.dumps(row).encode("ascii"), str(int(time.time()))
    # The time is signed too, so that nobody can send an old request again.
    signature = hmac.new(key, f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "interlock",
        "Interlock-Timestamp": stamp,
        "Interlock-Signature": f"sha256={signature}",
    }
    # The configuration was checked: https, or http on this machine.
    request = urllib.request.Request(settings.webhook, body, headers, method="POST")  # noqa: S310
    # A proxy has a loopback of its own, which is not this machine.
    proxies = [urllib.request.ProxyHandler({})] if is_loopback(urlsplit(settings.webhook).hostname or "") else []
    try:
        with urllib.request.build_opener(_NoRedirect, *proxies).open(request, timeout=SECONDS):
            return ""
    except HTTPError as error:
        error.close()
        return f"the webhook answered {error.code}"
    except (OSError, HTTPException, ValueError) as error:  # a name that no resolver takes is a ValueError
        return f"the webhook cannot be reached: {shown(str(getattr(error, 'reason', error)), 200)}"


def _send_by_apprise(settings: Settings, row: Mapping[str, Any]) -> str:
    from apprise import Apprise  # noqa: PLC0415 - an extra

    sender: Any = Apprise()  # its types are partly unknown
    if not all(sender.add(address) for address in os.environ[settings.apprise_env].split()):
        return f"apprise does not know an address in {settings.apprise_env}"
    text = f"{row['text']}\n{row['next']}".strip()
    delivered = sender.notify(title=shown(f"Interlock: {row['title']}", 100), body=text)
    return "" if delivered else "apprise did not reach every address"
