"""What a tool answers: structured JSON with the same JSON as text, and errors that say what to do."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp_types import CallToolResult, InputRequiredResult, TextContent

from interlock.core.finding import Finding
from interlock.core.json import compact
from interlock.redaction import Redactor
from interlock.server.rules import refusal_data

DEFECT_FIX: Final = (
    "This is a defect of Interlock, and nothing was acknowledged. Read where the run is before going on, and "
    "report this with the lines that the server wrote to stderr."
)


class ToolAnswer(FuncMetadata):
    """How a tool that answers a dictionary is called: its arguments reach it as they came, a text unparsed."""

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments unchanged: a ticket that came as text is judged as that text."""
        return data

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:
        """Return the result of a tool as structured content, with the same JSON as text."""
        if not isinstance(result, Mapping):
            return super().convert_result(result)
        data = cast("Mapping[str, Any]", result)
        return CallToolResult(content=[TextContent(type="text", text=compact(data))], structured_content=dict(data))


def refused_call(problems: Sequence[Finding]) -> CallToolResult:
    """Return the error result for a call that does not fit its tool; `error` is the first problem."""
    first, *others = (refusal_data(each) for each in problems)
    return error_result({**first, "problems": others} if others else first)


def error_result(error: Mapping[str, Any]) -> CallToolResult:
    """Return an error result: its text is `{"error": {code, message, fix, …}}`."""
    return CallToolResult(content=[TextContent(type="text", text=compact({"error": error}))], is_error=True)


def describe(error: BaseException) -> dict[str, Any] | None:
    """Return code, message and fix of an error that a person can fix, or None for a defect.

    Errors of Interlock say it themselves; those of the system and of the database are put into the same form.
    """
    # By what they carry and not by their classes, some of which are in packages that no call may have loaded yet.
    message, fix = getattr(error, "message", None), getattr(error, "fix", None)
    if isinstance(message, str) and isinstance(fix, str):
        problems = [each if isinstance(each, str) else each.text for each in getattr(error, "problems", ())]
        # Errors of a file that the user wrote name it, and the place in it.
        place = [getattr(error, name, "") for name in ("path", "key")] if problems else []
        message = ": ".join([*(part for part in place if isinstance(part, str) and part), message])
        data: dict[str, Any] = {"code": str(getattr(error, "code", type(error).__name__)), "message": message}
        return {**data, "fix": fix, **({"problems": problems} if len(problems) > 1 else {})}
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        fix = "Check that the server may read and write there and that the disk has space; then send the same again."
        return {"code": "SYSTEM", "message": f"{place}{error.strerror or error}", "fix": fix}
    if isinstance(error, sqlite3.Error):
        fix = "Check the disk, then send the same again. If that does not help, restore .interlock from a copy."
        return {"code": "SYSTEM", "message": f"the checkpoints cannot be used: {error}", "fix": fix}
    return None


def without_keys(result: CallToolResult, redactor: Redactor) -> CallToolResult:
    """Return a result with the keys taken out: a tool may quote a file, a program, or another agent."""
    # Most servers have no key in their environment, and an answer can be large.
    if not redactor.has_keys():
        return result
    content = [
        block.model_copy(update={"text": redactor.text(block.text)}) if isinstance(block, TextContent) else block
        for block in result.content
    ]
    return result.model_copy(
        update={"content": content, "structured_content": redactor.value(result.structured_content)}
    )


def defect(error: BaseException) -> dict[str, Any]:
    """Return the description of an unexpected error."""
    return {"code": "INTERNAL", "message": f"{type(error).__name__}: {str(error)[:400]}", "fix": DEFECT_FIX}


def sentences(message: str, fix: str) -> str:
    """Return what is wrong and what to do as one text; a message may or may not end with a full stop."""
    return f"{message.rstrip('.')}. {fix}"
