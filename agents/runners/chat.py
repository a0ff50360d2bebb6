"""The `chat` and `local` runners: an agent that is a chat model, in LangChain's agent loop with our tools.

Imported with the first model: it needs LangChain.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool

from interlock.agents.ask import Answer, Ask, RunnerError
from interlock.agents.constrained_decoding import (
    BOUNDS,
    LOCAL_BOUNDS,
    Form,
    answer_text,
    constraint,
    form_for,
    longest_answer,
)
from interlock.agents.runners.conversation import Conversations
from interlock.agents.runners.llama import CONTEXT as LOCAL_CONTEXT_TOKENS
from interlock.agents.runners.model_settings import LOCAL, PROVIDERS, ModelSettings
from interlock.agents.runners.models import chat_model
from interlock.agents.runners.pictures import Pictures
from interlock.agents.runners.turn import SpentError, Turn, Watch
from interlock.agents.tools import toolbox as own_tools
from interlock.agents.usage import Price
from interlock.envelope import parse

Toolbox: TypeAlias = Callable[[Ask], AbstractContextManager[list[BaseTool]]]
"""Opens the tools that a role may use, for the time of one answer."""

CLOSING: Final = "Give your answer now: the envelope of your contract, and nothing else."

CONTEXT_TOKENS: Final = 65_536
"""What a model is taken to read at once when that is not known. A conversation goes on while it fills half of it."""

_KEPT: Final = ("callbacks", "tags", "metadata")
"""What a turn takes over from the run around it: its place in a trace, and nothing of its thread or stream."""


class ChatRunner:
    """A runner around a chat model. One answer is one turn: it works with its tools until it has said its answer.

    `where` is the table that asks for it, such as `agents.visual-qa`; the tools are those of the role by default.

    Raises:
        AgentConfigError: The model cannot be made as the settings say.
    """

    def __init__(
        self,
        settings: ModelSettings,
        price: Price | None = None,
        *,
        where: str = "agents",
        toolbox: Toolbox | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._price = price
        self._where = where
        self._toolbox = toolbox
        self._sleep = sleep
        self._clock = clock
        self._talks: Conversations[list[AnyMessage]] = Conversations()
        self._model = None if settings.provider == LOCAL else chat_model(settings, where=where)

    def __call__(self, ask: Ask, /) -> Answer:
        """Let the model work on an ask and return what it said, with its cost.

        Raises:
            RunnerError: The provider cannot be reached or refuses to answer, or a local model cannot be started.
        """
        turn = Turn(
            ask,
            self._settings,
            self._price,
            renewed=None if self._model is not None else lambda: chat_model(self._settings, where=self._where),
            sleep=self._sleep,
            clock=self._clock,
        )
        text, stopped = "", ""
        try:
            text = self._work(ask, turn)
        except SpentError as spent:
            stopped = str(spent)
        except RunnerError as error:
            error.spent = turn.used
            raise
        # Tools of the user's own may show files in ways that nobody here knows of.
        opened = tuple(sorted(turn.opened)) if self._settings.tools and self._toolbox is None else None
        return Answer(text, turn.used, turn.model or self._settings.name, turn.tool_calls, stopped, opened=opened)

    def _work(self, ask: Ask, turn: Turn) -> str:
        # A local model is looked for each time: its server may have ended, and is started again then.
        model = self._model or chat_model(self._settings, where=self._where)
        form = self._form
        history = self._begun(ask, model)
        if self._settings.tools:
            with (self._toolbox or own_tools)(ask) as tools:
                history = self._talk(model, ask, turn, history, tools)
            text = str(history[-1].text)
            if form is None or parse(text).envelope is not None:
                self._talks.keep(ask, history)
                return text
            history = [*history, HumanMessage(content=CLOSING)]
        if form is not None:
            turn.close(self._constraint(form, ask))
        history = self._talk(model, ask, turn, history, ())
        self._talks.keep(ask, history)
        return str(history[-1].text) if form is None else answer_text(form, history[-1])

    def _begun(self, ask: Ask, model: BaseChatModel) -> list[AnyMessage]:
        """Return what the model has before it: the conversation of the refused answer, if that leaves it space."""
        said = self._talks.take(ask)
        if said is not None:
            longer = [*said, HumanMessage(content=ask.correction)]
            usual = LOCAL_CONTEXT_TOKENS if self._settings.provider == LOCAL else CONTEXT_TOKENS
            known = self._settings.context or (model.profile or {}).get("max_input_tokens") or usual
            if count_tokens_approximately(longer) <= known // 2:
                return longer
        return [HumanMessage(content=ask.prompt)]

    @cached_property
    def _form(self) -> Form | None:
        """The form of the grammar that the provider takes; a server of the user's is asked once."""
        settings = self._settings
        if settings.constrain == "off":
            return None
        key = os.environ.get(settings.api_key_env, "") if settings.api_key_env else ""
        return form_for(settings.provider, settings.name, settings.base_url, key=key)

    def _constraint(self, form: Form, ask: Ask) -> dict[str, Any]:
        """Return what the request says, and for a local model how much it may write until it must have ended."""
        local = self._settings.provider == LOCAL
        bounds = LOCAL_BOUNDS if local else BOUNDS
        held = constraint(form, ask, bounds)
        if "extra_body" in held:
            held["extra_body"] = {**self._settings.options.get("extra_body", {}), **held["extra_body"]}
        if local and self._settings.max_tokens is None:
            held["max_tokens"] = longest_answer(ask, bounds)
        return held

    def _talk(
        self, model: BaseChatModel, ask: Ask, turn: Turn, history: Sequence[AnyMessage], tools: Sequence[BaseTool]
    ) -> list[AnyMessage]:
        """Run LangChain's agent loop, and return all messages."""
        row = PROVIDERS.get(self._settings.provider)
        taken = self._settings.images
        if taken is None:
            taken = bool((model.profile or {}).get("image_inputs", False))
        arranged = () if taken and row is not None and row.pictures else (Pictures(taken=taken),)
        agent: Any = create_agent(
            model, list(tools), system_prompt=ask.system or None, middleware=[turn, *arranged], checkpointer=False
        )
        # One tool after the other: what they write has an order.
        config: RunnableConfig = {"callbacks": [Watch(turn, self._clock)], "max_concurrency": 1, "run_name": ask.role}
        context = copy_context()
        around = cast("dict[str, Any]", context.get(var_child_runnable_config) or {})
        kept = cast("RunnableConfig", {key: around[key] for key in _KEPT if key in around})
        context.run(var_child_runnable_config.set, kept)
        ended: dict[str, Any] = context.run(agent.invoke, {"messages": list(history)}, config)
        return ended["messages"]
