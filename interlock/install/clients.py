"""What `interlock init` puts into the files of each client: the entry of the server, and the hooks.

`INSTALLATIONS` is the table: one row for each client and thing. A row's parts are named by a key: a server by its
name, a hook by the client's event. `parts`, `add_part` and `without_parts` are the three steps that every edit and
every undo is made of; they know the two shapes, and nothing of the clients.
"""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, cast

from interlock.install.documents import Table, dump, parse, quoted, subtable
from interlock.install.errors import not_editable

Parts: TypeAlias = dict[str, dict[str, Any]]

NAME: Final = "interlock"
"""The name of the server in every client."""
SECONDS: Final = 30
"""How long a client lets a hook run: a busy store refuses after 15 s, and a client that gives up lets the edit pass."""

_OURS: Final = re.compile(r"\binterlock\b.*\bhook\s+(pre-edit|post-tool|session-start|stop)\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Launch:
    """How a client starts the server."""

    command: str
    args: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        """Return the command line."""
        return shlex.join((self.command, *self.args))

    @property
    def program(self) -> tuple[str, ...]:
        """Return the words that start any command of Interlock: those before `mcp`."""
        return (self.command, *self.args[:-1])


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a client that calls a hook."""

    name: str
    hook: str
    matcher: str = ""
    more: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Installation:
    """One thing that init puts into a file of the project.

    Args:
        client: The word for `--client`.
        title: The client's name for people.
        path: The file, relative to the root.
        table: The table of the file that holds its parts: `mcpServers`, `mcp_servers` or `hooks`.
        wanted: What to put in, for a way to start the server.
        after: What a person does next in the client; `{launch}` is replaced by the command line of the server.
    """

    client: str
    title: str
    path: str
    table: str
    wanted: Callable[[Launch], Parts]
    after: str

    @property
    def name(self) -> str:
        """Its name in the record of what was installed."""
        return f"{self.client}-hooks" if self.has_hooks else self.client

    @property
    def has_hooks(self) -> bool:
        """Whether its parts are groups of hooks, and not the entry of a server."""
        return self.table == "hooks"


def find_launch() -> Launch:
    """Return how a client starts the server: by name when that is found on PATH, else by this interpreter."""
    program = shutil.which("interlock")
    if program is None:
        reason = f"`interlock` is not on PATH, so {sys.executable} is named: a path of this machine alone."
        # -P: a folder of the project that is named `interlock` must not be imported in place of the package.
        return Launch(sys.executable, ("-P", "-m", "interlock", "mcp"), reason)
    reason = f"`interlock` is on PATH: {program}."
    if sys.prefix != sys.base_prefix and program.startswith(f"{sys.prefix}/"):
        reason += " It belongs to a virtual environment: start the client where that is active."
    return Launch("interlock", ("mcp",), reason)


def _but(names: str) -> str:
    """Return the matcher of all tools but some that write nothing, for which no process is to be started."""
    return f"^(?!({names})$)"


_CLAUDE: Final = _but("Read|Glob|Grep|LS|Web.*|Todo.*|Task.*|Agent|BashOutput|KillShell|ToolSearch|AskUserQuestion")
_GEMINI: Final = _but("read_.*|list_directory|glob|search_file_content|grep_search|google_web_search|web_fetch")

EVENTS: Final[dict[str, tuple[Event, ...]]] = {
    "claude": (
        # Versions before 2.1.295 leave `onFailure` unread: they let an edit pass when the program cannot be started.
        Event("PreToolUse", "pre-edit", _CLAUDE, (("onFailure", "block"),)),
        Event("PostToolUse", "post-tool", _CLAUDE),
        # A tool that failed has an event of its own, and may have done half of its harm.
        Event("PostToolUseFailure", "post-tool", _CLAUDE),
        Event("SessionStart", "session-start"),
        Event("Stop", "stop"),
        Event("SubagentStop", "stop"),
        Event("SessionEnd", "stop"),
    ),
    # The matchers of Codex cannot leave names out, and nearly all that it calls may write.
    "codex": (
        Event("PreToolUse", "pre-edit"),
        Event("PostToolUse", "post-tool"),
        Event("SessionStart", "session-start"),
        Event("Stop", "stop"),
    ),
    "gemini": (
        Event("BeforeTool", "pre-edit", _GEMINI),
        Event("AfterTool", "post-tool", _GEMINI),
        Event("SessionStart", "session-start"),
        Event("SessionEnd", "stop"),
    ),
}
"""The events of each client that has hooks, the one before an edit first.

The hooks read what these clients send: one that is not in their own `CLIENTS` too has each of its calls refused.
"""


def _server(launch: Launch, *more: str) -> Parts:
    return {NAME: {"command": launch.command, "args": [*launch.args, *more]}}


def _rooted(launch: Launch) -> Parts:
    """Name the root: Cursor does not promise in which folder it starts a server."""
    return _server(launch, "--root", "${workspaceFolder}")


def _hooks(client: str, launch: Launch) -> Parts:
    # The hook takes its input for that of Claude Code unless it is told otherwise.
    named = () if client == "claude" else ("--client", client)
    # Gemini CLI counts in milliseconds, the others in seconds.
    timeout = SECONDS * 1000 if client == "gemini" else SECONDS
    groups: Parts = {}
    for event in EVENTS[client]:
        command = shlex.join((*launch.program, "hook", event.hook, *named))
        handler = {"type": "command", "command": command, "timeout": timeout, **dict(event.more)}
        groups[event.name] = {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [handler]}
    return groups


_CLAUDE_NEXT: Final = "restart it here and approve the server once."
_CODEX_NEXT: Final = (
    "start it here and trust the folder, or it ignores this file. Or run: codex mcp add interlock -- {launch}"
)
_CODEX_HOOKS: Final = "trust the hooks once with /hooks: others are skipped."
_GEMINI_NEXT: Final = "restart it here and trust the folder: in others it starts no server."
_CURSOR_NEXT: Final = "open its settings and switch the server on under MCP."

INSTALLATIONS: Final = (
    Installation("claude", "Claude Code", ".mcp.json", "mcpServers", _server, _CLAUDE_NEXT),
    Installation("codex", "Codex", ".codex/config.toml", "mcp_servers", _server, _CODEX_NEXT),
    Installation("gemini", "Gemini CLI", ".gemini/settings.json", "mcpServers", _server, _GEMINI_NEXT),
    Installation("cursor", "Cursor", ".cursor/mcp.json", "mcpServers", _rooted, _CURSOR_NEXT),
    Installation("claude", "Claude Code", ".claude/settings.json", "hooks", partial(_hooks, "claude"), _CLAUDE_NEXT),
    Installation("codex", "Codex", ".codex/hooks.json", "hooks", partial(_hooks, "codex"), _CODEX_HOOKS),
    Installation("gemini", "Gemini CLI", ".gemini/settings.json", "hooks", partial(_hooks, "gemini"), _GEMINI_NEXT),
)
"""The server of each client, then the hooks of each that has them. Two may share a file."""

CLIENTS: Final = tuple(row.client for row in INSTALLATIONS if not row.has_hooks)
"""Every word of `--client`: the clients with the row of a server."""


def pick(names: Sequence[str], *, hooks: bool = True) -> tuple[Installation, ...]:
    """Return the rows of some clients in the order of the table; `all` is every client."""
    return tuple(
        row for row in INSTALLATIONS if (row.client in names or "all" in names) and (hooks or not row.has_hooks)
    )


def is_ours(command: object) -> bool:
    """Return whether a command line calls a hook of Interlock."""
    return isinstance(command, str) and _OURS.search(command) is not None


def commands(group: object) -> list[str]:
    """Return the command lines of one group of hooks, whatever it holds."""
    handlers: object = cast("Table", group).get("hooks") if isinstance(group, dict) else None
    rows = cast("list[object]", handlers) if isinstance(handlers, list) else []
    lines = [cast("Table", row).get("command") for row in rows if isinstance(row, dict)]
    return [line for line in lines if isinstance(line, str)]


def parts(row: Installation, data: Table) -> Parts:
    """Return our parts of a file, by their keys; of several groups of one event the first.

    Raises:
        InstallError: `INI102` another server has our name.
    """
    table = subtable(data, row.table)
    if not row.has_hooks:
        entry: object = table.get(NAME)
        if entry is None:
            return {}
        if not _starts_it(entry):
            shown = quoted(json.dumps(entry, ensure_ascii=False, default=str))
            message = f"another server has the name `{NAME}`."
            raise not_editable("INI102", message, shown, f"no entry `{NAME}`, or one that runs `interlock mcp`")
        return {NAME: cast("dict[str, Any]", entry)}
    found: Parts = {}
    for event, groups in _lists(table).items():
        own = [group for group in groups if any(map(is_ours, commands(group)))]
        if own:
            found[event] = own[0]
    return found


def add_part(row: Installation, data: Table, key: str, value: dict[str, Any]) -> None:
    """Put one part into a file that does not have it.

    Raises:
        InstallError: `INI102` something else is where it belongs.
    """
    table = subtable(data, row.table, make=True)
    if not row.has_hooks:
        table[key] = value
        return
    groups: object = table.setdefault(key, [])
    if not isinstance(groups, list):
        raise not_editable("INI102", f"`hooks.{key}` is not a list.", quoted(json.dumps(groups)), f'`"{key}": [ … ]`')
    cast("list[Any]", groups).append(value)


def without_parts(row: Installation, data: Table, original: Table) -> None:
    """Take our parts out of a file, whoever changed them since, with the tables that were made around them.

    What the original had of them stays.
    """
    if row.table not in data:
        return
    table, before = subtable(data, row.table), subtable(original, row.table)
    if row.has_hooks:
        earlier = _lists(before)
        for event, groups in _lists(table).items():
            left = [each for group in groups for each in _left_of(group, earlier.get(event, ()))]
            # Nothing of ours is in it, so not even its layout may change.
            if left == groups:
                continue
            table[event] = left
            # An event that others had listed empty stays listed.
            if not left and event not in before:
                del table[event]
    elif NAME not in before and _starts_it(table.get(NAME)):
        del table[NAME]
    # The table was made for our part alone.
    if not table and row.table not in original:
        del data[row.table]


def by_hand(row: Installation, launch: Launch) -> str:
    """Return the text that a person merges into a file that cannot be edited."""
    data: Table = parse(row.path, "")
    for key, value in row.wanted(launch).items():
        add_part(row, data, key, value)
    return dump(row.path, data, "").strip()


def _starts_it(entry: object) -> bool:
    """Return whether an entry starts this server, though perhaps by another program or with more settings."""
    if not isinstance(entry, dict):
        return False
    command, args = cast("Table", entry).get("command"), cast("Table", entry).get("args")
    line: list[object] = [command, *cast("list[object]", args)] if isinstance(args, list) else [command]
    # The program may be a path, a module or another runner such as uvx; these two words are in all of them.
    return "mcp" in line and any(isinstance(word, str) and NAME in word for word in line)


def _lists(table: Table) -> dict[str, list[Any]]:
    """Return the lists of groups; other settings beside them, such as Gemini's `enabled`, are no events."""
    return {name: cast("list[Any]", value) for name, value in table.items() if isinstance(value, list)}


def _left_of(group: Any, earlier: Sequence[Any]) -> list[Any]:
    """Return what an undo leaves of a group: all of one that was there before, of others what is not ours."""
    # A group that called Interlock before init did is the user's own.
    if group in earlier or not any(map(is_ours, commands(group))):
        return [group]
    # Somebody may have added a hook of theirs to our group.
    others = [row for row in group["hooks"] if not any(map(is_ours, commands({"hooks": [row]})))]
    return [{**group, "hooks": others}] if others else []
