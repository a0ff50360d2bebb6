"""A shell line as plain commands: the literal words of each, and the folder that it works in.

Threats: T1, and T2 as far as plain words go. No variable is followed but HOME and PWD, no script is read, and only
programs of `_WRAPPERS` and `TEXTS` are known to run others. What the grammar does not read is split at separators.
"""

import os.path
import re
from collections.abc import Mapping, Sequence
from itertools import dropwhile, pairwise, takewhile
from typing import Final, NamedTuple

from interlock.reservations.guard.syntax import Node, parse
from interlock.reservations.patterns.globs import expand_braces
from interlock.reservations.process import PREFIXES, SHELLS

UNKNOWN: Final = "\0"
"""A word that is not literal."""
REMOVERS: Final = frozenset({"rm", "rmdir", "unlink", "shred", "trash", "trash-put"})
WRITERS: Final = frozenset({"mv", "cp", "ln", "install", "rsync", "tee", "truncate"})
_MAX_DEPTH: Final = 5
_MAX_PATH: Final = 4096
_WRAPPERS: Final = PREFIXES | {"command", "builtin", "exec", "uv", "poetry", "pipenv", "mise", "npx"}
"""Programs that run the words behind their own."""
TEXTS: Final = SHELLS | {"eval", "trap", "su", "runuser", "script", "sg"}
"""Programs that run a text."""
_RUN: Final = REMOVERS | WRITERS | TEXTS | {"git", "interlock", "find", "python", "python3"}
"""Where what a wrapper runs may begin."""
_APART: Final = frozenset({"subshell", "command_substitution", "process_substitution", "function_definition"})
"""What a `cd` does not leave."""
_WRITES: Final = frozenset({">", ">>", ">|", "&>", "&>>"})
_PASSED_ON: Final = frozenset({'"$@"', "$@", "$*"})
"""What a function is called with."""


class Command(NamedTuple):
    """One command of a line: the program and its arguments, and the absolute folder that it works in.

    `=` NAME VALUE is an assignment, `>` FILE what a redirection writes, and `<<` TEXT what a command reads.
    """

    words: Sequence[str]
    here: str

    @property
    def program(self) -> str:
        """The name of the program, without its folder."""
        return os.path.basename(self.words[0])


def read(text: str, here: str, env: Mapping[str, str]) -> list[Command]:
    """Return the commands anywhere in a line, in the order in which they stand there."""
    reader = _Reader(here, env.get("HOME", "~"))
    reader.line(text, 0)
    return reader.found


class _Reader:
    def __init__(self, here: str, home: str) -> None:
        self.found: list[Command] = []
        self.here, self.home, self.data = here, home, b""
        self.moves = [here]

    def line(self, text: str, depth: int) -> None:
        around, self.data = self.data, text.encode(errors="replace")
        root = parse(self.data)
        todo: list[Node | str] = [] if root is None else [root]
        while todo:
            row = todo.pop()
            if isinstance(row, str):
                self.here = row
                continue
            todo += [self.here] if row.type in _APART else []
            self._take(row, depth)
            todo += reversed(row.children)
        for part in re.split(r"[;&|\n(){}`]+", text) if root is None or root.has_error else ():
            self._command([word.strip("'\"") for word in part.split()], _MAX_DEPTH)
        self.data = around

    def _take(self, node: Node, depth: int) -> None:
        children = node.children
        if node.type == "command":
            parts = [part for part in children if part.is_named and not part.type.endswith(("redirect", "assignment"))]
            self._command([word for part in parts for word in self._spread(part)], depth)
        elif node.type == "variable_assignment":
            self._add("=", self._said(children[0]), "".join(map(self._word, children[2:])))
        elif node.type == "unset_command":
            for part in children[1:]:
                self._add("=", self._said(part), "")
        elif node.type == "file_redirect" and not _WRITES.isdisjoint(part.type for part in children):
            self._add(">", self._word(children[-1]))
        elif node.type in {"heredoc_body", "herestring_redirect"}:
            text = self._said(node) if node.type == "heredoc_body" else self._word(children[-1])
            program = self.found[-1].program if self.found else ""
            self._add("<<", text)
            self._nested([text] if program in SHELLS else [], depth)

    def _add(self, *words: str) -> None:
        self.found.append(Command(words, self.here))

    def _command(self, words: list[str], depth: int) -> None:
        if not words:
            return
        self._add(*words)
        name, rest = os.path.basename(words[0]), words[1:]
        if name in {"cd", "pushd", "popd"}:
            self._move(name, [word for word in rest if word == "-" or word[:1] != "-"])
        elif name in TEXTS:
            texts = [" ".join(rest)] if name == "eval" else rest
            self._nested([text for text in texts if len(text.split()) > 1], depth)
        elif name == "find" and depth < _MAX_DEPTH:
            todo = iter(rest)
            for word in todo:
                inner = [*takewhile(lambda part: part not in {";", "+"}, todo)] if word[:5] in {"-exec", "-ok"} else []
                self._command([UNKNOWN if part == "{}" else part for part in inner], depth + 1)
        elif name in _WRAPPERS:
            for before, word in pairwise(words):
                if re.match(r"[A-Za-z_]\w*=", word) or before in {"-u", "--unset"}:
                    self._add("=", word.partition("=")[0], word.partition("=")[2])
            inner = [*dropwhile(lambda word: os.path.basename(word) not in _RUN, rest)]
            if name in {"xargs", "parallel"} and inner:
                placed = [UNKNOWN if "{}" in word else word for word in inner]
                inner = placed if UNKNOWN in placed else [*inner, UNKNOWN]
            self._command(inner, depth)

    def _nested(self, texts: Sequence[str], depth: int) -> None:
        here = self.here
        for text in texts if depth < _MAX_DEPTH else ():
            self.line(text, depth + 1)
            self.here = here

    def _move(self, name: str, named: Sequence[str]) -> None:
        target = named[0] if named else self.home
        if name == "popd" or target == "-":
            target = self.moves.pop() if len(self.moves) > 1 else self.moves[0]
        else:
            self.moves.append(self.here)
        # Behind a folder that is not literal nothing relative is known; git is judged where the line was before.
        self.here = os.path.normpath(os.path.join(self.here, target))[:_MAX_PATH]

    def _said(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode(errors="replace")

    def _spread(self, node: Node) -> list[str]:
        """Return the words of an argument, braces spread."""
        word = self._word(node)
        found = expand_braces(word) if "{" in word and node.type in {"word", "concatenation"} else [word]
        return [] if self._said(node) in _PASSED_ON else found if isinstance(found, list) else [word]

    def _word(self, node: Node) -> str:
        """Return a word without its quotes."""
        text = self._said(node)
        if node.type == "raw_string":
            return text[1:-1]
        if node.type in {"concatenation", "command_name"}:
            parts = [self._word(child) for child in node.children]
            return UNKNOWN if UNKNOWN in parts else "".join(parts)
        if node.type == "ansi_c_string":
            return text[2:-1].encode().decode("unicode_escape", errors="replace")
        text = text[1:-1] if node.type == "string" else re.sub("^~(?=/|$)", lambda _: self.home, text)
        text = re.sub(r"\$(?:HOME\b|\{HOME\})", lambda _: self.home, text)
        text = re.sub(r"\$(?:PWD\b|\{PWD\})", lambda _: self.here, text)
        return UNKNOWN if re.search(r"(?<!\\)[$`]|^[<>]\(", text) else re.sub(r"\\\n|\\(.)", r"\1", text)
