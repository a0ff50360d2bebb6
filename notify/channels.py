"""The ways to a person: a command, a signed webhook, the desktop. Each is tried once by a call of `deliver`."""

import hashlib
import hmac
import html
import json
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit

from interlock.core.errors import Exit, InterlockError
from interlock.core.process import capture
from interlock.core.rule import rules
from interlock.core.text import shown
from interlock.notify.settings import Settings, is_loopback

SECONDS: Final = 20.0
"""How long one attempt may take."""
SCHEMA: Final = "interlock.notification/1"
DESKTOP: str = "osascript" if sys.platform == "darwin" else "notify-send"
_MAX_ANSWER_BYTES: Final = 64 * 1024
_AGAIN: Final = frozenset({408, 425, 429})
"""The answers of a server below 500 after which the same request may succeed."""

CODES: Final = rules({
    "NTF101": ("The command of [notify] can be started, reads the event and ends with 0 in time.",
               "Run it by hand with an event on its standard input; `interlock notify --test` sends one."),
    "NTF102": ("The webhook of [notify] answers with 2xx; redirects are not followed.",
               "Correct `webhook`, or let the server take the request."),
    "NTF103": ("The key of the webhook is in the variable that `webhook_key_env` names.",
               "Set the variable where `interlock run`, the server or the client is started."),
    "NTF104": ("A program for desktop notifications is there and ends with 0.",
               "Install libnotify (`notify-send`), or take `desktop` out of [notify]."),
})  # fmt: skip
"""Why a notification could not be delivered."""


class DeliveryError(InterlockError):
    """One attempt failed; `again`: whether a later one may succeed."""

    exit_code = Exit.REFUSED

    def __init__(self, code: str, message: str, *, again: bool = False) -> None:
        super().__init__(message, CODES[code].remedy, code)
        self.again = again


def body_of(row: Mapping[str, Any]) -> bytes:
    """Return an event as it is sent."""
    return json.dumps({"schema": SCHEMA, **row}, ensure_ascii=True).encode("ascii")


def deliver(channel: str, settings: Settings, root: str, body: bytes) -> None:
    """Send one event in one way.

    Raises:
        DeliveryError: It was not delivered.
    """
    _CHANNELS[channel](settings, root, body)


def missing(settings: Settings, root: str, env: Mapping[str, str]) -> DeliveryError | None:
    """Return why a configured channel cannot work in this environment, as far as that shows without sending."""
    path = env.get("PATH", os.defpath)
    word = settings.command[0] if settings.command else ""
    if word and shutil.which(str(Path(root, word)) if "/" in word else word, path=path) is None:
        return DeliveryError("NTF101", f"{shown(word, 100)} is not there, or is no program")
    if settings.webhook and not env.get(settings.webhook_key_env):
        return DeliveryError("NTF103", f"the variable {settings.webhook_key_env} is not set here")
    if settings.desktop and shutil.which(DESKTOP, path=path) is None:
        return DeliveryError("NTF104", f"{DESKTOP} is not on PATH")
    return None


def _command(settings: Settings, root: str, body: bytes) -> None:
    _run("NTF101", list(settings.command), root, body + b"\n")


def _run(code: str, argv: list[str], root: str, body: bytes = b"") -> None:
    try:
        ended = capture(argv, cwd=root, env=None, timeout_seconds=SECONDS, stdin=body, grace_seconds=1.0)
    except (OSError, ValueError) as error:
        raise DeliveryError(code, f"{shown(argv[0], 100)} cannot be started: {error}") from error
    if ended.stopped or ended.status:
        how = {"timeout": f"took longer than {SECONDS:g} s", "flood": "printed too much"}.get(ended.stopped)
        said = shown(ended.complaints.decode("utf-8", "replace").strip(), 200)
        why = how or f"ended with {ended.status}"
        raise DeliveryError(code, f"{shown(argv[0], 100)} {why}{f': {said}' if said else ''}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are not followed: the events are for the configured address alone."""

    def redirect_request(self, *_given: Any, **_named: Any) -> None:
        """Follow nothing."""


def _webhook(settings: Settings, _root: str, body: bytes) -> None:
    key = os.environ.get(settings.webhook_key_env, "")
    if not key:
        raise DeliveryError("NTF103", f"the variable {settings.webhook_key_env} is not set in this process")
    stamp = str(int(time.time()))
    signed = hmac.new(key.encode("utf-8", "surrogateescape"), f"{stamp}.".encode() + body, hashlib.sha256)
    request = urllib.request.Request(  # noqa: S310 - the configuration was checked: https, or http on this machine
        settings.webhook,
        body,
        {
            "Content-Type": "application/json",
            "User-Agent": "interlock",
            "Interlock-Timestamp": stamp,
            "Interlock-Signature": f"sha256={signed.hexdigest()}",
        },
        method="POST",
    )
    host = urlsplit(settings.webhook).hostname or ""
    proxies = [urllib.request.ProxyHandler({})] if is_loopback(host) else []
    try:
        with urllib.request.build_opener(_NoRedirect, *proxies).open(request, timeout=SECONDS) as answer:
            answer.read(_MAX_ANSWER_BYTES)
    except HTTPError as error:
        again = error.code >= 500 or error.code in _AGAIN
        error.close()
        raise DeliveryError("NTF102", f"{host} answered {error.code}", again=again) from error
    except (OSError, HTTPException, ValueError) as error:  # a name that no resolver takes is a ValueError
        why = shown(str(getattr(error, "reason", error)), 200)
        raise DeliveryError("NTF102", f"{host} cannot be reached: {why}", again=True) from error


_APPLE: Final = (
    "on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run",
)  # fmt: skip


def _desktop(_settings: Settings, root: str, body: bytes) -> None:
    """Show it. The texts are arguments of the program, so that nothing in them is a command or an option."""
    row = json.loads(body)
    title, text = shown(f"Interlock: {row['title']}", 100), shown(str(row["text"]), 400)
    found = shutil.which(DESKTOP)
    if found is None:
        raise DeliveryError("NTF104", f"{DESKTOP} is not on PATH")
    if DESKTOP == "osascript":
        _run("NTF104", [found, *(word for line in _APPLE for word in ("-e", line)), title, text], root)
    else:  # what a notification says may have markup
        _run("NTF104", [found, "--app-name=Interlock", "--", title, html.escape(text, quote=False)], root)


_CHANNELS: Final[Mapping[str, Callable[[Settings, str, bytes], None]]] = {
    "command": _command, "webhook": _webhook, "desktop": _desktop,
}  # fmt: skip
