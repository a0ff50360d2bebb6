"""`[notify]` of the project's configuration: its keys, and what is wrong with a table."""

from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from interlock.core.finding import Finding
from interlock.core.text import closest


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by name or number."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_command(value: object) -> bool:
    words = cast("list[object]", value) if isinstance(value, list) else []
    return bool(words) and all(isinstance(word, str) and word and word.isprintable() for word in words)


def _is_webhook(value: object) -> bool:
    """Return whether a value is an address that may be posted to: https, or http on this machine, without a user."""
    try:
        parts = urlsplit(value if isinstance(value, str) and value.isprintable() else "")
    except ValueError:
        return False
    # Over plain http everybody on the way would read the events.
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    return bool(parts.hostname) and is_safe and not (parts.username or parts.password)


def _is_variable(value: object) -> bool:
    # A key that was written in its place is no name, and is not repeated in what is said about it.
    return isinstance(value, str) and value.isascii() and value.isidentifier()


class Settings(NamedTuple):
    """Where events are sent; without any of them nothing is.

    Args:
        command: A program and its arguments; no shell. It reads the event as JSON on its standard input.
        webhook: An address that events are posted to as JSON: `https://…`, or `http://…` on this machine.
        webhook_key_env: The variable of the environment with the key that signs each request; needed for a webhook.
        apprise_env: The variable of the environment with the addresses that `apprise` sends events to, separated by
            spaces: `mailtos://…`, `ntfys://…`, `slack://…`. They hold keys, so they are never in the file.
    """

    command: tuple[str, ...] = ()
    webhook: str = ""
    webhook_key_env: str = ""
    apprise_env: str = ""

    @property
    def channels(self) -> tuple[str, ...]:
        """The ways that are set: `command`, `webhook`, `apprise`."""
        set_by = {"command": self.command, "webhook": self.webhook, "apprise": self.apprise_env}
        return tuple(name for name, value in set_by.items() if value)


_VARIABLE: Final = "Write the name of the variable that holds it, never the key itself."
_CHECKS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "command": (
        _is_command,
        'Write the program and its arguments as a list: command = ["./notify.sh", "--all"].',
    ),
    "webhook": (
        _is_webhook,
        "Write https://HOST/PATH without a user; http:// only for 127.0.0.1, [::1] and localhost.",
    ),
    "webhook_key_env": (_is_variable, _VARIABLE),
    "apprise_env": (_is_variable, _VARIABLE),
}
"""What each key may hold, and what to write where it holds something else."""


def build(table: Mapping[str, Any]) -> Settings:
    """Return the settings of a table without faults."""
    values: dict[str, Any] = {**table, "command": tuple(table.get("command", ()))}
    return Settings(**values)


def faults(table: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield everything that is wrong with a `[notify]` table."""
    for key, value in table.items():
        if key not in _CHECKS:
            near = closest(key, _CHECKS)
            fix = f"Write `{near}`." if near else f"Remove it; the keys here are {', '.join(_CHECKS)}."
            yield _fault(key, f"the key `{key}` is unknown.", fix, "CFG103")
            continue
        holds, fix = _CHECKS[key]
        if not holds(value):
            yield _fault(key, "the value cannot be used.", fix)
    if table.get("webhook") and not table.get("webhook_key_env"):
        fix = 'Name the variable that holds the key: webhook_key_env = "INTERLOCK_WEBHOOK_KEY".'
        yield _fault("webhook_key_env", "the webhook has no key to sign its requests with.", fix)


def _fault(key: str, message: str, fix: str, code: str = "CFG104") -> Finding:
    return Finding(code, "error", f"notify.{key}", message, fix=fix)
