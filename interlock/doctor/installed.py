"""The clients' files: the hooks that call us, the entries that start our server, the plugin, the tools that write."""

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
from interlock.install.errors import EditError
from interlock.install.files import read
from interlock.install.hooks import commands, is_ours
from interlock.install.record import recorded

FIX: Final = "Install it again and restart the client: claude plugin install {}"
_ROOT: Final = b"${CLAUDE_PLUGIN_ROOT}"


@dataclass(frozen=True, slots=True)
class Plugin:
    """The plugin, as a client has it.

    Args:
        id: Its name and the name of its marketplace: `interlock@interlock`.
        folder: Where its files are; None where they are not found.
    """

    id: str
    folder: Path | None

    @property
    def path(self) -> str:
        """What is shown in place of a file."""
        return f"plugin {self.id}"

    def load(self, name: str) -> dict[str, Any]:
        """Return a JSON file of the plugin, empty where there is none; the plugin's folder is filled in."""
        return {} if self.folder is None else _settings(self.folder / name, [], json.dumps(str(self.folder))[1:-1])


def find_plugin(root: Path, settings: Mapping[str, Mapping[str, Any]]) -> Plugin | None:
    """Return the plugin where it is switched on. The first file of settings that speaks of the plugin decides."""
    for data in settings.values():
        rows: object = data.get("enabledPlugins")
        if isinstance(rows, dict):
            for key, value in cast("dict[str, object]", rows).items():
                if key.partition("@")[0] == NAME:
                    return Plugin(key, _plugin_folder(root, key)) if value else None
    return None


