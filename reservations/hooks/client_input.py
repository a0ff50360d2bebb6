"""What a client says to a hook: its event, the tool, and the paths that the tool is about to write.

It is what Claude Code, Codex and Gemini CLI send; anything else is refused (RSV907), since nobody knows then what is
about to be written.
"""

import json
import os
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

from interlock.core.record import Record
from interlock.reservations.errors import ReservationError

if TYPE_CHECKING:
    from interlock.reservations.guard.line import Command

CLIENTS: Final = ("claude", "codex", "gemini")
"""The clients that send this input; the first is meant when the command line names none."""

EDITS: Final = {
    "Edit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
    "write_file": "file_path",
    "replace": "file_path",
    "apply_patch": "command",
}
"""Editing tool to the field of its input with the path; for `apply_patch` with the patch."""
SHELLS: Final = frozenset({"Bash", "run_shell_command"})
"""Tools that run the command line in the field `command`."""
FOLDER: Final = "dir_path"
"""The field of Gemini's shell tool with the folder of its command."""

_SERVED: Final = r"mcp_.*(?:write|edit|create|append|insert|replace|delete|remove|move|rename)"
"""The tools of MCP servers whose files are reserved; what any other one does to a held file is undone after it."""
_SERVED_FIELDS: Final = ("path", "file_path", "relative_path", "source", "destination")

_PARTS: Final = frozenset({"Edit", "replace"})
_BEGIN: Final = "*** Begin Patch"
_PATCH: Final = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
_SHAPE: Final = "Send one JSON object on standard input, as the client sends it to its hooks."


class Call(Record):
    """The input of one hook.

    Args:
        event: `PreToolUse`, `SessionStart`, …; empty when the client does not say.
        cwd: The folder that the agent works in, which exists; of a shell tool the one that its call names.
        tool: The tool's name; empty for events without one.
        tool_use_id: Which use of the tool; the same before and after.
        agent_id: Which subagent of the session calls; empty for the session's own agent, or where no client says it.
    """

    event: str
    session_id: str
    cwd: str
    tool: str
    tool_use_id: str
    tool_input: dict[str, Any]
    fields: dict[str, Any]
    agent_id: str = ""


def refused(message: str, fix: str = _SHAPE) -> ReservationError:
    """Return the refusal of what no client sends."""
    return ReservationError(message, fix, "RSV907")


def client_of(argv: Sequence[str]) -> str:
    """Return the client that the hook's command line names by `--client NAME`."""
    if not argv:
        return CLIENTS[0]
    if len(argv) == 2 and argv[0] == "--client" and argv[1] in CLIENTS:
        return argv[1]
    raise refused(f"`{' '.join(argv)}` is not understood.", f"Write `--client {' | '.join(CLIENTS)}`, or nothing.")


def read(data: bytes, *, is_over: bool = False) -> Call:
    """Return what a client said; of a tool call that is over, the folder may be gone."""
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise refused(f"standard input is no JSON: {error}.") from None
    if not isinstance(found, dict):
        raise refused(f"standard input is a JSON {type(found).__name__}.")
    fields = cast("dict[str, Any]", found)
    tool = _text(fields, "tool_name")
    given: object = fields.get("tool_input") or {}
    if not isinstance(given, dict):
        raise refused("`tool_input` is no JSON object.")
    arguments = cast("dict[str, Any]", given)
    cwd = _text(fields, "cwd") or os.getcwd()
    if not is_over and not os.path.isdir(cwd):
        raise refused(f"`cwd` is {cwd}, which is not a folder.", "Send the folder that the agent works in.")
    if tool in SHELLS:
        cwd = os.path.join(cwd, _text(arguments, FOLDER))
    return Call(
        event=_text(fields, "hook_event_name"),
        session_id=_text(fields, "session_id"),
        cwd=cwd,
        tool=tool,
        tool_use_id=_text(fields, "tool_use_id"),
        tool_input=arguments,
        fields=fields,
        agent_id=_text(fields, "agent_id"),
    )


def _text(fields: dict[str, Any], key: str) -> str:
    """Return a field that is a text when it is there, and that can name a file."""
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise refused(f"`{key}` is not a text.")
    return value


def written(call: Call) -> list[str]:
    """Return the paths that an editing tool is about to write, as the client spells them; none for other tools.

    A shell command that carries a patch for `apply_patch` counts as that tool.
    """
    if call.tool in SHELLS:
        return [path for line in commands(call) for path in _patched_by(line, call.cwd)]
    field = EDITS.get(call.tool)
    if field is None:
        if "repo" in call.tool_input or not re.match(_SERVED, call.tool, re.IGNORECASE):
            return []  # a server's own repository has other files
        given = [call.tool_input.get(name) for name in _SERVED_FIELDS]
        return [path for path in given if isinstance(path, str) and path]
    text = _text(call.tool_input, field)
    paths = _patched(text) if call.tool == "apply_patch" else [text]
    if not any(paths):
        raise refused(f"{call.tool} writes a file, and tool_input.{field} does not say which.")
    return paths


def edit_of(call: Call) -> dict[str, Any] | None:
    """Return what an editing tool is asked to do: the whole text of a file, or parts of it; None where it is not said.

    See `flight.result`.
    """
    if call.tool in _PARTS:
        return {"edits": [call.tool_input]}
    return {"content": call.tool_input["content"]} if isinstance(call.tool_input.get("content"), str) else None


def commands(call: Call) -> list[str]:
    """Return the command line of a shell tool; none for other tools."""
    line: object = call.tool_input.get("command") if call.tool in SHELLS else None
    return [line] if isinstance(line, str) and line else []


def _patched(text: str) -> list[str]:
    if _BEGIN not in text:
        return []
    lines = (line.strip() for line in text.splitlines())
    return [line[len(mark) :].strip() for line in lines for mark in _PATCH if line.startswith(mark)]


def _patched_by(line: str, cwd: str) -> list[str]:
    """Return the paths of the patches that a shell line carries, each seen from the folder in which it is applied.

    That is the folder of the command that the patch is given to, or of the next one that applies patches.
    """
    if _BEGIN not in line:
        return []
    from interlock.reservations.guard.held import UNKNOWN  # noqa: PLC0415 - few lines carry a patch
    from interlock.reservations.guard.line import TEXTS, read  # noqa: PLC0415 - few lines carry a patch

    rows = read(line, cwd, os.environ) or []
    found: dict[str, None] = {}
    for at, row in enumerate(rows):
        given = rows[max(0, at - 1) : at] if row.program == "<<" else [row]
        folders = [folder for each in (*given, *rows[at + 1 :]) if (folder := _applies_in(each))]
        folder = os.path.normpath((folders or [row.here])[0].replace(UNKNOWN, ""))
        for path in _patched("\n".join(row.words)) if row.program not in TEXTS else ():
            found[path if folder == cwd else os.path.join(folder, path)] = None
    return [*found] or _patched(line)


def _applies_in(command: "Command") -> str:
    """Return the folder in which a command applies patches; empty for one that does not."""
    if command.program == "git" and "apply" in command.words:
        folders = [word for option, word in pairwise(command.words) if option == "-C"]
        return os.path.normpath(os.path.join(command.here, *folders))
    return command.here if command.program in {"apply_patch", "applypatch"} else ""
