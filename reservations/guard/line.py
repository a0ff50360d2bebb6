"""A shell line as plain commands: the literal words of each, and the folder that it works in.

Threats: T1, and T2 as far as plain words go. The parser is tree-sitter's grammar of bash, which only this module
imports. No variable is followed but HOME and PWD, no script is read, and only shells and their own `eval` and `trap`
run a text. A line with errors is also split at separators.

No program is known to run others: the first word of a command that names one of `PROGRAMS` begins what is judged, and
what stands before it (`sudo -u bob`, `timeout 5`, `uv run`) may be anything but one of `_READERS`.
"""

import os.path
import re
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from interlock.core.finding import FindingError
from interlock.core.patterns import expand
from interlock.reservations.guard.held import REMOVERS, UNKNOWN
from interlock.reservations.process import SHELLS

TEXTS: Final = SHELLS | {"eval", "trap"}
"""Programs that run a text."""
PROGRAMS: Final = REMOVERS | TEXTS | {"git", "interlock"}
"""Programs that are judged, or run what is."""
_MAX_SECONDS: Final = 1
"""Some odd texts take the grammar quadratic time of the processor, and a hook has to answer."""
_MAX_PIPES: Final = 5000
"""An error behind a pipeline takes quadratic time that cannot be stopped: a second for so many."""
_MAX_DEPTH: Final = 5
_READERS: Final = frozenset({"echo", "printf", "grep", "rg", "man"})
"""What only prints or looks for its words."""
_APART: Final = frozenset({"subshell", "command_substitution", "process_substitution", "function_definition"})
"""What a `cd` does not leave."""
_WRITES: Final = frozenset({">", ">>", ">|", ">&", "&>", "&>>"})


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


def read(text: str, here: str, env: Mapping[str, str]) -> list[Command] | None:
    """Return the commands anywhere in a line, in the order in which they stand there; None where it takes too long."""
    reader = _Reader(here, env.get("HOME", "~"))
    reader.line(text, 0)
    return reader.commands if reader.is_readable else None


