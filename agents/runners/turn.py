"""One turn of a model in LangChain's agent loop: counted, limited, reported, and retried after a fault.

Imported with the first model: it needs LangChain.
"""

import json
import random
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import replace
from threading import Thread
from typing import Any, Final, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from interlock.agents.ask import Ask, RunnerError
from interlock.agents.runners.model_errors import KEY, CutError, Fault, ending, fault_of, is_cut
from interlock.agents.runners.model_settings import ModelSettings
from interlock.agents.usage import Limits, Price, Usage

FIRST_WAIT_SECONDS: Final = 1.0
MAX_WAIT_SECONDS: Final = 60.0
"""How long one wait may be; a provider that asks for more is not asked again."""

_JITTER: Final = 0.25
_NOTICE_SECONDS: Final = 1.0
_CHARS_A_TOKEN: Final = 4
_SHOWN: Final = ("path", "name", "folder")
_SHOWN_CHARS: Final = 120
_UNREADABLE: Final = "This call was not made: its arguments are no JSON object. Call the tool again with one."
_CUT: Final = (
    "This call was not made: your answer {why}. Nothing of it was done. Call the tool again, and write less at a time."
)


class SpentError(BaseException):
    """A limit ended the turn. No `Exception`: LangChain would log one that a callback raises as a fault of ours."""


