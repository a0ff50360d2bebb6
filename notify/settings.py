"""`[notify]` of the project's configuration: its keys, and what is wrong with a table."""

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from interlock.core.finding import Finding
from interlock.core.text import closest, shown

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)


class Settings(NamedTuple):
    """Where events are sent; without any of them nothing is.

    Args:
        command: A program and its arguments; no shell. It reads the event as JSON on its standard input.
        webhook: An address that events are posted to as JSON: `https://…`, or `http://…` on this machine.
        webhook_key_env: The variable of the environment with the key that signs each request; needed for a webhook.
        desktop: Whether events are shown on the desktop, by `notify-send` or `osascript`.
    """

    command: tuple[str, ...] = ()
    webhook: str = ""
    webhook_key_env: str = ""
    desktop: bool = False

    @property
    def channels(self) -> tuple[str, ...]:
        """The ways that are set: `command`, `webhook`, `desktop`."""
        return tuple(name for name in ("command", "webhook", "desktop") if getattr(self, name))


def build(table: Mapping[str, Any]) -> Settings:
    """Return the settings of a table without faults."""
    values: dict[str, Any] = {**table, "command": tuple(table.get("command", ()))}
    return Settings(**values)


def faults(table: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield everything that is wrong with a `[notify]` table, in the order of its keys."""
    for key, value in table.items():
        if key not in _CHECKS:
            near = closest(key, _CHECKS)
            fix = f"Write `{near}`." if near else f"Remove it; the keys here are {', '.join(_CHECKS)}."
            yield _bad(key, f"the key `{key}` is unknown.", fix, "CFG103")
        elif fault := _CHECKS[key](value):
            yield _bad(key, *fault)
    if table.get("webhook") and not table.get("webhook_key_env"):
        fix = 'Name the variable that holds the key: webhook_key_env = "INTERLOCK_WEBHOOK_KEY".'
        yield _bad("webhook_key_env", "the webhook has no key to sign its requests with.", fix)


def _bad(key: str, message: str, fix: str, code: str = "CFG104") -> Finding:
    return Finding(code, "error", f"notify.{key}", message, fix=fix)


def _command(value: object) -> tuple[str, str] | None:
    words = cast("list[object]", value) if isinstance(value, list) else []
    if words and all(isinstance(word, str) and word and "\0" not in word for word in words):
        return None
    fix = 'Write the program and its arguments as a list: command = ["./notify.sh", "--all"].'
    return "it is no list of words that starts a program.", fix


def _webhook(value: object) -> tuple[str, str] | None:
    fix = "Write https://HOST/PATH without a user and a fragment; http:// only for 127.0.0.1, [::1] and localhost."
    try:
        parts = urlsplit(value if isinstance(value, str) and value.isascii() and value.isprintable() else "")
        host = parts.hostname or ""
        usable = parts.port != 0 and host and not (parts.username or parts.password or parts.fragment)
    except ValueError:
        return "the address cannot be read.", fix
    if not usable or " " in str(value) or parts.scheme not in ("http", "https"):
        return "it is no address of a webhook.", fix
    if parts.scheme == "http" and not is_loopback(host):
        return f"{shown(host, 60)} is another machine, and http:// shows it and everybody between the events.", fix
    return None


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by name or number."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _variable(value: object) -> tuple[str, str] | None:
    if isinstance(value, str) and _VARIABLE.fullmatch(value):
        return None
    return "it is no name of a variable.", "Write the name of the variable that holds the key, never the key itself."


def _switch(value: object) -> tuple[str, str] | None:
    return None if isinstance(value, bool) else (f"{shown(repr(value), 60)} is no switch.", "Write true or false.")


_CHECKS: Final[Mapping[str, Callable[[object], tuple[str, str] | None]]] = {
    "command": _command, "webhook": _webhook, "webhook_key_env": _variable, "desktop": _switch,
}  # fmt: skip
