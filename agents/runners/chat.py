"""The `chat` runner: an agent that is a chat model, in LangChain's agent loop with our tools.

Imported with the first model: it needs LangChain.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from typing import Any, Final, TypeAlias, cast

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool

from interlock.agents.ask import Answer, Ask, RunnerError
from interlock.agents.runners.models import PROVIDERS, ModelSettings
from interlock.agents.runners.pictures import Pictures
from interlock.agents.runners.turn import Turn
from interlock.agents.tools import toolbox as own_tools
from interlock.agents.usage import Price

Toolbox: TypeAlias = Callable[[Ask], AbstractContextManager[list[BaseTool]]]
"""Opens the tools that a role may use, for the time of one answer."""

_KEPT: Final = ("callbacks", "tags", "metadata")
"""What a turn takes over from the run around it: its place in a trace, and nothing of its thread or stream."""


class ChatRunner:
    """A runner around a chat model. One answer is one turn: it works with its tools until it has said its answer.

    The tools are those of the role by default.
    """

    def __init__(
        self,
        model: BaseChatModel,
        settings: ModelSettings,
        price: Price | None = None,
        *,
        toolbox: Toolbox | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._settings = settings
        self._price = price
        self._toolbox = toolbox
        self._clock = clock

    def __call__(self, ask: Ask, /) -> Answer:
        """Let the model work on an ask and return what it said, with its cost.

        Raises:
            RunnerError: The provider cannot be reached or refuses to answer.
        """
        turn = Turn(ask, self._settings, self._price, self._clock)
        no_tools: AbstractContextManager[list[BaseTool]] = nullcontext([])
        try:
            with (self._toolbox or own_tools)(ask) if self._settings.tools else no_tools as tools:
                text = self._work(ask, turn, tools)
        except RunnerError as error:
            error.spent = turn.used
            raise
        # Tools of the user's own may show files in ways that nobody here knows of.
        opened = tuple(sorted(turn.opened)) if self._settings.tools and self._toolbox is None else None
        return Answer(text, turn.used, turn.model or self._settings.name, turn.tool_calls, turn.stopped, opened=opened)

    def _work(self, ask: Ask, turn: Turn, tools: list[BaseTool]) -> str:
        """Run LangChain's agent loop, and return its last text."""
        provider, taken = PROVIDERS.get(self._settings.provider), self._settings.images
        if taken is None:
            # LangChain knows the models of the providers; of one behind an address of the user's it knows nothing.
            taken = bool((self._model.profile or {}).get("image_inputs", False))
        middleware: list[Any] = [turn]
        if not (taken and provider is not None and provider.pictures):
            middleware.append(Pictures(taken=taken))
        agent: Any = create_agent(
            self._model, tools, system_prompt=ask.system or None, middleware=middleware, checkpointer=False
        )
        # One tool after the other: what they write has an order.
        config: RunnableConfig = {"max_concurrency": 1, "run_name": ask.role}
        # Inside a run LangGraph would take this loop for a part of the run's own graph, and keep its steps with it.
        context = copy_context()
        around = cast("dict[str, Any]", context.get(var_child_runnable_config) or {})
        kept = cast("RunnableConfig", {key: around[key] for key in _KEPT if key in around})
        context.run(var_child_runnable_config.set, kept)
        ended: dict[str, Any] = context.run(agent.invoke, {"messages": [HumanMessage(content=ask.prompt)]}, config)
        return str(ended["messages"][-1].text)
