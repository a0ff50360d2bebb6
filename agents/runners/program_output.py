"""What command-line agents print: the answer, its cost and its tool calls, out of the forms that they have."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeGuard, cast

from interlock.agents.ask import AgentsError, Answer
from interlock.agents.usage import Usage

Form: TypeAlias = Literal["text", "claude", "codex", "gemini"]
"""How the output is written: as it is, or as one of the known programs writes it when asked for JSON."""


_SESSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}", re.ASCII)


class UnreadableOutputError(AgentsError):
    """The output has not the form that it should have, or says that the agent failed.

    `said` are the agent's own words about that, and `usage` what it says that it spent all the same.
    """

    def __init__(self, message: str, said: str = "", usage: Usage | None = None) -> None:
        super().__init__(message, "Look at what the program printed.")
        self.said = said
        self.usage = usage


def read_output(form: Form, output: bytes) -> Answer:
    """Return the answer that a program printed.

    Bytes that are no UTF-8 stay what they are, so that the validator refuses them.

    Raises:
        UnreadableOutputError: It is not written so, or says that there is no answer.
    """
    return _READERS[form](output)


def session_of(form: Form, output: bytes) -> str:
    """Return the name of the conversation that an output belongs to; empty where there is none."""
    name: object = None
    if form == "codex":
        rows = (_object(_json(line)) for line in output.splitlines() if line.strip())
        name = next((row.get("thread_id") for row in rows if row.get("type") == "thread.started"), None)
    elif form != "text":
        name = _object(_json(output)).get("session_id")
    return name if isinstance(name, str) and _SESSION.fullmatch(name) else ""


def _claude(output: bytes) -> Answer:
    """Read the one object of `claude -p --output-format json`."""
    row = _object(_json(output))
    used = _object(row.get("usage"))
    sent = sum(_number(used, key) for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"))
    cost = row.get("total_cost_usd")
    usd = float(cost) if isinstance(cost, (int, float)) else None
    usage = Usage(max(1, _number(row, "num_turns")), sent, _number(used, "output_tokens"), usd=usd)
    result = row.get("result")
    if row.get("is_error") or not isinstance(result, str):
        said = f"{row.get('subtype') or 'error'}: {_shown(result)}" if row else ""
        raise UnreadableOutputError(f"it says {said}" if said else "it is no object", said, usage if row else None)
    models = list(_object(row.get("modelUsage")))
    # Each turn but the last one is a tool's.
    turns = row.get("num_turns")
    return Answer(result, usage, models[0] if len(models) == 1 else "", max(0, turns - 1) if _is_count(turns) else None)


def _codex(output: bytes) -> Answer:
    """Read the lines of `codex exec --json`: the last message of the agent, and what each turn cost."""
    text: str | None = None
    usage, calls, failure = Usage(usd=None), 0, ""
    for line in output.splitlines():
        if not line.strip():
            continue
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
                failure = _shown(_object(row.get("error")).get("message") or row.get("message"))
            case _:
                pass
    if text is None:
        message = f"it says: {failure}" if failure else "no message of the agent is in it"
        raise UnreadableOutputError(message, failure, usage if usage.calls else None)
    return Answer(text, usage, tool_calls=calls)


def _gemini(output: bytes) -> Answer:
    """Read the one object of `gemini --output-format json`."""
    row = _object(_json(output))
    stats = _object(row.get("stats"))
    models = _object(stats.get("models"))
    usage = Usage(usd=None)
    for model in models.values():
        tokens, api = _object(_object(model).get("tokens")), _object(_object(model).get("api"))
        said = _number(tokens, "candidates") + _number(tokens, "thoughts")
        usage += Usage(max(1, _number(api, "totalRequests")), _number(tokens, "prompt"), said, usd=None)
    text = row.get("response")
    if row.get("error") or not isinstance(text, str):
        said = _shown(_object(row.get("error")).get("message") or row.get("error"))
        raise UnreadableOutputError(f"it says: {said}", said if row.get("error") else "", usage if models else None)
    calls = _object(stats.get("tools")).get("totalCalls")
    return Answer(text, usage, next(iter(models), "") if len(models) == 1 else "", calls if _is_count(calls) else None)


_READERS: Final[Mapping[Form, Callable[[bytes], Answer]]] = {
    "text": lambda output: Answer(output.decode("utf-8", "surrogateescape"), Usage(calls=1, usd=None)),
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
}
FORMS: Final = tuple(_READERS)


def _json(output: bytes) -> object:
    try:
        return json.loads(output)
    except (ValueError, RecursionError) as error:
        raise UnreadableOutputError(f"it is no JSON: {_shown(output[:200].decode('utf-8', 'replace'))}") from error


def _object(value: object) -> dict[str, Any]:
    """Return an object, or an empty one in place of anything else: no figure is worth losing an answer."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(row: Mapping[str, Any], key: str) -> int:
    value = row.get(key)
    return value if _is_count(value) else 0


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 500 else f"{text[:500]}…"
