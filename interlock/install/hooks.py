"""The hooks of each client: before an edit or a shell command, after one, and at both ends of a session."""

import json
import re
import shlex
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from interlock.install.clients import Installation, Launch
from interlock.install.jsontext import Entry, add_item, get_lists, remove_item, remove_key, replace_item
from interlock.reservations.hooks.reading import SERVED

SECONDS: Final = 30
"""How long a client lets a hook run: a busy store refuses after 15 s, and a client that gives up lets the edit pass."""

_OURS: Final = re.compile(r"\binterlock\b.*\bhook\s+(pre-edit|post-tool|session-start|stop)\b", re.DOTALL)
_TABLE: Final = "hooks"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a client that calls a hook.

    Args:
        name: The client's name of it.
        hook: The hook: `interlock hook …`.
        matcher: The tools it is for; empty where the event has none.
        more: What else stands beside the command.
    """

    name: str
    hook: str
    matcher: str = ""
    more: tuple[tuple[str, Any], ...] = ()


def _before(*tools: str) -> str:
    """Return the matcher of the edit hook: tools of a client, and those of MCP servers that look like file tools.

    All clients take a matcher that is no plain list for a regular expression, which need not match the whole name. No
    process is started for a tool that it leaves out.
    """
    return f"^(?:{'|'.join(tools)}|{SERVED})$"


CLAUDE: Final = (
    # Versions before 2.1.295 leave `onFailure` unread: they let an edit pass when the program cannot be started.
    Event(
        "PreToolUse",
        "pre-edit",
        _before("Edit", "Write", "MultiEdit", "NotebookEdit", "Bash"),
        (("onFailure", "block"),),
    ),
    Event("PostToolUse", "post-tool", "Bash"),
    Event("SessionStart", "session-start"),
    Event("Stop", "stop"),
    Event("SessionEnd", "stop"),
)
CODEX: Final = (
    Event("PreToolUse", "pre-edit", _before("Bash", "apply_patch", "Edit", "Write")),
    Event("PostToolUse", "post-tool", "Bash"),
    Event("SessionStart", "session-start"),
    Event("Stop", "stop"),
)
GEMINI: Final = (
    Event("BeforeTool", "pre-edit", _before("write_file", "replace", "edit_file", "run_shell_command")),
    Event("AfterTool", "post-tool", "run_shell_command"),
    Event("SessionStart", "session-start"),
    Event("SessionEnd", "stop"),
)


def is_ours(command: object) -> bool:
    """Say whether a command line calls a hook of Interlock."""
    return isinstance(command, str) and _OURS.search(command) is not None


def commands(group: object) -> list[str]:
    """Return the command lines of one group of hooks, whatever it holds."""
    handlers: object = cast("Entry", group).get(_TABLE) if isinstance(group, dict) else None
    rows = cast("list[object]", handlers) if isinstance(handlers, list) else []
    found = [cast("Entry", row).get("command") for row in rows if isinstance(row, dict)]
    return [command for command in found if isinstance(command, str)]


def _entry(events: tuple[Event, ...], client: str, launch: Launch) -> Entry:
    """Return each event with its group: one handler that runs the hook."""
    named = () if client == "claude" else ("--client", client)
    scale = 1000 if client == "gemini" else 1
    found: Entry = {}
    for event in events:
        command = shlex.join((*launch.program, "hook", event.hook, *named))
        handler = {"type": "command", "command": command, "timeout": SECONDS * scale, **dict(event.more)}
        found[event.name] = {**({"matcher": event.matcher} if event.matcher else {}), _TABLE: [handler]}
    return found


def _lists(text: str) -> dict[str, list[Any]]:
    """Return the lists of groups; other settings beside them, such as Gemini's `enabled`, are no events."""
    return get_lists(text, _TABLE) if text.strip(" \t\r\n") else {}


def _find(text: str) -> Entry | None:
    """Return the groups of ours by event."""
    found: Entry = {}
    for event, groups in _lists(text).items():
        own = [group for group in groups if any(is_ours(command) for command in commands(group))]
        if own:
            found[event] = own[0]
    return found or None


def _words(entry: Entry) -> tuple[str, ...]:
    """Return the command lines of the groups, each once, in the order of their names."""
    found = [command for group in entry.values() for command in commands(group) if is_ours(command)]
    return tuple(sorted(set(found)))


def _add(text: str, entry: Entry, written: Entry) -> str:
    """Add a group for each event that has none of ours; one that stands as init wrote it becomes what is wanted now."""
    there = _find(text) or {}
    for event, group in entry.items():
        wanted = cast("Entry", group)
        if event not in there:
            text = add_item(text, _TABLE, event, wanted)
        elif there[event] == written.get(event) != wanted:
            text = replace_item(text, _TABLE, event, _lists(text)[event].index(there[event]), wanted)
    return text


def _remove(text: str, entry: Entry, original: str) -> str | None:  # noqa: ARG001 - whoever changed them: they are ours
    """Take our handlers out, and what was made around them; what calls our hooks in the original stays."""
    before = _lists(original)
    kept = bool(original.strip()) and _TABLE in json.loads(original)
    edited = text
    for event, groups in _lists(text).items():
        # From the end, so that the places of the others stay.
        for index, group in reversed([*enumerate(groups)]):
            if group not in before.get(event, []) and any(is_ours(command) for command in commands(group)):
                edited = _without(edited, event, index, group)
        if groups and not _lists(edited)[event] and event not in before:
            edited = remove_key(edited, _TABLE, event)
    if edited == text:
        return None
    text = edited
    if not _lists(text) and not kept:
        text = remove_key(text, _TABLE)
    return "" if json.loads(text) == {} else text


def _without(text: str, event: str, index: int, group: Entry) -> str:
    """Return the text without our handlers of one group, and without the group when it has no others."""
    others = [row for row in cast("list[object]", group[_TABLE]) if not any(map(is_ours, commands({_TABLE: [row]})))]
    if others:
        return replace_item(text, _TABLE, event, index, {**group, _TABLE: others})
    return remove_item(text, _TABLE, event, index)


def _by_hand(text: str, entry: Entry) -> tuple[str, str]:
    """Return what to paste into a text that is no plain JSON."""
    lists = {event: [group] for event, group in entry.items()}
    member = f'"{_TABLE}": {json.dumps(lists, ensure_ascii=False)}'
    if not text or text.lstrip().startswith(("{", "//", "/*")):
        return "inside the outermost braces (where it has `hooks`, add the groups to the lists there)", member
    return "in place of what it holds", f"{{{member}}}"


def _row(client: str, title: str, path: str, events: tuple[Event, ...], after: str) -> Installation:
    entry = partial(_entry, events, client)
    return Installation(f"{client}-hooks", client, title, path, entry, _add, _remove, _find, _words, _by_hand, after)


HOOKS: Final = (
    _row(
        "claude",
        "Claude Code",
        ".claude/settings.json",
        CLAUDE,
        "restart it here and approve the server once.",
    ),
    _row("codex", "Codex", ".codex/hooks.json", CODEX, "trust the hooks once with /hooks: others are skipped."),
    _row(
        "gemini",
        "Gemini CLI",
        ".gemini/settings.json",
        GEMINI,
        "restart it here and trust the folder: in others it starts no server.",
    ),
)
"""The hooks of each client that has such hooks."""