def _plugin_folder(root: Path, key: str) -> Path | None:
    """Return where Claude Code keeps the files of a plugin; that of this project goes before the user's."""
    home = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    try:
        data: Any = json.loads((home / "plugins" / "installed_plugins.json").read_bytes())
        found: Any = data["plugins"][key]
        rows = cast("list[dict[str, Any]]", found if isinstance(found, list) else [found])
        own = [row for row in rows if row.get("projectPath") == str(root)]
        rows = own or [row for row in rows if not row.get("projectPath")]
        folders = [Path(row["installPath"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return next((folder for folder in folders if folder.is_dir()), None)


_PATCH: Final = "*** Begin Patch\n*** Update File: {}\n@@\n-two\n+three\n*** End Patch\n"
TOOLS: Final[dict[str, dict[str, Callable[[str], dict[str, Any]]]]] = {
    "claude": {
        "Edit": lambda path: {"file_path": path, "old_string": "two", "new_string": "three"},
        "Write": lambda path: {"file_path": path, "content": "three"},
        "MultiEdit": lambda path: {"file_path": path, "edits": []},
        "NotebookEdit": lambda path: {"notebook_path": path, "new_source": ""},
        "Bash": lambda path: {"command": f"INTERLOCK_HOOKS=off cat {shlex.quote(path)}"},
        "mcp__files__write_file": lambda path: {"path": path, "content": "three"},
    },
    "codex": {
        "apply_patch": lambda path: {"command": _PATCH.format(path)},
        "Bash": lambda path: {"command": f"INTERLOCK_HOOKS=off cat {shlex.quote(path)}"},
        "mcp__files__write_file": lambda path: {"path": path, "content": "three"},
    },
    "gemini": {
        "write_file": lambda path: {"file_path": path, "content": "three"},
        "replace": lambda path: {"file_path": path, "old_string": "two", "new_string": "three"},
        "run_shell_command": lambda path: {"command": f"INTERLOCK_HOOKS=off cat {shlex.quote(path)}"},
        "mcp_files_write_file": lambda path: {"path": path, "content": "three"},
    },
}
"""The tools of each client that write, and one of an MCP server for files, with what they are given for a path."""


SETTINGS: Final = {
    "claude": (".claude/settings.local.json", ".claude/settings.json", "~/.claude/settings.json"),
    "codex": (".codex/hooks.json", "~/.codex/hooks.json"),
    "gemini": (".gemini/settings.json", "~/.gemini/settings.json"),
}
"""Where a client reads hooks from: the project's files and those of the user; what comes first decides."""

BEFORE: Final = {"claude": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}
"""A client's event before a tool call."""

TITLES: Final = {row.client: row.title for row in INSTALLATIONS}
"""Each client's name for people."""

_EXACT: Final = re.compile(r"[A-Za-z0-9_\-, |]+")
_NO_PROGRAM: Final = frozenset({"env", "exec", "command"})


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
        handlers: Those that call Interlock; of the plugin they have its `path`.
        off: The file that switches hooks off; empty when the client runs them.
        recorded: Init wrote them.
        plugin: The plugin, which brings hooks of its own; None where it is not switched on.
    """

    client: str
    handlers: tuple[Handler, ...]
    off: str = ""
    recorded: bool = False
    plugin: Plugin | None = None
    problems: tuple[str, ...] = ()

    @property
    def is_expected(self) -> bool:
        """Return whether the settings are an installed entry point."""
        return bool(self.of_settings) or self.recorded

    @property
    def of_settings(self) -> tuple[Handler, ...]:
        """Those in the client's settings."""
        return tuple(row for row in self.handlers if row not in self.of_plugin)

    @property
    def of_plugin(self) -> tuple[Handler, ...]:
        """Those that the plugin brings."""
        return tuple(row for row in self.handlers if self.plugin is not None and row.path == self.plugin.path)


@dataclass(frozen=True, slots=True)
class Server:
    """An entry that starts the server."""

    client: str
    path: str
    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])


def hooks_of(root: Path, client: str) -> Hooks:
    """Return the hooks of a client, from the project's files, the user's and the plugin's."""
    problems: list[str] = []
    settings = _all_settings(root, client, problems)
    handlers = [row for name, data in settings.items() for row in _handlers(data, name)]
    off = next((name for name, data in settings.items() if _is_off(data)), "")
    added = find_plugin(root, settings) if client == "claude" else None
    if added is not None:
        handlers += _handlers(added.load("hooks/hooks.json"), added.path)
    known = f"{client}-hooks" in names_recorded(root)
    return Hooks(client, tuple(handlers), off, known, added, tuple(problems))


def servers(root: Path) -> list[Server]:
    """Return the entries of our server, the plugin's among them; one of init that is gone is there without words."""
    known = names_recorded(root)
    found: list[Server] = []
    for row in pick(CLIENTS, hooks=False):
        try:
            file = read(root, row.path)
            entry = None if file is None else row.find(file.text)
        except EditError:
            entry = None
        if entry is not None or row.name in known:
            found.append(_started(row.client, row.path, entry, root))
    added = find_plugin(root, _all_settings(root, "claude", []))
    entries: object = None if added is None else added.load(".mcp.json").get("mcpServers")
    if added is not None and isinstance(entries, dict):
        entry: object = cast("dict[str, object]", entries).get(NAME)
        if isinstance(entry, dict):
            found.append(_started("claude", added.path, cast("dict[str, Any]", entry), root))
    return found


def _started(client: str, path: str, entry: Mapping[str, Any] | None, root: Path) -> Server:
    if entry is None:
        return Server(client, path, ())
    arguments, env = entry.get("args"), entry.get("env")
    rest = cast("list[object]", arguments) if isinstance(arguments, list) else []
    said = [str(word).replace("${workspaceFolder}", str(root)) for word in (entry.get("command", ""), *rest)]
    words = [word.replace("${CLAUDE_PROJECT_DIR}", str(root)) for word in said]
    added = cast("dict[str, object]", env) if isinstance(env, dict) else {}
    return Server(client, path, tuple(words), {key: str(value) for key, value in added.items()})


def names_recorded(root: Path) -> set[str]:
    """Return the names of what init wrote; none when its record cannot be read."""
    try:
        return {row["name"] for row in recorded(root)}
    except InstallError:
        return set()


def missing_program(command: str, root: Path, env: Mapping[str, str]) -> str:
    """Return the program of a command line that cannot be found; empty when it can be, or when that is not known."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    word = next((each for each in words if each not in _NO_PROGRAM and not re.match(r"\w+=", each)), "")
    if not word or word.startswith("$"):
        return ""
    path = word if "/" not in word else os.path.join(root, os.path.expanduser(word))  # noqa: PTH111, PTH118 - a text
    return "" if shutil.which(path, path=env.get("PATH", os.defpath)) else word


def _all_settings(root: Path, client: str, problems: list[str]) -> dict[str, dict[str, Any]]:
    """Return what each of a client's files holds, by its name as it is shown."""
    names = {name: Path(name).expanduser() if name.startswith("~") else root / name for name in SETTINGS[client]}
    return {name: _settings(path, problems) for name, path in names.items()}


def _settings(path: Path, problems: list[str], root: str = "") -> dict[str, Any]:
    try:
        data: object = json.loads(path.read_bytes().replace(_ROOT, root.encode()) if root else path.read_bytes())
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
        for group in cast("list[object]", groups) if isinstance(groups, list) else ():
            ours = [line for line in commands(group) if is_ours(line)]
            row = cast("dict[str, Any]", group) if ours else {}
            matcher = row.get("matcher", "")
            blocking = {one.get("command") for one in row.get("hooks", []) if one.get("onFailure") == "block"}
            found += [Handler(event, str(matcher or ""), line, name, line in blocking) for line in ours]
    return found


def _is_off(data: dict[str, Any]) -> bool:
    tables: list[object] = [data.get("hooksConfig"), data.get("hooks")]
    disabled = any(isinstance(each, dict) and cast("dict[str, Any]", each).get("enabled") is False for each in tables)
    return data.get("disableAllHooks") is True or disabled
