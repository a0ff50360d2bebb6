"""What a client says to a hook: its event, the tool, and the paths that the tool is about to write.

What no client sends raises `InputRefusedError`, and `KeyInNameError` where a name or a path holds a key of the
environment.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

from interlock.redaction import long_key_in
from interlock.reservations.errors import KeyInNameError, ReservationError
from interlock.reservations.process import PLAIN_SHELLS

if TYPE_CHECKING:
    from interlock.reservations.guard.line import Command

CLIENTS: Final = ("claude", "codex", "gemini")
"""The clients that send this input; the first is meant when the command line names none."""

_FILE: Final = ("file_path", "absolute_path", "filePath", "path")
EDITS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("Edit", "Write", "MultiEdit", "Update", "write_file", "replace", "edit_file", "str_replace_based_edit_tool",
         "str_replace_editor"),
        _FILE,
    ),
    "NotebookEdit": ("notebook_path", *_FILE),
    "apply_patch": (),
}  # fmt: skip
"""Tool to the fields of its input that may hold the path, each of which counts; for `apply_patch` the patch does."""


def _either(words: str) -> str:
    return "|".join(f"[{word[0].upper()}{word[0]}]{word[1:]}" for word in words.split())


_VERBS: Final = _either(
    "write edit create append apply save update delete remove replace insert move rename copy modify patch"
)
_NOUNS: Final = _either("files? documents? blocks? lines? symbol body regex content path patch editor edit_tool")
SERVED: Final = (
    rf"(?:.+[_-])?(?:(?:{_VERBS})(?:(?:[A-Za-z0-9_-]*[_-])?(?:{_NOUNS})|[A-Za-z0-9_]*Files?)|"
    rf"{_either('write edit move rename')}|(?:{_either('delete remove move rename')})[_-]?(?:[Dd]irectory|[Ff]older)|"
    r"[Tt]ext[_-]?[Ee]ditor)"
)
"""The names of tools of MCP servers that write files, as a regular expression, also for the clients' matchers.

Clients name such a tool `mcp__SERVER__TOOL`, `mcp_SERVER_TOOL`, `SERVER__TOOL` or as the server does, so that the end
of its name says what it is. The server may serve other files than those of this machine: a call without any field that
holds a path, or one that names a repository of a server, is not ours.
"""
SERVED_SHELL: Final = (
    r"(?:.+[_-])?(?:[Bb]ash|[Ss]hell|(?:[Rr]un|[Ee]xecute|[Ss]tart)[_-]?(?:[A-Za-z]+[_-])?(?:[Cc]ommand|[Pp]rocess))"
)
"""The names of such tools that run a command line."""
_PATHS: Final = r"(?!name).*(?:path|file|uri)s?|filenames?|name"
_MOVED: Final = r"source|destination|dest|dst|to|target|src|from"
"""Fields that may hold a path, without `-`, `_` and case; the others do where files are moved, copied or deleted."""
_SEPARATORS: Final = {ord("-"): None, ord("_"): None}

READS: Final = frozenset({
    "Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "TodoRead", "ToolSearch",
    "AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "Task", "Agent", "TaskOutput", "BashOutput", "KillShell",
    "read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search",
    "google_web_search", "web_fetch", "view_image", "update_plan",
})  # fmt: skip
"""Tools that write no file of the project; a subagent's own calls pass the hooks themselves."""

SHELLS: Final = {
    **dict.fromkeys(
        ("Bash", "PowerShell", "shell", "local_shell", "shell_command", "run_shell_command"), ("command", "cmd")
    ),
    "exec_command": ("cmd", "command"),
}
"""Tool to the fields that may hold its command line, each of which counts: a text, or a list of words."""

FOLDERS: Final = ("workdir", "dir_path", "directory", "cwd")
"""Fields of a shell tool that may hold the folder of its command."""

_LOOK: Final = "view"
"""The `command` by which `_VIEWERS` only show a file; to other tools it means nothing."""
_VIEWERS: Final = ("str_replace_based_edit_tool", "str_replace_editor")
_BEGIN: Final = "*** Begin Patch"
_PATCH: Final = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
_PATCH_FIELDS: Final = ("command", "input", "patch")
_EDITS: Final = {name.lower(): fields for name, fields in EDITS.items()}
_SHELLS: Final = {name.lower(): fields for name, fields in SHELLS.items()}
_READS: Final = frozenset(name.lower() for name in READS)
_SHAPE: Final = "one JSON object on standard input, as the client sends it to its hooks"


class InputRefusedError(ReservationError):
    """What came on standard input is not what a client sends, so nobody knows what is about to be written.

    Fix: An edit that cannot be read is not let through. Call the hook from the settings that `interlock init`
    writes; upgrade Interlock where the client is newer.
    """

    code: ClassVar[str] = "RSV907"


class Call(NamedTuple):
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


def client_of(argv: Sequence[str]) -> str:
    """Return the client that the hook's command line names by `--client NAME`."""
    if not argv:
        return CLIENTS[0]
    if len(argv) == 2 and argv[0] == "--client" and argv[1] in CLIENTS:
        return argv[1]
    raise InputRefusedError(
        f"`{' '.join(argv)}` is not understood.", f"Write `--client {' | '.join(CLIENTS)}`, or nothing."
    )


