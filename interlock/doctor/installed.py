"""The clients' files: the hooks that call us, the entries that start our server, the tools that write."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from interlock.install import CLIENTS, INSTALLATIONS, NAME, InstallError, pick
from interlock.install.clients import commands, is_ours, parts
from interlock.install.documents import parse
from interlock.install.files import read
from interlock.install.record import recorded


def find_plugin(root: Path) -> str:
    """Return the name of the plugin where Claude Code has it switched on; the first file that speaks of it decides."""
    for data in _all_settings(root, "claude", []).values():
        rows: object = data.get("enabledPlugins")
        if isinstance(rows, dict):
            for key, value in cast("dict[str, object]", rows).items():
                if key.partition("@")[0] == NAME:
                    return key if value else ""
    return ""


_PATCH: Final = "*** Begin Patch\n*** Update File: {}\n@@\n-two\n+three\n*** End Patch\n"
TOOLS: Final[dict[str, dict[str, Callable[[str], dict[str, Any]]]]] = {
    "claude": {
        "Edit": lambda path: {"file_path": path, "old_string": "two", "new_string": "three"},
        "Write": lambda path: {"file_path": path, "content": "three"},
        "NotebookEdit": lambda path: {"notebook_path": path, "new_source": ""},
        "Bash": lambda path: {"command": f"rm -f {shlex.quote(path)}"},
        "mcp__files__write_file": lambda path: {"path": path, "content": "three"},
    },
    "codex": {
        "apply_patch": lambda path: {"command": _PATCH.format(path)},
        "Bash": lambda path: {"command": f"rm -f {shlex.quote(path)}"},
        "mcp__files__write_file": lambda path: {"path": path, "content": "three"},
    },
    "gemini": {
        "write_file": lambda path: {"file_path": path, "content": "three"},
        "replace": lambda path: {"file_path": path, "old_string": "two", "new_string": "three"},
        "run_shell_command": lambda path: {"command": f"rm -f {shlex.quote(path)}"},
        "mcp_files_write_file": lambda path: {"path": path, "content": "three"},
    },
}
"""The tools of each client that write, and one of an MCP server for files, with what they are given for a path.

The hooks of a client that is not here are not proven.
"""


SETTINGS: Final = {
    "claude": (".claude/settings.local.json", ".claude/settings.json", "~/.claude/settings.json"),
    "codex": (".codex/hooks.json", "~/.codex/hooks.json"),
    "gemini": (".gemini/settings.json", "~/.gemini/settings.json"),
}
"""Where a client reads hooks from: the project's files and those of the user; what comes first decides."""

SUBAGENTS: Final = {"claude": "Edit", "codex": "apply_patch"}
"""The clients that say which subagent of a session calls, and a tool of each."""

TITLES: Final = {row.client: row.title for row in INSTALLATIONS}
"""Each client's name for people."""

_EXACT: Final = re.compile(r"[A-Za-z0-9_\-, |]+")


@dataclass(frozen=True, slots=True)
class Handler:
    """One command of ours in a client's hooks.

    Args:
        matcher: For which tools; empty for all.
        path: The file that holds it, as it is shown.
        blocks: The client refuses the call when the command cannot be run.
    """

    event: str
    matcher: str
    command: str
    path: str
    blocks: bool

    def matches(self, tool: str) -> bool:
        """Return whether the client calls it for a tool."""
        if self.matcher in {"", "*"}:
            return True
        # Claude Code reads a matcher of plain words as a list of names, and any other as a pattern.
        if _EXACT.fullmatch(self.matcher):
            return tool in {part.strip() for part in re.split(r"[|,]", self.matcher)}
        try:
            return re.search(self.matcher, tool) is not None
        except re.error:
            return False


@dataclass(frozen=True, slots=True)
class Hooks:
    """A client's hooks.

    Args:
        handlers: Those that call Interlock.
        off: The file that switches hooks off; empty when the client runs them.
        recorded: Init wrote them.
    """

    client: str
    handlers: tuple[Handler, ...]
    off: str = ""
    recorded: bool = False
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Server:
    """An entry that starts the server."""

    client: str
    path: str
    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])