class Turn(AgentMiddleware[Any, None, Any]):
    """Wraps every call of the model in one turn, and retries it as often as the settings say.

    `renewed` gives the model for a call that is made again, where it may have moved.
    """

    def __init__(
        self,
        ask: Ask,
        settings: ModelSettings,
        price: Price | None,
        *,
        renewed: Callable[[], BaseChatModel] | None = None,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        super().__init__()
        self.tools = []
        self._ask = ask
        self._settings = settings
        self._limits = ask.limits.within(Limits(calls=settings.max_calls))
        self._price = price
        self._renewed = renewed
        self._sleep = sleep
        self._clock = clock
        self._began = clock()
        self._options: Mapping[str, Any] = {}
        self._used = Usage()
        self.model = ""
        self.tool_calls = 0
        self.opened: set[str] = set()

    @property
    def used(self) -> Usage:
        """What the turn has cost so far."""
        return replace(self._used, seconds=self._clock() - self._began)

    def check(self) -> None:
        """End the turn when a limit is reached.

        Raises:
            SpentError: One is, with its figures.
        """
        if found := self._limits.spent(self.used):
            raise SpentError(found)

    def report(self, tool: str, more_tokens: int = 0) -> None:
        """Report what is being done; an empty tool: the model thinks."""
        row = {"kind": "working", "role": self._ask.role, "tool": tool, "calls": self._used.calls}
        self._ask.notice({**row, "tokens": self._used.tokens + more_tokens})

    def close(self, options: Mapping[str, Any]) -> None:
        """Let the calls that follow be for the answer alone: with these arguments, and what they call is no work."""
        self._options = options

    def wrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Make one call of the model, and retry after a fault of the transport.

        Raises:
            SpentError: A limit is reached.
            RunnerError: There is no answer to be had.
        """
        tries = 0
        request = request.override(model_settings={**request.model_settings, **self._options})
        while True:
            self.check()
            self.report("")
            try:
                response = self._in_time(handler, request)
                message = _whole(response)
            except Exception as error:
                fault = fault_of(error)
                if fault.text is not None:
                    message = AIMessage(content=fault.text)
                    self._count(message, request.messages)
                    return ModelResponse(result=[message])
                if not fault.again or tries >= self._settings.retries or (fault.wait_seconds or 0) > MAX_WAIT_SECONDS:
                    raise self._refusal(fault, tries) from error
                seconds = self._pause(tries, fault)
                self.report(f"waits {seconds:.0f} s: it {fault.what}")
                self._sleep(seconds)
                tries += 1
                if self._renewed is not None:
                    request = request.override(model=self._renewed())
            else:
                self._count(message, request.messages)
                # Messages of one id replace each other, and some servers give all of theirs the same; those of the asks
                # before this one may be among them.
                message.id = f"call-{self._ask.reask}-{self._used.calls}"
                if not request.tools or self._options:
                    return response
                refused = unmade(message)
                self.tool_calls += len(message.tool_calls) - len(refused)
                return replace(response, result=[*response.result, *refused])

    def _in_time(
        self, handler: Callable[[ModelRequest[None]], ModelResponse[Any]], request: ModelRequest[None]
    ) -> ModelResponse[Any]:
        """Call the model, and abandon the call when the time is up: a silent one cannot be interrupted.

        An answer that comes later is ended by its first piece, which finds the time spent.
        """
        limit = self._limits.seconds
        if limit is None:
            return handler(request)
        brought: Future[ModelResponse[Any]] = Future()

        def work() -> None:
            try:
                brought.set_result(handler(request))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                brought.set_exception(error)

        Thread(target=copy_context().run, args=(work,), name=f"call of {self._ask.role}", daemon=True).start()
        wait((brought,), max(0.0, limit - self.used.seconds))
        if not brought.done():
            raise SpentError(self._limits.spent(replace(self.used, seconds=max(limit, self.used.seconds))))
        return brought.result()

    def _refusal(self, fault: Fault, tries: int) -> RunnerError:
        after = f" (asked {tries + 1} times)" if tries else ""
        asks = f" It asks to wait {fault.wait_seconds:g} s." if (fault.wait_seconds or 0) > MAX_WAIT_SECONDS else ""
        return RunnerError(
            f"{self._settings.model} {fault.what}{after}", fault.fix.replace(KEY, self._settings.key_place) + asks
        )

    def _pause(self, tries: int, fault: Fault) -> float:
        """Return how long to wait: what the provider asks, else twice as long each time; never beyond the limit."""
        seconds = min(FIRST_WAIT_SECONDS * 2**tries, MAX_WAIT_SECONDS)
        if fault.wait_seconds is not None:
            seconds = fault.wait_seconds
        spread = seconds * (1 + random.uniform(0, _JITTER))  # noqa: S311 - spreads callers, hides nothing
        left = self._limits.seconds
        return spread if left is None else min(spread, max(0.0, left - self.used.seconds))

    def _count(self, message: AIMessage, sent: list[AnyMessage]) -> None:
        """Add what a call cost. Where the provider reports nothing, tokens are estimated and the price is unknown."""
        cached = 0
        if (reported := message.usage_metadata) is not None:
            read, written = reported["input_tokens"], reported["output_tokens"]
            cached = min(read, reported.get("input_token_details", {}).get("cache_read") or 0)
        else:
            read, written = count_tokens_approximately(sent), count_tokens_approximately([message])
        price = self._price
        if reported is None and price is not None and price.usd(1, 1) > 0:
            price = None
        usd = None if price is None else price.usd(read, written, cached)
        self._used += Usage(calls=1, input_tokens=read, output_tokens=written, usd=usd)
        self.model = str(cast("Mapping[str, Any]", message.response_metadata).get("model_name") or self.model)


class Watch(BaseCallbackHandler):
    """Reports a turn as it goes on, and ends it in the middle of an answer when its time is up."""

    run_inline = True

    def __init__(self, turn: Turn, clock: Callable[[], float]) -> None:
        self._turn = turn
        self._clock = clock
        self._reported_at = clock()
        self._chars = 0

    def on_chat_model_start(self, *_given: Any, **_more: Any) -> None:
        """Begin to count what comes."""
        self._chars = 0
        self._reported_at = self._clock()

    def on_llm_new_token(self, token: object, **more: Any) -> None:
        """Count a piece of an answer, and report it each second."""
        self._turn.check()
        self._chars += len(token if isinstance(token, str) else getattr(more.get("chunk"), "text", ""))
        if (now := self._clock()) - self._reported_at >= _NOTICE_SECONDS:
            self._reported_at = now
            self._turn.report("", self._chars // _CHARS_A_TOKEN)

    def on_tool_start(self, serialized: Mapping[str, Any] | None, input_str: str, **more: Any) -> None:
        """Report which tool is called, and on what."""
        del input_str
        name = str((serialized or {}).get("name") or "a tool")
        given = cast("Mapping[str, Any]", more.get("inputs") or {})
        shown = next((str(given[key]) for key in _SHOWN if given.get(key)), "")
        self._turn.report(f"{name} {' '.join(shown.split())[:_SHOWN_CHARS]}".strip())

    def on_tool_end(self, output: object, **_more: Any) -> None:
        """Note which files a tool showed."""
        self._turn.opened |= _opened(output)


def _opened(output: object) -> set[str]:
    """Return the files that the answer of a tool of ours shows, or that it wrote; none of one that was refused."""
    content: object = getattr(output, "content", output)
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


def _whole(response: ModelResponse[Any]) -> AIMessage:
    (message,) = (each for each in response.result if isinstance(each, AIMessage))
    if is_cut(message):
        raise CutError("the answer ended in its middle", "Ask again.")
    return message


def unmade(message: AIMessage) -> list[ToolMessage]:
    """Return the results for the calls of a model that are not made, with the reason.

    Those are the calls of an answer that was cut, since half a file would look like a whole one, and those without
    readable arguments, which are given none so that they can be answered.
    """
    for number, call in enumerate(message.invalid_tool_calls):
        known = call["id"] or f"{message.id}-unreadable-{number}"
        message.tool_calls.append({"type": "tool_call", "name": call["name"] or "unknown", "args": {}, "id": known})
    unreadable = message.tool_calls[len(message.tool_calls) - len(message.invalid_tool_calls) :]
    message.invalid_tool_calls = []
    why = ending(message)
    refused = message.tool_calls if why else unreadable
    text = _CUT.format(why=why) if why else _UNREADABLE
    return [ToolMessage(text, tool_call_id=call["id"] or "", name=call["name"], status="error") for call in refused]