class _Reader:
    def __init__(self, here: str, home: str) -> None:
        self.commands: list[Command] = []
        self.here, self.before, self.home = here, here, home
        self.data, self.is_readable = b"", True

    def line(self, text: str, depth: int) -> None:
        around, self.data = self.data, text.encode(errors="replace")
        root = _parse(self.data) if depth <= _MAX_DEPTH else None
        if root is None:
            self.is_readable = False
            return
        # Nodes that are still to be read, the next one last; between them the folder to go back to.
        todo: list[Node | str] = [root]
        while todo:
            node = todo.pop()
            if isinstance(node, str):
                self.here = node
                continue
            if node.type in _APART:
                todo.append(self.here)
            self._take(node, depth)
            todo += reversed(node.children)
        for part in re.split(r"[;&|\n(){}`]+", text) if root.has_error else ():
            self._command([word.strip("'\"") for word in part.split()], depth)
        self.data = around

    def _take(self, node: Node, depth: int) -> None:
        children = node.children
        if node.type == "command":
            parts = [part for part in children if part.is_named and not part.type.endswith(("redirect", "assignment"))]
            self._command([word for part in parts for word in self._spread(part)], depth)
        elif node.type == "variable_assignment":
            self._add("=", self._said(children[0]), "".join(map(self._word, children[2:])))
        elif node.type == "file_redirect" and not _WRITES.isdisjoint(part.type for part in children):
            if children[-1].type != "number":  # as in `2>&1`
                self._add(">", self._word(children[-1]))
        elif node.type in {"heredoc_body", "herestring_redirect"}:
            text = self._said(node) if node.type == "heredoc_body" else self._word(children[-1])
            program = self.commands[-1].program if self.commands else ""
            self._add("<<", text)
            self._nested([text] if program in SHELLS else [], depth)

    def _add(self, *words: str) -> None:
        self.commands.append(Command(words, self.here))

    def _command(self, words: list[str], depth: int) -> None:
        """Take a command, and what it runs of `PROGRAMS`."""
        if not words:
            return
        self._add(*words)
        name, rest = os.path.basename(words[0]), words[1:]
        if name in {"cd", "pushd", "popd"}:
            self._move(name, [word for word in rest if word == "-" or word[:1] != "-"])
        elif name in TEXTS:
            texts = [" ".join(rest)] if name == "eval" else rest
            self._nested([text for text in texts if len(text.split()) > 1], depth)
        elif name not in PROGRAMS | _READERS:
            self._behind(words, depth)

    def _behind(self, words: list[str], depth: int) -> None:
        """Take what another program may run: from the first word of `PROGRAMS` on, to the end of a `find -exec`."""
        start = next((number for number, word in enumerate(words) if os.path.basename(word) in PROGRAMS), None)
        before = words[:start]
        for word in before[1:] if start is not None or words[0] == "env" else ():
            name, sign, value = word.partition("=")
            if sign:
                self._add("=", name, value)
        if start is not None:
            inner = [*takewhile(lambda word: word not in {";", "+"}, words[start:])]
            inner = [UNKNOWN if "{}" in word else word for word in inner]
            self._command([*inner, UNKNOWN] if "xargs" in before and UNKNOWN not in inner else inner, depth)

    def _nested(self, texts: Sequence[str], depth: int) -> None:
        here = self.here
        for text in texts if self.is_readable else ():
            self.line(text, depth + 1)
            self.here = here

    def _move(self, name: str, named: Sequence[str]) -> None:
        before, target = self.here, named[0] if named else self.home
        goes_back = name == "popd" or target == "-"
        # Behind a folder that is not literal nothing relative is known; git is judged where the line was before.
        self.here = self.before if goes_back else os.path.normpath(os.path.join(before, target))
        self.before = before

    def _said(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode(errors="replace")

    def _spread(self, node: Node) -> list[str]:
        """Return the words of an argument, braces spread."""
        if self._said(node) in {'"$@"', "$@", "$*"}:
            return []  # what a function is called with
        word = self._word(node)
        try:
            return [*filter(None, expand(word))] if "{" in word and node.type in {"word", "concatenation"} else [word]
        except FindingError:  # braces that are no alternatives, as in `stash@{0}`, or too many of them
            return [word, *filter(None, re.split("[{,}]+", word))] if "," in word else [word]

    def _word(self, node: Node) -> str:
        """Return a word without its quotes."""
        text = self._said(node)
        if node.type in {"raw_string", "ansi_c_string"}:
            return text.removeprefix("$")[1:-1]
        if node.type in {"concatenation", "command_name"}:
            parts = [self._word(child) for child in node.children]
            return UNKNOWN if UNKNOWN in parts else "".join(parts)
        text = text[1:-1] if node.type == "string" else re.sub("^~(?=/|$)", lambda _: self.home, text)
        text = re.sub(r"\$(?:HOME\b|\{HOME\})", lambda _: self.home, text)
        text = re.sub(r"\$(?:PWD\b|\{PWD\})", lambda _: self.here, text)
        return UNKNOWN if re.search(r"(?<!\\)[$`]|^[<>]\(", text) else re.sub(r"\\\n|\\(.)", r"\1", text)


_PARSER: Final = Parser(Language(tree_sitter_bash.language()))


def _parse(data: bytes) -> Node | None:
    """Return the tree of a text, errors included; None where that takes too long."""
    if data.count(b"|") > _MAX_PIPES:
        return None
    end = time.process_time() + _MAX_SECONDS
    try:
        return _PARSER.parse(
            lambda begin, _point: data[begin : begin + 65_536],
            progress_callback=lambda _position, _has_error: time.process_time() > end,
        ).root_node
    except ValueError:
        _PARSER.reset()
        return None
