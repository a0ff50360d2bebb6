"""What command-line agents print: what they do, what it costs, and the answer, out of the forms that they have."""

from collections.abc import Mapping
from math import inf
from typing import Any, Final, Literal, TypeAlias

from interlock.agents.ask import Answer
from interlock.agents.runners.event_stream import Stream, Unreadable, as_object, as_objects, is_count, number
from interlock.agents.usage import Usage
from interlock.core.text import shown

Form: TypeAlias = Literal["text", "claude", "codex", "gemini"]
"""How the output is written: as it is, or as one of the known programs writes it when asked for JSON."""

_CODEX_TOOLS: Final = {"command_execution": "shell", "file_change": "edit", "web_search": "search", "mcp_tool_call": ""}
"""The items of Codex that are tools, in a word; one of MCP has its own name."""


class _Claude(Stream):
    """The events of `claude -p --output-format stream-json --verbose`; of `json`, the last one is all there is."""

    def _read(self, row: Mapping[str, Any]) -> None:
        match row.get("type"):
            case "assistant":
                self._message(as_object(row.get("message")), str(row.get("parent_tool_use_id")))
            case "user":
                # What comes next is another message, also where a server gives all of its own the same id.
                self._open.pop(str(row.get("parent_tool_use_id")), None)
                self._tool_ended()
            case "result" | None if not row.keys().isdisjoint(("result", "is_error")):
                self._answer = self._result(row)
            case _:
                pass

    def _message(self, message: Mapping[str, Any], agent: str) -> None:
        self.doing, self.asks_next = "", False
        sent, written, cached = _claude_tokens(message)
        # A message without tokens is none of the model: Claude Code says so that a call failed.
        if sent or written:
            # Each block of a message is an event, with the id and the tokens of the whole.
            named = str(message.get("id"))
            if agent not in self._open or self._open[agent][0] != named:
                self.calls += 1
                self._open[agent] = named, str(self.calls)
            self._spends(self._open[agent][1], str(message.get("model")), sent, written, cached)
        for block in as_objects(message.get("content")):
            if block.get("type") == "tool_use":
                self._uses(block.get("name"), as_object(block.get("input")))

    def _result(self, row: Mapping[str, Any]) -> Answer | Unreadable:
        turns, cost = number(row, "num_turns"), row.get("total_cost_usd")
        # What is no amount of money, as JSON's NaN, would reach no limit: it counts as unknown.
        usd = float(cost) if isinstance(cost, (int, float)) and 0 <= cost < inf else None
        sent, written, _ = _claude_tokens(row)
        usage = Usage(self.calls or max(1, turns), sent, written, usd=usd)
        result = row.get("result")
        if row.get("is_error") or not isinstance(result, str):
            # `success` means that the program came to its end, also when the model could not be asked.
            subtype = "" if row.get("subtype") == "success" else str(row.get("subtype") or "error")
            said = ": ".join(filter(None, (subtype, shown(result or row.get("errors") or ""))))
            return Unreadable(f"it says: {said}", said, usage)
        models = list(as_object(row.get("modelUsage")))
        # Without its messages, each turn but the last one is a tool's.
        tool_calls = self.tool_calls if self.calls else turns - 1 if turns else None
        return Answer(result, usage, models[0] if len(models) == 1 else "", tool_calls)


