"""Errors of calls to a model: which are retried, which hold an answer, and which are refused with a fix."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any, Final

from langchain_core.exceptions import ContextOverflowError, ModelError
from langchain_core.messages import AIMessage

from interlock.agents.ask import AgentsError

_SHOWN_CHARS: Final = 400
_PAGE_CHARS: Final = 60
_RETRIED: Final = frozenset({408, 409, 425, 429})
_OVERLOADED: Final = 500
_REFUSED: Final = 400

KEY: Final = "the variable that holds it"
"""In a fix, the variable of the key, whose name the turn knows."""

_ADDRESS: Final = "`base_url` (for OpenAI's protocol it usually ends in /v1), and start the run again."
_FIXES: Final[Mapping[int, tuple[str, str]]] = {
    401: ("refuses the key", f"Put a valid key into {KEY}, and resume the run."),
    402: ("asks for payment", "Settle the account with the provider, and resume the run."),
    403: ("does not let this key ask", "Use a key that may ask this model, and resume the run."),
    404: ("does not know the model or the address", f"Correct `model` or {_ADDRESS}"),
    413: ("refuses the size of the request", "Take a model with a longer context, or narrow the scope of the task."),
}
_TOO_LONG: Final = (
    "refuses the assignment as longer than its context",
    "Take a model with a longer context, or narrow the scope of the task.",
)
_OTHER: Final = (
    "refuses the request",
    'Correct the settings of this model (`constrain = "off"` takes the grammar away), and start the run again.',
)
_LONG: Final = re.compile(r"exceed\w*[ _](?:the )?(?:available )?context|context (?:length|window|size)", re.IGNORECASE)

# The libraries of the providers bring two HTTP clients; their errors are alike in name alone.
_TRANSPORT: Final = frozenset({"TransportError", "APIConnectionError", "StreamChunkTimeoutError"})
_IN_STREAM: Final = "APIError"
_NOTHING_CAME: Final = ("No generations found in stream", "No data received from Ollama stream")
_RETRY_DELAY: Final = re.compile(r"retryDelay\W{1,6}([0-9]{1,6}(?:\.[0-9]{1,9})?)s", re.ASCII)
_ENDED: Final = ("finish_reason", "stop_reason", "done_reason", "status")

_AT_LENGTH: Final = "was cut at the most that one call may write (`max_tokens`)"
_FILTERED: Final = "was ended by the provider's filter"
_ENDINGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("length", "max_tokens", "incomplete"), _AT_LENGTH),
    "model_context_window_exceeded": "was cut at the end of the model's context",
    **dict.fromkeys(("content_filter", "refusal", "safety", "recitation", "blocklist"), _FILTERED),
    **dict.fromkeys(("prohibited_content", "spii"), _FILTERED),
}
"""What providers say of an answer that is not whole, in small letters. Whatever else they say, it ended by itself."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is to be done about an error.

    Args:
        what: What is wrong, to follow the name of the model.
        fix: What to do once it is not tried any more.
        again: Whether the same call may succeed later.
        wait_seconds: How long the provider asks to wait; None when it does not say.
        text: What came whole and is no message of the provider: the agent's answer. None when nothing came.
    """

    what: str
    fix: str
    again: bool = False
    wait_seconds: float | None = None
    text: str | None = None


class CutError(AgentsError):
    """A streamed answer ended without saying that it is whole."""


def fault_of(error: Exception) -> Fault:
    """Return what to do about an error of a call; an unknown one is refused."""
    chain = list(_chain(error))
    said = " ".join(str(error).split())[:_SHOWN_CHARS]
    status = next((found for each in chain if (found := _status(each)) is not None), None)
    if any(isinstance(each, ContextOverflowError) for each in chain) or (status == _REFUSED and _LONG.search(said)):
        return Fault(f"{_TOO_LONG[0]}: {said}", _TOO_LONG[1])
    if status is not None:
        if status in _RETRIED or status >= _OVERLOADED:
            fix = "Look whether the provider has a fault or the account a limit, and resume the run."
            return Fault(f"answers {status}: {said}", fix, again=True, wait_seconds=_wait(chain))
        what, fix = _FIXES.get(status, _OTHER)
        return Fault(f"{what} ({status}): {said}", fix)
    if any(type(each) is ValueError and str(each).startswith(_NOTHING_CAME) for each in chain):
        return Fault("sends nothing that is an answer", f"Look at {_ADDRESS}", again=True)
    if (text := next((each.doc for each in chain if isinstance(each, JSONDecodeError)), None)) is not None:
        if text.lstrip().startswith("<"):
            page = text.strip()[:_PAGE_CHARS]
            return Fault(f"answers with a page, not with a message: {page}", f"Correct {_ADDRESS}")
        return Fault("", "", text=text)
    if any(_is_transport(each) for each in chain):
        fix = "Look whether the address is right and can be reached, and resume the run."
        return Fault(f"cannot be reached: {said or type(error).__name__}", fix, again=True)
    fix = "Correct the settings of this model; if they are right, its library has a fault."
    return Fault(f"failed with {type(error).__name__}: {said}", fix)


def is_cut(message: AIMessage) -> bool:
    """Return whether a streamed message lacks its end. A message without any content has nothing that could be cut."""
    facts: Mapping[str, Any] = message.response_metadata
    if "model_provider" not in facts or not (message.text or message.tool_calls):
        return False
    return not any(facts.get(name) for name in _ENDED)


def ending(message: AIMessage) -> str:
    """Return what cut a message off, to follow the name of the answer; empty when it is complete."""
    facts: Mapping[str, Any] = message.response_metadata
    return next((words for name in _ENDED if (words := _ENDINGS.get(str(facts.get(name)).lower()))), "")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that refused a call; an error within a stream of status 200 has none."""
    response = getattr(error, "response", None)
    for holder, name in ((error, "status_code"), (error, "code"), (response, "status_code")):
        value: object = getattr(holder, name, None)
        if isinstance(value, int) and value >= _REFUSED:
            return value
    return None


def _is_transport(error: BaseException) -> bool:
    if isinstance(error, ModelError):
        return error.is_retryable
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, (ConnectionError, TimeoutError, CutError)) or bool(names & {*_TRANSPORT, _IN_STREAM})


def _wait(chain: list[BaseException]) -> float | None:
    """Return what `Retry-After` says in seconds, or Google's word for it in the body."""
    for error in chain:
        headers = getattr(getattr(error, "response", None), "headers", None)
        if headers is not None and (value := headers.get("retry-after")):
            return _seconds(str(value))
    found = next((match for error in chain if (match := _RETRY_DELAY.search(str(error)))), None)
    return None if found is None else float(found[1])


def _seconds(value: str) -> float | None:
    with suppress(ValueError):
        return max(0.0, float(value))
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (at - datetime.now(UTC)).total_seconds()) if at.tzinfo else None
