"""Where the commands of a line may run, and what its variables may hold, as far as the line itself says it.

Nothing is run, so that a `cd` that may fail, stands in a pipe or in one branch of an `if` leaves several folders
possible.
"""

import os.path
import re
from collections.abc import Iterable, Sequence
from typing import Final

from interlock.reservations.hooks.words import Command, Excessive, Word

MAX_FOLDERS: Final = 32
"""In more folders than these a command is not judged."""
NEW: Final = os.path.join(os.sep, "tmp", "made-by-mktemp")
"""What `mktemp` makes: it did not exist before, so that nobody holds it."""
_OPERATORS: Final = re.compile(r"&&|\|\||\|&|;;|[|;&\n(){}]")
_PIPES: Final = frozenset({"|", "|&"})
_OPENS: Final = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSES: Final = frozenset({"fi", "done", "esac"})
_BRANCHES: Final = frozenset({"else", "elif"}) | _CLOSES

Folders = dict[str, None]
"""Folders that are possible, in the order in which they were found."""


def is_piped(command: Command) -> bool:
    """Say whether what stands before a command writes to its standard input."""
    return not _PIPES.isdisjoint(_OPERATORS.findall(command.ops))


def is_plainly_piped(command: Command) -> bool:
    """Say whether the one command before it, and nothing else, writes to its standard input."""
    return command.ops.strip("\n") in _PIPES


class _Scope:
    """One shell: the line's own, or a subshell.

    Args:
        folders: Where the next command may run.
        failed: Where commands behind the next `;` may run too, because something before it failed.
        begun: Where the list began, and where the pipeline did.
        before: Where `cd -` leads.
        stack: Where `popd` leads.
        skipped: Where a command may run when a branch of an `if` or a loop is not taken.
    """

    __slots__ = (
        "before", "begun", "blocks", "chained", "failed", "folders", "groups", "in_pipe", "pipe", "skipped", "stack",
        "succeeded",
    )  # fmt: skip

    def __init__(self, folders: Folders, before: Folders | None = None) -> None:
        self.folders = self.begun = self.pipe = folders
        self.before = before or {}
        self.failed: Folders = {}
        self.succeeded: Folders = {}
        self.skipped: Folders = {}
        self.stack: list[Folders] = []
        self.groups: list[Folders] = []
        self.chained = self.in_pipe = False
        self.blocks = 0


