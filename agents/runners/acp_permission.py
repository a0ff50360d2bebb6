"""The answer when an agent of the Agent Client Protocol asks: the rules that our own tools go by.

Answers T1: an agent that would edit what its task is not about, and asks before. One that does not ask, or asks for one
thing and does another, is held by the sandbox, and what it changed is found at the hand-over.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from interlock.agents.ask import Ask
from interlock.agents.file_refusals import refusal_row
from interlock.agents.files import ScopedFiles
from interlock.agents.runners.presets import command_lines
from interlock.agents.runners.program_output import object_of, objects_of

SERVER: Final = "interlock"
"""The name of our MCP server in a session; the titles of its tools have it in them."""

_READS: Final = frozenset({"read", "search", "think"})
_EDITS: Final = frozenset({"edit", "delete", "move"})


def scope_of(ask: Ask) -> Callable[[str], bool]:
    """Return what says whether the role may change a file, by its path relative to the root."""
    return lambda path: ask.edits and ask.in_scope(path) and not ask.keeps_base(path)


class Permissions:
    """What the role of an ask may do; each method returns why not, as refusals, and nothing where it may.

    Args:
        ask: The ask.
        files: Its files, with `scope_of` as their scope.
    """

    def __init__(self, ask: Ask, files: ScopedFiles) -> None:
        self._ask = ask
        self._files = files
        self._root = os.path.realpath(ask.root)

    def call(self, call: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Judge a tool call by what the agent says of it."""
        paths, kind, title = [*_paths(call)], str(call.get("kind")), call.get("title")
        if kind in _READS:
            return [refusal_row("AGT911", path) for path in paths if self.relative(path).startswith("/")]
        if kind in _EDITS:
            rows = [row for path in paths for row in self.change(path)]
            return rows if paths else [refusal_row("AGT923", kind, f"{title}: it names no file")]
        if kind == "execute":
            # Some have the command in their own arguments, and a description as their title; others as the title.
            given = object_of(call.get("rawInput"))
            line, words = given.get("command") or title, given.get("args")
            return self.command([line, *cast("list[object]", words)] if words and isinstance(words, list) else line)
        words = "".join(char if char.isalnum() else " " for char in str(title)).split()
        # A tool of a server has no kind of its own; the address of a page may have our name in it, too.
        is_ours = SERVER in words and kind in ("other", "None")
        return [] if is_ours else [refusal_row("AGT923", kind, title)]

    def change(self, path: str) -> list[Mapping[str, Any]]:
        """Judge a change of a file; where leases are held, one on it is taken or there already."""
        name = self.relative(path)
        if name.startswith(f"{self._ask.reports_dir}/"):
            return []
        if self._ask.edits and self._ask.in_scope(name) and self._ask.keeps_base(name):
            return [refusal_row("AGT921", name)]
        return self._files.permit(name)["errors"]

    def command(self, line: object) -> list[Mapping[str, Any]]:
        """Judge a command: a line as a shell reads it, or its words."""
        allowed = command_lines(self._ask.commands.values())
        text = shlex.join(map(str, cast("list[object]", line))) if isinstance(line, list) else str(line)
        if text.strip() in allowed:
            return []
        expected = f"one of {', '.join(f'`{each}`' for each in allowed)}" if allowed else "no command at all"
        return [refusal_row("AGT922", text, expected=expected)]

    def relative(self, path: str) -> str:
        """Return a path relative to the root, its links followed; one that is not below the root stays absolute."""
        try:
            real = os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118 - also what is no path
        except ValueError:
            return path
        return real.removeprefix(f"{self._root}/")


def _paths(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that a tool call names, each once."""
    rows = [*objects_of(call.get("locations")), *objects_of(call.get("content"))]
    yield from dict.fromkeys(path for row in rows if isinstance(path := row.get("path"), str))