def hooks_of(root: Path, client: str) -> Hooks:
    """Return the hooks of a client, from the project's files and the user's."""
    problems: list[str] = []
    settings = _all_settings(root, client, problems)
    # A client adds the hooks of all its files together, so all are looked at.
    handlers = [row for name, data in settings.items() for row in _handlers(data, name)]
    off = next((name for name, data in settings.items() if _is_off(data)), "")
    known = f"{client}-hooks" in names_recorded(root)
    return Hooks(client, tuple(handlers), off, known, tuple(problems))


def servers(root: Path) -> list[Server]:
    """Return the entries of our server; one of init that is gone is there without words."""
    known = names_recorded(root)
    found: list[Server] = []
    for row in pick(CLIENTS, hooks=False):
        try:
            file = read(root, row.path)
            entry = None if file is None else parts(row, parse(row.path, file.text)).get(NAME)
        except InstallError:
            entry = None
        if entry is not None:
            found.append(_started(row.client, row.path, entry, root))
        # Init wrote an entry, and somebody took it out: the client has no server any more.
        elif row.name in known:
            found.append(Server(row.client, row.path, ()))
    return found


def _started(client: str, path: str, entry: Mapping[str, Any], root: Path) -> Server:
    """Return the entry of a server with the variables of its client filled in."""
    arguments, env = entry.get("args"), entry.get("env")
    rest = cast("list[object]", arguments) if isinstance(arguments, list) else []
    # Joined, so that a variable is filled in wherever in the command line it stands.
    line = "\0".join(map(str, (entry.get("command", ""), *rest)))
    for variable in ("${workspaceFolder}", "${CLAUDE_PROJECT_DIR}"):
        line = line.replace(variable, str(root))
    added = cast("dict[str, object]", env) if isinstance(env, dict) else {}
    return Server(client, path, tuple(line.split("\0")), {key: str(value) for key, value in added.items()})


def names_recorded(root: Path) -> set[str]:
    """Return the names of what init wrote, `git` for git's hooks; none when its record cannot be read."""
    try:
        rows = recorded(root).values()
    except InstallError:
        return set()
    # A hook of git is recorded without installations, under the word `git`.
    return {name for row in rows for name in (row["wrote"] or [row["client"]])}


def missing_program(command: str, root: Path, env: Mapping[str, str]) -> str:
    """Return the program of a command line that cannot be found; empty when it can be, or when that is not known."""
    try:
        word = shlex.split(command)[0]
    except (ValueError, IndexError):
        return ""
    # A client starts hooks in the project's folder, and a relative path counts from there.
    path = word if "/" not in word else os.path.join(root, word)  # noqa: PTH118 - a text
    return "" if word.startswith("$") or shutil.which(path, path=env.get("PATH", os.defpath)) else word


def _all_settings(root: Path, client: str, problems: list[str]) -> dict[str, dict[str, Any]]:
    """Return what each of a client's files holds, by its name as it is shown."""
    names = {name: Path(name).expanduser() if name.startswith("~") else root / name for name in SETTINGS[client]}
    return {name: _settings(path, problems) for name, path in names.items()}


def _settings(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        data: object = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{path}: {error}")
        return {}
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def _handlers(data: dict[str, Any], name: str) -> list[Handler]:
    table: object = data.get("hooks")
    found: list[Handler] = []
    for event, groups in cast("dict[str, object]", table).items() if isinstance(table, dict) else ():
        for group in cast("list[Any]", groups) if isinstance(groups, list) else ():
            for line in filter(is_ours, commands(group)):
                blocks = any(
                    row.get("onFailure") == "block"
                    for row in cast("list[dict[str, Any]]", [each for each in group["hooks"] if isinstance(each, dict)])
                    if row.get("command") == line
                )
                found.append(Handler(event, str(group.get("matcher") or ""), line, name, blocks))
    return found


def _is_off(data: dict[str, Any]) -> bool:
    tables: list[object] = [data.get("hooksConfig"), data.get("hooks")]
    disabled = any(isinstance(each, dict) and cast("dict[str, Any]", each).get("enabled") is False for each in tables)
    return data.get("disableAllHooks") is True or disabled
