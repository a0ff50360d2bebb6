"""A chat model of LangChain as the runner of ticket stages: it reads or acts with tools, and answers with one object.

Imported with the first model: it needs LangChain.
"""

import json
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType] - bare generics
from langchain.agents.structured_output import ProviderStrategy, StructuredOutputError, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool

from interlock.agents.ask import Answer, Ask
from interlock.agents.files import files_of
from interlock.agents.runners.model_settings import ModelSettings
from interlock.agents.runners.turn import SpentError, Turn, Watch
from interlock.agents.tools import building_tools, command_tool, reading_tools
from interlock.agents.usage import Price
from interlock.gates.stages import payload_schema
from interlock.graph.ticket.spec import TICKET
from interlock.graph.ticket.stage_ask import readable

_NO_OBJECT: Final = "{}"


class StageRunner:
    """Answers the ask of a stage with its payload as JSON; what it holds is for the gate to say.

    The payload is the call of a tool whose arguments are the fields of the stage. A model without tools is held to the
    same schema by its provider, and reads nothing.
    """

    def __init__(
        self,
        model: BaseChatModel,
        settings: ModelSettings,
        price: Price | None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._settings = settings
        self._price = price
        self._sleep = sleep

    def __call__(self, ask: Ask, /) -> Answer:
        """Return the payload of a stage as JSON.

        Raises:
            RunnerError: There is no answer to be had, or the reservations cannot be used.
        """
        settings = self._settings
        turn = Turn(ask, settings, self._price, sleep=self._sleep, clock=time.monotonic)
        schema = payload_schema(TICKET.stage(ask.role))
        strategy = cast("Callable[..., Any]", ToolStrategy if settings.tools else ProviderStrategy)
        make = cast("Callable[..., Any]", create_agent)
        try:
            with self._tools(ask) as tools:
                agent = make(
                    self._model, tools, system_prompt=ask.system, middleware=[turn], response_format=strategy(schema)
                )
                # One tool after the other: what they write has an order.
                config = {"callbacks": [Watch(turn, time.monotonic)], "max_concurrency": 1, "run_name": ask.role}
                said = agent.invoke({"messages": [HumanMessage(ask.prompt)]}, config)
            text = _payload(said)
        except SpentError as error:
            return Answer("", turn.used, turn.model or settings.model, turn.tool_calls, str(error))
        except StructuredOutputError as error:
            text = error.ai_message.text
        return Answer(text or _NO_OBJECT, turn.used, turn.model or settings.model, turn.tool_calls)

    @contextmanager
    def _tools(self, ask: Ask) -> Generator[list[BaseTool]]:
        if not self._settings.tools:
            yield []
        elif ask.step != "build":
            yield reading_tools(ask.root, ask.in_scope)
        else:
            with files_of(ask, ask.in_scope, readable(ask.root)) as files:
                run = [command_tool(ask.commands, ask.root, ask.environment)] if ask.commands else []
                yield [*building_tools(files), *run]


def _payload(said: dict[str, Any]) -> str:
    if (payload := said.get("structured_response")) is not None:
        return json.dumps(payload, ensure_ascii=False)
    last = said["messages"][-1]
    return last.text if isinstance(last, AIMessage) else ""
