"""What command-line agents print while they work: events, a JSON object on each line, and the answer among them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from interlock.agents.ask import Answer
from interlock.agents.usage import Price, Usage, total
from interlock.core.process import MAX_OUTPUT_BYTES
from interlock.core.text import shown

Form: TypeAlias = Literal["text", "claude", "codex", "gemini"]
"""How the output is written: as it is, or as one of the known programs writes it when asked for events."""

_NAMED: Final = ("file_path", "path", "command", "query")
"""Arguments that say best what a tool works on; of a tool without them, the first text does."""

_CODEX_TOOLS: Final = {"command_execution": "shell", "file_change": "edit", "web_search": "search", "mcp_tool_call": ""}
"""The items of Codex that are tools, in a word; one of MCP has its own name."""


class Unreadable(NamedTuple):
    """An output that has not the form that it should have, or says that the agent failed.

    `said` are the agent's own words about that, and `usage` what it says that it spent all the same.
    """

    why: str
    said: str = ""
    usage: Usage | None = None


class Stream(ABC):
    """Reads the events of one form, and notes what the agent does and spends; the answer is among them.

    Lines of another form, and events that are not known here, are passed over.

    Args:
        heard: Called with the stream after each line that is an object.
        prices: What the tokens of models cost, by `provider:name`.
        model: The model that was asked for, whose price counts where the events name none.

    Attributes:
        provider: The provider whose prices count.
        doing: The tool that was called last, and on what; empty once the model has said something.
        asks_next: Whether a tool has ended, so that the model is asked again.
    """

    provider = ""

    def __init__(
        self,
        heard: Callable[["Stream"], object] = lambda _stream: None,
        prices: Mapping[str, Price] | None = None,
        model: str = "",
    ) -> None:
        self.doing, self.asks_next = "", True
        self.calls = 0
        self.tool_calls: int = 0
        self.model = ""
        self._heard, self._prices, self._asked_for = heard, prices or {}, model
        # Of each part of the work what it spent; tools that have begun; money that the program names itself.
        self._spent: dict[str, Usage] = {}
        self._begun: set[str] = set()
        self._usd: float | None = None
        self._text: str | None = None
        self._failure = ""
        self._line, self._other = bytearray(), b""

    @abstractmethod
    def _read(self, row: Mapping[str, Any]) -> None:
        """Note what an event says."""

    @property
    def used(self) -> Usage:
        """What the agent has spent so far, as far as its events say it."""
        spent = total(self._spent.values()) if self._spent else Usage(usd=None)
        return replace(spent, calls=self.calls, usd=spent.usd if self._usd is None else self._usd)

    def feed(self, data: bytes) -> None:
        """Take the next piece of the output."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = bytes(self._line + line)
            self._line.clear()
            if row := object_of(_json(whole)):
                self._read(row)
                self._heard(self)
            else:
                self._other = self._other or whole.strip()
        self._line += rest
        # A line without an end is no event: it is passed over piece by piece.
        if len(self._line) > MAX_OUTPUT_BYTES:
            self._line.clear()

    def end(self) -> Answer | Unreadable:
        """Return the answer that was printed, or why there is none."""
        self.feed(b"\n")
        if self._text is not None:
            return Answer(self._text, self.used, self.model, self.tool_calls)
        usage = self.used if self.calls else None
        if self._failure:
            return Unreadable(f"it says: {self._failure}", self._failure, usage)
        if self._other and usage is None:
            return Unreadable(f"it is no JSON object: {shown(self._other.decode('utf-8', 'replace'), 200)}")
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

    def _spends(self, key: str, model: str, used: Mapping[str, Any]) -> None:
        """Note the tokens of a part of the work; what is said again of the same part replaces what was."""
        # Claude Code counts cached ones apart, and they are sent all the same.
        cached = number_of(used, "cache_read_input_tokens")
        sent = number_of(used, "input_tokens") + number_of(used, "cache_creation_input_tokens") + cached
        cached += number_of(used, "cached_input_tokens") + number_of(used, "cached")
        # Hidden reasoning of Gemini is in the total alone.
        written = max(number_of(used, "output_tokens"), number_of(used, "total_tokens") - sent)
        prices = (self._prices.get(f"{self.provider}:{name}") for name in (model, self._asked_for))
        price = next(filter(None, prices), None)
        usd = None if price is None else price.usd(sent, written, min(sent, cached))
        # A message without tokens is none of the model: Claude Code says so that a call failed.
        if sent or written:
            self._spent[key] = Usage(0, sent, written, usd=usd)


