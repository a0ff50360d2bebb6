"""Reading what a program of an agent prints while it works: events, a JSON object on each line."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeGuard, cast

from interlock.agents.ask import Answer
from interlock.agents.usage import Price, Usage, total
from interlock.core.process import MAX_OUTPUT_BYTES
from interlock.core.text import shown

_NAMED: Final = ("file_path", "path", "command")
"""Arguments that say best what a tool works on; of a tool without them, the first text does."""


class Unreadable(NamedTuple):
    """An output that has not the form that it should have, or says that the agent failed.

    `said` are the agent's own words about that, and `usage` what it says that it spent all the same.
    """

    why: str
    said: str = ""
    usage: Usage | None = None


class Stream(ABC):
    """Reads the events of one form, and notes what the agent does and spends; the answer is among them.

    Lines of another form, and events that are not known here, are passed over. An output that is one object as a
    whole, which the programs print where they are not asked for events, is read at the end.

    Args:
        heard: Called with the stream after each line that is an object.
        price: Returns what a model costs, by its name; None where that is not known.

    Attributes:
        doing: The tool that runs, and on what; empty while the model thinks.
        asks_next: Whether a tool has ended, so that the model is asked again.
        calls: How often the model has answered, as far as the events show it.
        tool_calls: How many tools it called.
        model: The model, where the events name it.
    """

    def __init__(
        self,
        heard: Callable[["Stream"], object] = lambda _stream: None,
        price: Callable[[str], Price | None] = lambda _model: None,
    ) -> None:
        self.doing, self.asks_next = "", True
        self.calls = self.tool_calls = 0
        self.model = ""
        self._heard, self._price = heard, price
        self._spent: dict[str, Usage] = {}
        # Tools that have begun, and of the agent and of each agent that it started the message whose parts still come.
        self._begun: set[str] = set()
        self._open: dict[str, tuple[str, str]] = {}
        self._text: str | None = None
        self._failure = ""
        self._answer: Answer | Unreadable | None = None
        self._line, self._other = bytearray(), bytearray()

    @abstractmethod
    def _read(self, row: Mapping[str, Any]) -> None:
        """Note what an event says."""

    @property
    def used(self) -> Usage:
        """What the agent has spent so far, as far as its events say it."""
        spent = total(self._spent.values()) if self._spent else Usage(usd=None)
        return replace(spent, calls=self.calls)

    def feed(self, data: bytes) -> None:
        """Take the next piece of the output."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = bytes(self._line + line)
            self._line.clear()
            if row := as_object(_json(whole)):
                self._read(row)
                self._heard(self)
            elif len(self._other) < MAX_OUTPUT_BYTES:
                self._other += whole + b"\n"
        self._line += rest
        # A line without an end is no event: it is passed over piece by piece.
        if len(self._line) > MAX_OUTPUT_BYTES:
            self._line.clear()

    def end(self) -> Answer | Unreadable:
        """Return the answer that was printed, or why there is none."""
        self.feed(b"\n")
        if whole := as_object(_json(bytes(self._other))):
            self._read(whole)
        if self._answer is not None:
            return self._answer
        if self._text is not None:
            return Answer(self._text, self.used, self.model, self.tool_calls)
        usage = self.used if self.calls else None
        if self._failure:
            return Unreadable(f"it says: {self._failure}", self._failure, usage)
        other = self._other.decode("utf-8", "replace").strip()
        if other and usage is None:
            return Unreadable(f"it is no JSON object: {shown(other, 200)}")
        return Unreadable("no message of the agent is in it", "", usage)

    def _spoke(self) -> None:
        """Note that the model says something; the first of it after it was asked is one more call."""
        self.calls += self.asks_next
        self.asks_next, self.doing = False, ""

    def _uses(self, name: object, given: Mapping[str, Any]) -> None:
        """Note that it calls a tool with these arguments."""
        self.tool_calls += 1
        texts = [*map(given.get, _NAMED), *given.values()]
        subject = next((text for text in texts if isinstance(text, str) and text.strip()), "")
        self.doing = " ".join(f"{name} {subject}".split())

    def _tool_ended(self) -> None:
        self.asks_next, self.doing = True, ""

    def _spends(self, key: str, model: str, sent: int, written: int, cached: int = 0) -> None:
        """Note the tokens of a part of the work; what is said again of the same part replaces what was."""
        price = self._price(model)
        usd = None if price is None else price.usd(sent, written, min(sent, cached))
        self._spent[key] = Usage(0, sent, written, usd=usd)


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_object(value: object) -> dict[str, Any]:
    """Return an object, or an empty one in place of anything else: no figure is worth losing an answer."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; none of anything else."""
    return [as_object(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def number(row: Mapping[str, Any], key: str) -> int:
    """Return a count, 0 where there is none."""
    value = row.get(key)
    return value if is_count(value) else 0


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is a number of things."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
