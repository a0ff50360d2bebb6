"""Tool calls that are not made: those of an answer that was cut, and those without readable arguments.

What comes in pieces is put together as far as it came, so half a file would look like a whole one.
Imported with the first model: it needs LangChain.
"""

from typing import Final

from langchain_core.messages import AIMessage, ToolMessage

from interlock.agents.runners.model_errors import ending

_UNREADABLE: Final = "This call was not made: its arguments are no JSON object. Call the tool again with one."
_CUT: Final = (
    "This call was not made: your answer {why}. Nothing of it was done. Call the tool again, and write less at a time."
)


def unmade(message: AIMessage) -> list[ToolMessage]:
    """Return the results that tell a model which of its calls are not made, and why.

    Args:
        message: What the model said. Calls with unreadable arguments are given none, so that they can be answered.
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