class _Claude(Stream):
    """The events of `claude -p --output-format stream-json --verbose`."""

    provider = "anthropic"

    def _read(self, row: Mapping[str, Any]) -> None:
        match row.get("type"):
            case "assistant":
                self._message(object_of(row.get("message")))
            case "user":
                self.asks_next, self.doing = True, ""
            case "result":
                self._result(row)
            case _:
                pass

    def _message(self, message: Mapping[str, Any]) -> None:
        self.asks_next, self.doing = False, ""
        # Each block of a message is an event, with the id and the tokens of the whole.
        self._spends(str(message.get("id")), str(message.get("model")), object_of(message.get("usage")))
        self.calls = len(self._spent)
        for block in objects_of(message.get("content")):
            if block.get("type") == "tool_use":
                self._uses(block.get("name"), object_of(block.get("input")))

    def _result(self, row: Mapping[str, Any]) -> None:
        self.calls = self.calls or max(1, number_of(row, "num_turns"))
        self.asks_next = False
        models = list(object_of(row.get("modelUsage")))
        self.model = models[0] if len(models) == 1 else ""
        self._spent.clear()
        self._spends("", self.model, object_of(row.get("usage")))
        cost, result = row.get("total_cost_usd"), row.get("result")
        # What is no amount of money, as JSON's NaN, would reach no limit: it counts as unknown.
        self._usd = float(cost) if isinstance(cost, (int, float)) and 0 <= cost < inf else None
        if isinstance(result, str) and not row.get("is_error"):
            self._text = result
            return
        # `success` means that the program came to its end, also when the model could not be asked.
        subtype = "" if row.get("subtype") == "success" else str(row.get("subtype") or "error")
        self._failure = ": ".join(filter(None, (subtype, shown(result or row.get("errors") or ""))))


class _Codex(Stream):
    """The events of `codex exec --json`: the last message of the agent is the answer."""

    provider = "openai"

    def _read(self, row: Mapping[str, Any]) -> None:
        item = object_of(row.get("item"))
        match row.get("type"), item.get("type"):
            case ("item.started" | "item.completed" as when, str(what)) if what in _CODEX_TOOLS:
                # Some tools are reported only when they have ended.
                if str(item.get("id")) not in self._begun:
                    self._begun.add(str(item.get("id")))
                    self._spoke()
                    subjects = (object_of(item.get("arguments")), *objects_of(item.get("changes")), item)
                    self._uses(_CODEX_TOOLS[what] or item.get("tool"), next(filter(None, subjects)))
                self.asks_next = when == "item.completed"
            case "item.completed", "agent_message":
                self._spoke()
                self._text = str(item.get("text", ""))
            case "item.completed", "reasoning":
                self._spoke()
            case "turn.completed", _:
                self._spends(str(len(self._spent)), "", object_of(row.get("usage")))
                self.calls = max(1, self.calls)
            case (("turn.failed" | "error"), _):
                # Where a turn failed after its last message, the exit status says so.
                self._failure = shown(object_of(row.get("error")).get("message") or row.get("message"))
                self.doing = self._failure
            case _:
                pass


class _Gemini(Stream):
    """The events of `gemini --output-format stream-json`: what was said after the last tool is the answer."""

    provider = "google_genai"

    def _read(self, row: Mapping[str, Any]) -> None:
        match row.get("type"):
            case "init":
                self.model = str(row.get("model") or "")
            case "message" if row.get("role") == "assistant":
                self._spoke()
                self._text = (self._text or "") + str(row.get("content", ""))
            case "tool_use":
                self._spoke()
                self._text = None
                self._uses(row.get("tool_name"), object_of(row.get("parameters")))
            case "tool_result":
                self.asks_next, self.doing = True, ""
            case "error":
                self.doing = self._failure = shown(row.get("message"))
            case "result":
                self._result(row)
            case _:
                pass

    def _result(self, row: Mapping[str, Any]) -> None:
        stats = object_of(row.get("stats"))
        models = {name: object_of(each) for name, each in object_of(stats.get("models")).items()}
        for name, used in models.items() or [(self.model, stats)]:
            self._spends(name, name, used)
        self.calls = max(1, self.calls)
        self.model = next(iter(models)) if len(models) == 1 else ""
        self._text = self._text or ""
        if row.get("status") == "error":
            self._failure = shown(object_of(row.get("error")).get("message") or self._failure)
            self._text = None


STREAMS: Final[Mapping[str, type[Stream]]] = {"claude": _Claude, "codex": _Codex, "gemini": _Gemini}
"""What reads the events of each form but `text`, whose output is the answer as it is."""


def _json(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def object_of(value: object) -> dict[str, Any]:
    """Return an object, or an empty one in place of anything else: no figure is worth losing an answer."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; none of anything else."""
    return [object_of(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def number_of(row: Mapping[str, Any], key: str) -> int:
    """Return a count, 0 where there is none."""
    value = row.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
