"""The hooks of each client: before an edit or a shell command, after one, and at both ends of a session."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from interlock.install.clients import SERVERS, Entry, Installation, Launch, read_json, table_of, write_json
from interlock.install.errors import EditError

SECONDS: Final = 30
"""How long a client lets a hook run: a busy store refuses after 15 s, and a client that gives up lets the edit pass."""

_OURS: Final = re.compile(r"\binterlock\b.*\bhook\s+(pre-edit|post-tool|session-start|stop)\b", re.DOTALL)
_TABLE: Final = "hooks"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a client that calls a hook."""

    name: str
    hook: str
    matcher: str = ""
    more: tuple[tuple[str, Any], ...] = ()


def _but(names: str) -> str:
    """Return the matcher of all tools but some that write nothing, for which no process is to be started."""
    return f"^(?!({names})$)"


_CLAUDE: Final = _but("Read|Glob|Grep|LS|Web.*|Todo.*|Task.*|Agent|BashOutput|KillShell|ToolSearch|AskUserQuestion")
_GEMINI: Final = _but("read_.*|list_directory|glob|search_file_content|grep_search|google_web_search|web_fetch")

CLAUDE: Final = (
    # Versions before 2.1.295 leave `onFailure` unread: they let an edit pass when the program cannot be started.
    Event("PreToolUse", "pre-edit", _CLAUDE, (("onFailure", "block"),)),
    Event("PostToolUse", "post-tool", _CLAUDE),
    # A tool that failed has an event of its own, and may have done half of its harm.
    Event("PostToolUseFailure", "post-tool", _CLAUDE),
    Event("SessionStart", "session-start"),
    Event("Stop", "stop"),
    Event("SubagentStop", "stop"),
    Event("SessionEnd", "stop"),
)
CODEX: Final = (
    # Its matchers cannot leave names out, and nearly all that it calls may write.
    Event("PreToolUse", "pre-edit"),
    Event("PostToolUse", "post-tool"),
    Event("SessionStart", "session-start"),
    Event("Stop", "stop"),
)
GEMINI: Final = (
    Event("BeforeTool", "pre-edit", _GEMINI),
    Event("AfterTool", "post-tool", _GEMINI),
    Event("SessionStart", "session-start"),
    Event("SessionEnd", "stop"),
)


def is_ours(command: object) -> bool:
    """Return whether a command line calls a hook of Interlock."""
    return isinstance(command, str) and _OURS.search(command) is not None


def commands(group: object) -> list[str]:
    """Return the command lines of one group of hooks, whatever it holds."""
    handlers: object = cast("Entry", group).get(_TABLE) if isinstance(group, dict) else None
    rows = cast("list[object]", handlers) if isinstance(handlers, list) else []
    found = [cast("Entry", row).get("command") for row in rows if isinstance(row, dict)]
    return [command for command in found if isinstance(command, str)]


def _entry(events: tuple[Event, ...], client: str, launch: Launch) -> Entry:
    named = () if client == "claude" else ("--client", client)
    scale = 1000 if client == "gemini" else 1
    found: Entry = {}
    for event in events:
        command = shlex.join((*launch.program, "hook", event.hook, *named))
        handler = {"type": "command", "command": command, "timeout": SECONDS * scale, **dict(event.more)}
        found[event.name] = {**({"matcher": event.matcher} if event.matcher else {}), _TABLE: [handler]}
    return found


def _lists(data: Entry) -> dict[str, list[Any]]:
    """Return the lists of groups; other settings beside them, such as Gemini's `enabled`, are no events."""
    rows = table_of(data, _TABLE)
    return {name: cast("list[Any]", value) for name, value in rows.items() if isinstance(value, list)}


def _find(text: str) -> Entry | None:
    found: Entry = {}
    for event, groups in _lists(read_json(text)).items():
        own = [group for group in groups if any(map(is_ours, commands(group)))]
        if own:
            found[event] = own[0]
    return found or None


def _words(entry: Entry) -> tuple[str, ...]:
    found = [command for group in entry.values() for command in commands(group) if is_ours(command)]
    return tuple(sorted(set(found)))


def _add(text: str, entry: Entry, written: Entry) -> str:
    """Add a group for each event that has none of ours; one that is as init wrote it becomes what is wanted now."""
    there = _find(text) or {}
    data = read_json(text)
    table, lists, is_edited = data.setdefault(_TABLE, {}), _lists(data), False
    for event, wanted in entry.items():
        if event not in there:
            if event in table and event not in lists:
                found = f"`{json.dumps(table[event])[:77]}`"
                raise EditError("INI102", f"`{_TABLE}.{event}` is not a list.", found, f'`"{event}": [ … ]`')
            table[event] = [*lists.get(event, ()), wanted]
        elif there[event] == written.get(event) != wanted:
            lists[event][lists[event].index(there[event])] = wanted
        else:
            continue
        is_edited = True
    return write_json(data, text) if is_edited else text


def _remove(text: str, entry: Entry, original: str) -> str | None:  # noqa: ARG001 - whoever changed them: they are ours
    """Take our handlers out, and what was made around them; what calls our hooks in the original stays."""
    data, first = read_json(text), read_json(original)
    before, is_edited = _lists(first), False
    for event, groups in _lists(data).items():
        left = [row for group in groups for row in ([group] if group in before.get(event, []) else _without(group))]
        if left == groups:
            continue
        is_edited = True
        data[_TABLE][event] = left
        if not left and event not in before:
            del data[_TABLE][event]
    if not is_edited:
        return None
    if not data[_TABLE] and _TABLE not in first:
        del data[_TABLE]
    return write_json(data, text) if data else ""


def _without(group: Any) -> list[Any]:
    """Return a group without our handlers: none when it has no others."""
    if not any(map(is_ours, commands(group))):
        return [group]
    others = [row for row in cast("list[object]", group[_TABLE]) if not any(map(is_ours, commands({_TABLE: [row]})))]
    return [{**group, _TABLE: others}] if others else []


def _by_hand(text: str, entry: Entry) -> tuple[str, str]:
    lists = {event: [group] for event, group in entry.items()}
    member = f'"{_TABLE}": {json.dumps(lists, ensure_ascii=False)}'
    if not text or text.lstrip().startswith(("{", "//", "/*")):
        return "inside the outermost braces (where it has `hooks`, add the groups to the lists there)", member
    return "in place of what it holds", f"{{{member}}}"


def _row(client: str, path: str, events: tuple[Event, ...], after: str = "") -> Installation:
    server = next(row for row in SERVERS if row.client == client)
    return Installation(
        f"{client}-hooks", client, server.title, path, partial(_entry, events, client), _add, _remove, _find, _words,
        _by_hand, after or server.after,
    )  # fmt: skip


HOOKS: Final = (
    _row("claude", ".claude/settings.json", CLAUDE),
    _row("codex", ".codex/hooks.json", CODEX, "trust the hooks once with /hooks: others are skipped."),
    _row("gemini", ".gemini/settings.json", GEMINI),
)
"""The hooks of each client that has such hooks."""


INSTALLATIONS: Final[tuple[Installation, ...]] = (*SERVERS, *HOOKS)
"""The server of each client, then the hooks of each that has them. Two may share a file: it holds the later one."""

CLIENTS: Final = tuple(row.client for row in SERVERS)
"""Every word of `--client`."""


def pick(names: Sequence[str], *, hooks: bool = True) -> tuple[Installation, ...]:
    """Return the rows of some clients in the order of the table; `all` is every client."""
    rows = INSTALLATIONS if hooks else SERVERS
    return tuple(row for row in rows if row.client in names or "all" in names)