class Walk:
    """The state between two commands of a line.

    Args:
        values: What a variable may hold.
        functions: The functions that the line defines.
        made: Folders that the line makes, so that a `cd` there does not fail.
        fed: What is not known inside is a name from a program's list.
    """

    __slots__ = ("fed", "functions", "made", "scopes", "values")

    def __init__(self, folders: Iterable[str]) -> None:
        self.scopes = [_Scope(dict.fromkeys(folders))]
        self.values: dict[str, list[Word]] = {}
        self.functions: dict[str, list[Command]] = {}
        self.made = {NEW}
        self.fed = False

    @classmethod
    def at(cls, folders: Iterable[str]) -> "Walk":
        """Return the state at the beginning of a line."""
        return cls(folders)

    @property
    def folders(self) -> list[str]:
        """Where the next command may run."""
        return list(self.scopes[-1].folders)

    @property
    def maybe(self) -> bool:
        """Say whether the command at hand may be left out, or runs in a shell of its own."""
        scope = self.scopes[-1]
        return scope.chained or scope.in_pipe or bool(scope.blocks)

    def inner(self, folders: Iterable[str] | None = None, *, fed: bool = False) -> "Walk":
        """Return the state for commands in a shell of their own."""
        walk = Walk.at(self.folders if folders is None else folders)
        walk.values, walk.functions, walk.made = dict(self.values), dict(self.functions), self.made
        walk.fed = self.fed or fed
        return walk

    def step(self, ops: str) -> None:
        """Go over the operators that stand before a command."""
        signs = _OPERATORS.findall(ops)
        for sign, after in zip(signs, [*signs[1:], ""], strict=False):
            scope = self.scopes[-1]
            if sign in _PIPES:
                scope.folders = scope.folders | scope.pipe
                scope.in_pipe = True
                continue
            if sign == "(":
                self.scopes.append(_Scope(scope.folders, scope.before))
            elif sign == ")" and len(self.scopes) > 1:
                self.scopes.pop()
            elif sign == "{":
                scope.groups.append(scope.folders)
            elif sign == "}":
                saved = scope.groups.pop() if scope.groups else {}
                scope.folders = scope.folders | (saved if after in _PIPES | {"&"} else {})
            else:
                self._list(scope, sign)

    @staticmethod
    def _list(scope: _Scope, sign: str) -> None:
        """Go over `;`, `&`, `&&`, `||` or a new line."""
        if scope.in_pipe:
            scope.folders, scope.in_pipe = scope.folders | scope.pipe, False
        if sign == "&&":
            scope.chained = True
        elif sign == "||":
            scope.succeeded = scope.folders
            scope.folders = scope.folders | scope.failed
            scope.chained = True
        else:
            scope.folders = scope.folders | scope.failed | (scope.begun if sign == "&" else {})
            if sign == ";;":
                scope.folders = scope.folders | scope.skipped
            scope.failed, scope.succeeded, scope.begun, scope.chained = {}, {}, scope.folders, False
        scope.pipe = scope.folders

    def keyword(self, name: str) -> None:
        """Go over a keyword of the shell that opens, parts or closes a block."""
        scope = self.scopes[-1]
        scope.blocks = max(0, scope.blocks + (name in _OPENS) - (name in _CLOSES))
        if name in _BRANCHES:
            scope.folders = scope.folders | scope.skipped
            if not scope.blocks:
                scope.skipped = {}

    def leave(self) -> None:
        """Go over `exit` or `return`: what follows a failure before it is not reached."""
        scope = self.scopes[-1]
        if scope.succeeded:
            scope.folders, scope.failed = scope.succeeded, {}

    def move(self, program: str, targets: Iterable[str] | None) -> None:
        """Go over `cd`, `pushd` or `popd`.

        Args:
            program: Which of them.
            targets: The folders that it may lead to; None for `cd -` and for what stands on the stack.
        """
        scope = self.scopes[-1]
        before = scope.folders
        if targets is not None:
            found = dict.fromkeys(targets)
        elif program == "cd":
            found = scope.before or before
        else:
            found = scope.stack.pop() if scope.stack else before
        if program == "pushd":
            scope.stack.append(before)
        scope.folders, scope.before = found, before
        if scope.chained or not all(os.path.isdir(folder) or folder in self.made for folder in found):
            scope.failed = scope.failed | before
        if scope.blocks:
            scope.skipped = scope.skipped | before
        _bounded(found)

    def also(self, folders: Iterable[str]) -> None:
        """Add folders that a function may have gone to."""
        scope = self.scopes[-1]
        scope.folders = scope.folders | dict.fromkeys(folders)
        _bounded(scope.folders)

    def give(self, words: Sequence[Word]) -> None:
        """Set what a script or a function is given as `$1`, `$2`, …, `$@`."""
        self.values = {name: row for name, row in self.values.items() if not name.isdigit() and name not in {"@", "*"}}
        self.values |= {str(at): [word] for at, word in enumerate(words[:9], 1)}
        if words:
            self.values |= {"@": [*words], "*": [*words]}

    def hold(self, name: str, values: list[Word]) -> None:
        """Let a variable hold one of some values, and what it held before where it may keep that."""
        self.values[name] = [*self.values.get(name, []), *values] if self.maybe else values


def _bounded(folders: Folders) -> None:
    """Refuse to go on with more folders than are judged."""
    if len(folders) > MAX_FOLDERS:
        raise Excessive("too many folders in which it may run")
