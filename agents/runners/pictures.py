"""Pictures in the results of tools, put where a model takes them.

Imported with the first model: it needs LangChain.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

_NONE_TAKEN: Final = {"type": "text", "text": "A picture is left out here: this model takes none."}
_FOLLOWS: Final = {"type": "text", "text": "The picture follows in the next message."}


class Pictures(AgentMiddleware[Any, None, Any]):
    """Rearranges the messages of each call; those that are kept stay as they are."""

    def __init__(self, *, taken: bool) -> None:
        super().__init__()
        self.tools = []
        self._taken = taken

    def wrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Hand the call on with its pictures in messages of the user, or without them."""
        return handler(request.override(messages=arranged(request.messages, taken=self._taken)))


def arranged(messages: Sequence[AnyMessage], *, taken: bool) -> list[AnyMessage]:
    """Return messages whose tool results hold no picture; where pictures are `taken`, they follow in one of the user.

    Results of tools that were called together stay together, as providers ask; their pictures follow the last one.
    """
    done: list[AnyMessage] = []
    waiting: list[dict[str, Any]] = []
    for message in messages:
        if not isinstance(message, ToolMessage):
            # With another message the results of one answer's calls are complete.
            done.extend(_picture_message(waiting))
            waiting = []
            done.append(message)
            continue
        blocks = _blocks(message)
        pictures = [block for block in blocks if _is_picture(block)]
        if not pictures:
            done.append(message)
            continue
        instead = _FOLLOWS if taken else _NONE_TAKEN
        done.append(message.model_copy(update={"content": [instead if _is_picture(each) else each for each in blocks]}))
        if taken:
            waiting += [{"type": "text", "text": f"What the tool {message.name or ''} showed:"}, *pictures]
    return [*done, *_picture_message(waiting)]


def _picture_message(blocks: list[dict[str, Any]]) -> list[AnyMessage]:
    return [HumanMessage(content=cast("list[str | dict[Any, Any]]", blocks))] if blocks else []


def _blocks(message: ToolMessage) -> list[dict[str, Any]]:
    content: object = message.content
    rows = cast("list[object]", content) if isinstance(content, list) else []
    return [
        cast("dict[str, Any]", row) if isinstance(row, dict) else {"type": "text", "text": str(row)} for row in rows
    ]


def _is_picture(block: Mapping[str, Any]) -> bool:
    return block.get("type") in {"image", "image_url"}
