"""What command-line agents print: the answer, its cost and its tool calls, out of the forms that they have."""

import json
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeGuard, cast

from interlock.agents.ask import Answer
from interlock.agents.usage import Usage
from interlock.core.text import shown

Form: TypeAlias = Literal["text", "claude", "codex", "gemini"]
"""How the output is written: as it is, or as one of the known programs writes it when asked for JSON."""


class Unreadable(NamedTuple):
    """An output that has not the form that it should have, or says that the agent failed.

    `said` are the agent's own words about that, and `usage` what it says that it spent all the same.
    """

    why: str
    said: str = ""
    usage: Usage | None = None


def read_output(form: Form, output: bytes) -> Answer | Unreadable:
    """Return the answer that a program printed, or why there is none.

    Bytes that are no UTF-8 stay what they are, so that the validator refuses them.
    """
    return _READERS[form](output)


def _claude(output: bytes) -> Answer | Unreadable:
    """Read the one object of `claude -p --output-format json`."""
    row = _object(_json(output))
    if not row:
        return _no_json(output)
    used, turns = _object(row.get("usage")), _number(row, "num_turns")
    # Claude Code counts cached tokens apart, and they are sent all the same.
    sent = sum(_number(used, key) for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"))
    cost = row.get("total_cost_usd")
    # What is no amount of money, as JSON's NaN, would reach no limit: it counts as unknown.
    usd = float(cost) if isinstance(cost, (int, float)) and 0 <= cost < inf else None
    usage = Usage(max(1, turns), sent, _number(used, "output_tokens"), usd=usd)
    result = row.get("result")
    if row.get("is_error") or not isinstance(result, str):
        said = f"{row.get('subtype') or 'error'}: {shown(result)}"
        return Unreadable(f"it says {said}", said, usage)
    models = list(_object(row.get("modelUsage")))
    # Each turn but the last one is a tool's.
    return Answer(result, usage, models[0] if len(models) == 1 else "", turns - 1 if turns else None)


def _codex(output: bytes) -> Answer | Unreadable:
    """Read the lines of `codex exec --json`: the last message of the agent, and what each turn cost."""
    text: str | None = None
    usage, calls, failure = Usage(usd=None), 0, ""
    for line in output.splitlines():
        row = _object(_json(line))
        item = _object(row.get("item"))
        match row.get("type"), item.get("type"):
            case "item.completed", "agent_message":
                text = str(item.get("text", ""))
            case "item.completed", ("command_execution" | "file_change" | "mcp_tool_call" | "web_search"):
                calls += 1
            case "turn.completed", _:
                used = _object(row.get("usage"))
                usage += Usage(1, _number(used, "input_tokens"), _number(used, "output_tokens"), usd=None)
            case (("turn.failed" | "error"), _):
                failure = shown(_object(row.get("error")).get("message") or row.get("message"))
            case _:
                pass
    # Where a turn failed after its last message, the exit status says so.
    if text is None:
        why = f"it says: {failure}" if failure else "no message of the agent is in it"
        return Unreadable(why, failure, usage if usage.calls else None)
    return Answer(text, usage, tool_calls=calls)


def _gemini(output: bytes) -> Answer | Unreadable:
    """Read the one object of `gemini --output-format json`."""
    row = _object(_json(output))
    if not row:
        return _no_json(output)
    stats = _object(row.get("stats"))
    models = _object(stats.get("models"))
    usage = Usage(usd=None)
    for model in models.values():
        tokens, api = _object(_object(model).get("tokens")), _object(_object(model).get("api"))
        # Hidden reasoning is counted apart.
        said = _number(tokens, "candidates") + _number(tokens, "thoughts")
        usage += Usage(max(1, _number(api, "totalRequests")), _number(tokens, "prompt"), said, usd=None)
    text = row.get("response")
    if row.get("error") or not isinstance(text, str):
        failure = shown(_object(row.get("error")).get("message") or row.get("error"))
        return Unreadable(f"it says: {failure}", failure, usage if models else None)
    calls = _object(stats.get("tools")).get("totalCalls")
    return Answer(text, usage, next(iter(models), "") if len(models) == 1 else "", calls if _is_count(calls) else None)


_READERS: Final[Mapping[Form, Callable[[bytes], Answer | Unreadable]]] = {
    "text": lambda output: Answer(output.decode("utf-8", "surrogateescape"), Usage(calls=1, usd=None)),
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
}


def _no_json(output: bytes) -> Unreadable:
    return Unreadable(f"it is no JSON object: {shown(output.decode('utf-8', 'replace'), 200)}")


def _json(output: bytes) -> object:
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None


def _object(value: object) -> dict[str, Any]:
    """Return an object, or an empty one in place of anything else: no figure is worth losing an answer."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(row: Mapping[str, Any], key: str) -> int:
    value = row.get(key)
    return value if _is_count(value) else 0


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