def _claude_tokens(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return tokens sent, written and cached. Claude Code counts cached ones apart, and they are sent all the same."""
    used = as_object(row.get("usage"))
    cached = number(used, "cache_read_input_tokens")
    sent = number(used, "input_tokens") + number(used, "cache_creation_input_tokens") + cached
    return sent, number(used, "output_tokens"), cached


class _Codex(Stream):
    """The events of `codex exec --json`: the last message of the agent is the answer."""

    def _read(self, row: Mapping[str, Any]) -> None:
        item = as_object(row.get("item"))
        match row.get("type"), item.get("type"):
            case ("item.started" | "item.completed" as when, str(what)) if what in _CODEX_TOOLS:
                # Some tools are reported only when they have ended.
                if not (begun := str(item.get("id")) in self._begun):
                    self._begun.add(str(item.get("id")))
                    self._spoke()
                    files = as_objects(item.get("changes"))
                    self._uses(_CODEX_TOOLS[what] or item.get("tool"), files[0] if files else _subject(item))
                if when == "item.completed":
                    self.asks_next, self.doing = True, "" if begun else self.doing
            case "item.completed", "agent_message":
                self._spoke()
                self._text = str(item.get("text", ""))
            case "item.completed", "reasoning":
                self._spoke()
            case "turn.completed", _:
                used = as_object(row.get("usage"))
                sent, written = number(used, "input_tokens"), number(used, "output_tokens")
                self._spends(str(len(self._spent)), "", sent, written, number(used, "cached_input_tokens"))
                self.calls = max(1, self.calls)
            case (("turn.failed" | "error"), _):
                # Where a turn failed after its last message, the exit status says so.
                self._failure = shown(as_object(row.get("error")).get("message") or row.get("message"))
                self.doing = self._failure
            case _:
                pass


def _subject(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a tool of Codex works on: its arguments, or its command or query."""
    given = as_object(item.get("arguments"))
    return given or {key: item[key] for key in ("command", "query") if key in item}


class _Gemini(Stream):
    """The events of `gemini --output-format stream-json`, or the one object of `json`."""

    def _read(self, row: Mapping[str, Any]) -> None:
        match row.get("type"):
            case None if not row.keys().isdisjoint(("response", "error")):
                self._answer = self._whole(row)
            case "init":
                self.model = str(row.get("model") or "")
            case "message" if row.get("role") == "assistant":
                self._spoke()
                self._text = (self._text or "") + str(row.get("content", ""))
            case "tool_use":
                self._spoke()
                # What was said before a tool was called is not the answer.
                self._text = None
                self._uses(row.get("tool_name"), as_object(row.get("parameters")))
            case "tool_result":
                self._tool_ended()
            case "error":
                self.doing = self._failure = shown(row.get("message"))
            case "result":
                self._answer = self._result(row)
            case _:
                pass

    def _result(self, row: Mapping[str, Any]) -> Answer | Unreadable:
        stats = as_object(row.get("stats"))
        models = {name: as_object(each) for name, each in as_object(stats.get("models")).items()}
        for name, used in models.items() or [(self.model, stats)]:
            sent = number(used, "input_tokens")
            # Hidden reasoning is in the total alone.
            written = max(number(used, "output_tokens"), number(used, "total_tokens") - sent)
            self._spends(name, name, sent, written, number(used, "cached"))
        self.calls = max(1, self.calls)
        if row.get("status") == "error":
            said = shown(as_object(row.get("error")).get("message") or self._failure)
            return Unreadable(f"it says: {said}", said, self.used)
        return Answer(self._text or "", self.used, next(iter(models)) if len(models) == 1 else "", self.tool_calls)

    def _whole(self, row: Mapping[str, Any]) -> Answer | Unreadable:
        stats = as_object(row.get("stats"))
        models = {name: as_object(each) for name, each in as_object(stats.get("models")).items()}
        for name, model in models.items():
            tokens = as_object(model.get("tokens"))
            # Hidden reasoning is counted apart.
            written = number(tokens, "candidates") + number(tokens, "thoughts")
            self._spends(name, name, number(tokens, "prompt"), written, number(tokens, "cached"))
            self.calls += max(1, number(as_object(model.get("api")), "totalRequests"))
        text = row.get("response")
        if row.get("error") or not isinstance(text, str):
            said = shown(as_object(row.get("error")).get("message") or row.get("error"))
            return Unreadable(f"it says: {said}", said, self.used if models else None)
        calls = as_object(stats.get("tools")).get("totalCalls")
        name = next(iter(models)) if len(models) == 1 else ""
        return Answer(text, self.used, name, calls if is_count(calls) else None)


STREAMS: Final[Mapping[str, type[Stream]]] = {"claude": _Claude, "codex": _Codex, "gemini": _Gemini}
"""What reads the events of each form but `text`, whose output is the answer as it is."""

PROVIDERS: Final[Mapping[str, str]] = {"claude": "anthropic", "codex": "openai", "gemini": "google_genai"}
"""Whose models a program asks, as `[prices]` names them."""


def read_output(form: Form, output: bytes) -> Answer | Unreadable:
    """Return the answer that a program printed, or why there is none.

    Bytes that are no UTF-8 stay what they are, so that the validator refuses them.
    """
    if form == "text":
        return Answer(output.decode("utf-8", "surrogateescape"), Usage(calls=1, usd=None))
    stream = STREAMS[form]()
    stream.feed(output)
    return stream.end()
