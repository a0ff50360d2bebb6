"""The console and the requests of a page: records in the form that the content check reads.

An uncaught error comes in two ways. The browser reports it, unless a handler of the page prevents that; js/freeze.js
reports it to the collector before any handler runs. What only the collector learned of was swallowed.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

Kind: TypeAlias = Literal["console", "pageerror", "requestfailed", "response", "blocked"]

MAX_TEXT: Final = 4_000
MAX_RECORDS: Final = 2_000
"""More than these of one width are counted and not kept; the count is an error of its own."""

_BLOB: Final = re.compile(r"blob:[a-z]+://[^/\s]*/[0-9a-f-]{36}", re.ASCII)
"""Addresses that the browser makes up anew each time."""

_UNCAUGHT: Final = "Uncaught"
_REJECTED: Final = "Uncaught (in promise) "

_LOOP_NOTICE: Final = "ResizeObserver loop"
"""How a notice of the browser begins that comes as an error event; what a script throws begins with "Uncaught"."""

_LEVELS: Final = {"error": "error", "assert": "error", "warning": "warning", "debug": "debug", "verbose": "debug"}


@dataclass(slots=True)
class Recorder:
    """The console and network log of one page at one width.

    Calls of console are kept in their order. Uncaught errors and requests come in any order, so they are sorted: the
    same page gives the same bytes.
    """

    width: int
    dropped: int = 0
    _console: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _thrown: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _seen_first: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _asked: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict[tuple[str, str], dict[str, Any]])
    _log: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def console(self, level: str, text: str, url: str = "") -> None:
        """Record a call of console, or a note of the collector's own (which begins `interlock:`)."""
        self._keep(self._console, self._record("console", _LEVELS.get(level, "info"), text, url))

    def error(self, text: str, url: str) -> None:
        """Record an uncaught exception or rejection."""
        self._keep(self._thrown, self._record("pageerror", "error", text, url))

    def seen_first(self, text: str, url: str) -> None:
        """Take an uncaught exception or rejection that the page's handlers have not seen yet."""
        if not text.startswith(_LOOP_NOTICE):
            self._keep(self._seen_first, (text, url))

    def request(self, kind: Kind, level: str, text: str, url: str, status: int | None = None) -> None:
        """Record what became of a request, once for each kind and address."""
        if len(self._asked) < MAX_RECORDS:
            self._asked.setdefault((url, kind), self._record(kind, level, text, url, status))
        else:
            self.dropped += 1

    def browser_log(self, entry: dict[str, Any]) -> None:
        """Record what the browser itself logged; what a request shows already is left out."""
        self._keep(self._log, entry)

    def records(self) -> list[dict[str, Any]]:
        """Return all records: those of console, what was thrown or logged by the browser, then requests."""
        # The browser logs a failed request as text, too, which would count it twice.
        known = {url for url, _ in self._asked}
        sockets = tuple(f"WebSocket connection to '{url}' failed" for url, kind in self._asked if kind == "blocked")
        log = [
            self._record("console", _LEVELS.get(entry["level"], "info"), entry.get("text", ""), entry.get("url", ""))
            for entry in self._log
            if not (entry.get("source") == "network" and entry.get("url", "") in known)
            and not entry.get("text", "").startswith(sockets)
        ]
        unordered = sorted(
            [*self._thrown, *log, *self._swallowed()],
            key=lambda row: (row["kind"], row["url"], row["level"], row["text"]),
        )
        rows = [*self._console, *unordered, *(self._asked[key] for key in sorted(self._asked))]
        if self.dropped:
            rows.append(
                self._record("console", "error", f"interlock: {self.dropped} further records were not kept", "")
            )
        return rows

    def _swallowed(self) -> list[dict[str, Any]]:
        """Return a record for each error that the browser did not report."""
        reported = {_first_line(row["text"]) for row in self._thrown} | {
            _first_line(entry.get("text", ""))
            for entry in self._log
            if entry.get("source") == "worker" and entry.get("text", "").startswith(_UNCAUGHT)
        }
        # What a worker throws is reported by the worker and by each window above it.
        first = {_first_line(text): (text, url) for text, url in self._seen_first}
        unmatched = [first[line] for line in first if line not in reported]
        # The two ways do not always word an error alike, as when what was thrown is no Error.
        rows: list[dict[str, Any]] = []
        for text, url in unmatched[len(reported - first.keys()) :]:
            named = text.replace(_REJECTED, "an unhandled rejection: ", 1) if text.startswith(_REJECTED) else text
            rows.append(self._record("console", "error", f"interlock: the page swallowed {named}", url))
        return rows

    def _keep(self, rows: list[Any], row: object) -> None:
        if len(rows) < MAX_RECORDS:
            rows.append(row)
        else:
            self.dropped += 1

    def _record(self, kind: Kind, level: str, text: str, url: str, status: int | None = None) -> dict[str, Any]:
        return {
            "kind": kind,
            "level": level,
            "text": _BLOB.sub("blob:", text)[:MAX_TEXT],
            "url": _BLOB.sub("blob:", url)[:MAX_TEXT],
            "status": status,
            "width": self.width,
        }


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:MAX_TEXT]


def describe_value(remote: dict[str, Any]) -> str:
    """Return a DevTools remote object as the text that a console would show."""
    if remote.get("type") == "string":
        return remote.get("value", "")
    for key in ("unserializableValue", "description"):
        if key in remote:
            return str(remote[key])
    if "value" in remote:
        value = remote["value"]
        return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return str(remote.get("type", ""))


def describe_exception(details: dict[str, Any]) -> tuple[str, str]:
    """Return text and address of an uncaught exception."""
    thrown = details.get("exception", {})
    text = f"{details.get('text', 'Uncaught')} {describe_value(thrown) if thrown else ''}".strip()
    url = details.get("url") or next(
        (frame["url"] for frame in details.get("stackTrace", {}).get("callFrames", []) if frame.get("url")), ""
    )
    return text, url