def read(data: bytes, *, is_over: bool = False) -> Call:
    """Return what a client said; of a tool call that is over, the folder may be gone."""
    if not data.strip():
        raise InputRefusedError("standard input is empty.", f"Send {_SHAPE}.")
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputRefusedError(f"standard input is no JSON: {error}.", f"Send {_SHAPE}.") from None
    if not isinstance(found, dict):
        raise InputRefusedError(f"standard input is a JSON {type(found).__name__}.", f"Send {_SHAPE}.")
    fields = cast("dict[str, Any]", found)
    tool = _text(fields, "tool_name")
    shell = _shell_fields(tool)
    arguments: object = fields.get("tool_input") or {}
    if not isinstance(arguments, dict):
        # A tool of free text, such as a patch or a command line, may be sent as the text alone.
        arguments = {shell[0] if shell else "input": arguments}
    given = cast("dict[str, Any]", arguments)
    cwd = _text(fields, "cwd", name=True) or os.getcwd()
    if not is_over and not os.path.isdir(cwd):
        raise InputRefusedError(f"`cwd` is {cwd}, which is not a folder.", "Send the folder that the agent works in.")
    if shell:
        cwd = os.path.join(cwd, next((folder for key in FOLDERS if (folder := _text(given, key, name=True))), ""))
    names = {field: _text(fields, field) for field in ("session_id", "tool_use_id", "agent_id")}
    for field, name in names.items():
        if (key := long_key_in(name, cwd)) is not None:
            raise KeyInNameError(f"`{field}`", key)
    return Call(
        event=_text(fields, "hook_event_name"), session_id=names["session_id"], cwd=cwd, tool=tool,
        tool_use_id=names["tool_use_id"], tool_input=given, fields=fields, agent_id=names["agent_id"],
    )  # fmt: skip


def written(call: Call) -> list[str]:
    """Return the paths that an editing tool is about to write, as the client spells them; none for other tools.

    A shell command that carries a patch for `apply_patch` counts as that tool.
    """
    paths = _written(call)
    for path in paths:
        if (key := long_key_in(path, call.cwd)) is not None:
            raise KeyInNameError("the path of the file", key)
    return paths


def _written(call: Call) -> list[str]:
    tool = call.tool.lower()
    if _shell_fields(call.tool):
        return [path for text in commands(call) for path in _patched_by(text, call.cwd)]
    if call.tool_input.get("command") == _LOOK and tool.endswith(_VIEWERS):
        return []
    if tool not in _EDITS:
        if not re.fullmatch(SERVED, call.tool) or {"owner", "repo"} <= call.tool_input.keys():
            return []
        texts = [_words(call.tool_input.get(name)) for name in _PATCH_FIELDS]
        found = [*_served(tool, call.tool_input), *_patched("\n".join(texts))]
        return [path for path in found if path and _is_name(path)]
    names = _EDITS[tool]
    if names:
        given = [call.tool_input[name] for name in names if name in call.tool_input]
        texts = [path for path in given if isinstance(path, str) and path]
        paths = texts if len(texts) == len(given) else []
    else:
        paths = _patched("\n".join(_words(call.tool_input.get(name)) for name in _PATCH_FIELDS))
    if not paths or not all(_is_name(path) for path in paths):
        where = " or ".join(f"tool_input.{name}" for name in names or _PATCH_FIELDS)
        raise InputRefusedError(
            f"{call.tool} writes a file, and {where} does not say which.", f"Send the path in {where}."
        )
    return paths


def commands(call: Call) -> list[str]:
    """Return the command lines of a shell tool, one as a rule; none for other tools."""
    texts = (_words(call.tool_input.get(name)) for name in _shell_fields(call.tool))
    return [text for text in texts if text]


def is_read(call: Call) -> bool:
    """Return whether a tool writes no file of the project."""
    return call.tool.lower() in _READS


def _shell_fields(tool: str) -> tuple[str, ...]:
    return _SHELLS.get(tool.lower()) or (("command", "cmd") if re.fullmatch(SERVED_SHELL, tool) else ())


def _served(tool: str, value: object, key: str = "") -> Iterator[str]:
    """Yield the paths in a value of a call: texts in fields that may hold one, however deep they are."""
    if isinstance(value, dict):
        for name, row in cast("dict[str, object]", value).items():
            yield from _served(tool, row, name.translate(_SEPARATORS).lower())
    elif isinstance(value, list):
        for row in cast("list[object]", value):
            yield from _served(tool, row, key)
    elif isinstance(value, str) and "copy" in tool and key.startswith(("source", "src", "from")):
        return
    elif isinstance(value, str) and (
        re.fullmatch(_PATHS, key) or (re.fullmatch(_MOVED, key) and re.search("move|rename|copy|delete|remove", tool))
    ):
        if value.startswith("file://"):
            from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - few servers take these

            value = unquote(urlsplit(value).path)
        yield value


def _is_name(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _is_text(value: str) -> bool:
    """Return whether a text can be stored: no NUL, and no half of a surrogate pair."""
    return "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)


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
    from interlock.reservations.guard.line import TEXTS, UNKNOWN, read  # noqa: PLC0415 - few lines carry a patch

    rows = read(line, cwd, os.environ)
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


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    from shlex import quote  # noqa: PLC0415 - few clients send a list

    words = [word for word in cast("list[object]", value) if isinstance(word, str)]
    # `bash -lc TEXT` is the usual list: the text is the command.
    shell = len(words) == 3 and words[1] in {"-c", "-lc"} and os.path.basename(words[0]) in PLAIN_SHELLS
    return words[2] if shell else " ".join(quote(word) for word in words)


def _text(fields: dict[str, Any], key: str, *, name: bool = False) -> str:
    """Return a field that is a text when it is there; `name` allows what only the name of a file can have."""
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or not (_is_name(value) if name else _is_text(value)):
        raise InputRefusedError(f"`{key}` is not a text.", f"Send {_SHAPE}.")
    return value
