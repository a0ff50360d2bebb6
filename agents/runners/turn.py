"""One turn of a model in LangChain's agent loop: counted, limited and reported.

Imported with the first model: it needs LangChain.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import replace
from threading import Thread
from typing import Any, Final, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from interlock.agents.ask import Ask, RunnerError
from interlock.agents.runners.models import ModelSettings
from interlock.agents.usage import Limits, Price, Usage

_SHOWN: Final = ("path", "name", "folder")
_SHOWN_CHARS: Final = 120
_ERROR_CHARS: Final = 400
_CUT: Final = frozenset({"length", "max_tokens", "incomplete"})
"""How providers say, in small letters, that an answer was cut at the most that one call may write."""
_NOT_MADE: Final = (
    "This call was not made: the answer was cut at `max_tokens`, or arguments in it are no JSON object. Nothing of it "
    "was done. Call the tool again, and write less at a time."
)
_FIXES: Final[Mapping[int, str]] = {
    401: "Put a valid key into the variable that holds it, and resume the run.",
    403: "Use a key that may ask this model, and resume the run.",
    404: "Correct `model` or `base_url` (for OpenAI's protocol it usually ends in /v1), and start the run again.",
    429: "Look at the limits of the account, and resume the run.",
}
_OTHER: Final = "Do what it says: correct `base_url` or the settings of this model, or wait; then resume the run."


class Turn(AgentMiddleware[Any, None, Any]):
    """Wraps every call of the model and of a tool in one turn.

    A limit that is reached ends the turn with an empty answer; `stopped` names it with its figures.
    """

    def __init__(self, ask: Ask, settings: ModelSettings, price: Price | None, clock: Callable[[], float]) -> None:
        # LangChain asks each middleware which tools it brings.
        super().__init__()
        self.tools = []
        self._ask = ask
        self._settings = settings
        self._limits = ask.limits.within(Limits(calls=settings.max_calls))
        self._price = price
        self._clock = clock
        self._began = clock()
        self._used = Usage()
        self.model = ""
        self.tool_calls = 0
        self.opened: set[str] = set()
        self.stopped = ""

    @property
    def used(self) -> Usage:
        """What the turn has cost so far."""
        return replace(self._used, seconds=self._clock() - self._began)

    def wrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Make one call of the model.

        Raises:
            RunnerError: There is no answer to be had.
        """
        self.stopped = self._limits.spent(self.used)
        # An answer that calls no tool ends LangChain's loop.
        if self.stopped:
            return ModelResponse(result=[AIMessage(content="")])
        self._report("")
        try:
            response = self._in_time(handler, request)
        except Exception as error:
            raise refused(self._settings.model, error) from error
        if response is None:
            self.stopped = self._limits.spent(replace(self.used, seconds=max(self.used.seconds, self._seconds)))
            return ModelResponse(result=[AIMessage(content="")])
        (message,) = (each for each in response.result if isinstance(each, AIMessage))
        self._count(message, request.messages)
        # Messages of one id replace each other, and some servers give all of theirs the same.
        message.id = f"call-{self._used.calls}"
        # A call that has its result already is not made by LangChain.
        not_made = unmade(message)
        self.tool_calls += len(message.tool_calls) - len(not_made)
        return replace(response, result=[*response.result, *not_made])

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Report which tool is called and on what, and note which files it showed or wrote."""
        given = cast("Mapping[str, Any]", request.tool_call["args"])
        shown = next((str(given[key]) for key in _SHOWN if given.get(key)), "")
        self._report(f"{request.tool_call['name']} {' '.join(shown.split())[:_SHOWN_CHARS]}".strip())
        result = handler(request)
        self.opened |= _opened(result)
        return result

    def _report(self, tool: str) -> None:
        """Report what is being done; an empty tool: the model thinks."""
        row = {"kind": "working", "role": self._ask.role, "tool": tool, "calls": self._used.calls}
        self._ask.notice({**row, "tokens": self._used.tokens, "usd": self._used.usd})

    @property
    def _seconds(self) -> float:
        return self._limits.seconds or 0.0

    def _in_time(
        self, handler: Callable[[ModelRequest[None]], ModelResponse[Any]], request: ModelRequest[None]
    ) -> ModelResponse[Any] | None:
        """Call the model; None when the time is up first. A silent call cannot be interrupted: it is abandoned."""
        if self._limits.seconds is None:
            return handler(request)
        brought: Future[ModelResponse[Any]] = Future()

        def work() -> None:
            try:
                brought.set_result(handler(request))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                brought.set_exception(error)

        Thread(target=copy_context().run, args=(work,), name=f"call of {self._ask.role}", daemon=True).start()
        wait((brought,), max(0.0, self._seconds - self.used.seconds))
        return brought.result() if brought.done() else None

    def _count(self, message: AIMessage, sent: list[AnyMessage]) -> None:
        """Add what a call cost. Where the provider reports nothing, tokens are estimated and the price is unknown."""
        usd: float | None = None
        if (reported := message.usage_metadata) is not None:
            read, written = reported["input_tokens"], reported["output_tokens"]
            cached = min(read, reported.get("input_token_details", {}).get("cache_read") or 0)
            usd = None if self._price is None else self._price.usd(read, written, cached)
        else:
            read, written = count_tokens_approximately(sent), count_tokens_approximately([message])
        self._used += Usage(calls=1, input_tokens=read, output_tokens=written, usd=usd)
        self.model = str(cast("Mapping[str, Any]", message.response_metadata).get("model_name") or self.model)


def refused(model: str, error: Exception) -> RunnerError:
    """Return what stops the run where a call failed after the retries of its client."""
    status = next((found for each in _chain(error) if (found := _status(each))), None)
    said = " ".join(str(error).split())[:_ERROR_CHARS]
    what = f"answers {status}" if status else f"cannot be asked ({type(error).__name__})"
    return RunnerError(f"{model} {what}: {said}", _FIXES.get(status or 0, _OTHER))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that refused a call, under the names that the clients have for it."""
    values = (getattr(error, name, None) for name in ("status_code", "code"))
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def unmade(message: AIMessage) -> list[ToolMessage]:
    """Return the results for the calls of an answer that are not made, with the reason; none where all are made.

    Of an answer that was cut no call is made, since half a file would look like a whole one. Calls without readable
    arguments are given none, so that they can be answered.
    """
    for number, call in enumerate(message.invalid_tool_calls):
        known = call["id"] or f"{message.id}-unreadable-{number}"
        message.tool_calls.append({"type": "tool_call", "name": call["name"] or "unknown", "args": {}, "id": known})
    facts = cast("Mapping[str, Any]", message.response_metadata)
    # OpenAI and Google, Anthropic, Ollama, and OpenAI's newer API.
    reasons = (facts.get(name) for name in ("finish_reason", "stop_reason", "done_reason", "status"))
    is_cut = any(str(reason).lower() in _CUT for reason in reasons)
    calls = message.tool_calls if is_cut or message.invalid_tool_calls else []
    message.invalid_tool_calls = []
    return [ToolMessage(_NOT_MADE, tool_call_id=each["id"] or "", name=each["name"], status="error") for each in calls]


def _opened(result: object) -> set[str]:
    """Return the files that the answer of a tool of ours shows, or that it wrote; none of one that was refused."""
    content: object = getattr(result, "content", result)
    # An answer with a picture has its text in the first block.
    if isinstance(content, list) and content:
        content = cast("list[Any]", content)[0]
        content = cast("Mapping[str, Any]", content).get("text") if isinstance(content, Mapping) else None
    try:
        answer: object = json.loads(content) if isinstance(content, str) else None
    except ValueError:
        return set()
    if not isinstance(answer, dict):
        return set()
    row = cast("dict[str, Any]", answer)
    rows: list[Any] = [row, *(row.get("matches") or [])] if not row.get("errors") else []
    return {str(each["path"]) for each in rows if each.get("path")}
