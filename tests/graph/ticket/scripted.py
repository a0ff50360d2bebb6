"""A chat model that says what a script holds, and the parts of such scripts."""

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field

from interlock.agents.runners.model_settings import ModelSettings
from interlock.agents.usage import Price
from interlock.graph.ticket.stage_runner import StageRunner
from tests.graph.ticket.walk import PAYLOADS

SETTINGS = ModelSettings(model="test:scripted", retries=0)


class KilledError(BaseException):
    """Ends a process in the middle: a script is at its end."""


class ScriptedModel(BaseChatModel):
    """Says the messages of a script, one a call, and keeps what it was sent and which tools it was given."""

    script: list[AIMessage]
    sent: list[list[BaseMessage]] = Field(default_factory=list[list[BaseMessage]])
    tools: list[list[str]] = Field(default_factory=list[list[str]])

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_more: Any) -> "Runnable[Any, AIMessage]":
        """Note the names of the tools."""
        self.tools.append([cast("BaseTool", tool).name for tool in tools])
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_more: Any,
    ) -> ChatResult:
        assert stop is None
        assert run_manager is not None
        if not self.script:
            raise KilledError
        self.sent.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.script.pop(0))])


def calls(*named: tuple[str, dict[str, Any]], tokens: tuple[int, int] = (100, 10)) -> AIMessage:
    """Return a message that calls tools."""
    rows = [{"name": name, "args": args, "id": f"call-{at}"} for at, (name, args) in enumerate(named)]
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens)}
    return AIMessage(content="", tool_calls=cast("Any", rows), usage_metadata=cast("Any", usage))


def says(stage: str, payload: dict[str, Any] | None = None) -> AIMessage:
    """Return a message with the payload of a stage; default: the one that passes."""
    return calls((stage, PAYLOADS[stage] if payload is None else payload))


EDIT = ("edit_file", {"path": "app.py", "old": "'Hello ' + name", "new": "'Hello ' + name + '!'"})
ACTS = [calls(EDIT), says("act_via_tools")]
BEFORE = [says(stage) for stage in PAYLOADS if stage not in ("fetch_ticket", "act_via_tools", "record_and_finalize")]
WHOLE = [*BEFORE, *ACTS, says("record_and_finalize")]
"""What takes a ticket to its end at once."""


def runner(script: Sequence[AIMessage], price: Price | None = None) -> tuple[StageRunner, ScriptedModel]:
    """Return a runner with a scripted model, and the model."""
    model = ScriptedModel(script=list(script))
    return StageRunner(model, SETTINGS, price, sleep=_never), model


def _never(_seconds: float) -> None:
    raise AssertionError("a test does not wait")
