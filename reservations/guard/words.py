"""What the words of a command expand to: quotes taken off, braces spread, and what the line itself says of variables.

A word that the line does not spell out is not known, and is never guessed at. Characters that still mean something to
the shell, such as the `*` of an unquoted `*.py`, are kept apart from the same ones in quotes: they are moved to
surrogates, which no text in UTF-8 has.
"""

import os.path
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from interlock.reservations.guard.syntax import Node

MAX_VALUES: Final = 200
"""At most this many combinations of the values of a command's variables are looked at."""
MAX_FIELDS: Final = 3000
"""At most this many words may come of one."""

_ACTIVE: Final = {ord(char): 0xDB00 + ord(char) for char in "*?[]{},~!^-"}
_GLOB: Final = {ord(char): _ACTIVE[ord(char)] for char in "*?[]!^-"}
_STAR, _OPEN, _CLOSE, _COMMA, _TILDE, _BRACKET = (char.translate(_ACTIVE) for char in "*{},~[")
ANY: Final = "\udb00"
"""Something that is not known."""
_ONE: Final = "\udb01"
"""The same in quotes: one word, whatever it says."""
_TEXT: Final = {active: code for code, active in _ACTIVE.items()} | {ord(ANY): None, ord(_ONE): None}
_SPREAD: Final = {active: code for code, active in _ACTIVE.items() if code not in _GLOB}
_OUTSIDE: Final = {active: code for code, active in _ACTIVE.items() if chr(code) not in "*?["}
"""What is itself in a finished word: braces and `~`, and what counts within brackets alone where there are none."""
_HARMLESS: Final = dict.fromkeys(map(ord, "*?["), "?")
_WILD: Final = re.compile(f"[{'*?['.translate(_ACTIVE)}]")
_GROUP: Final = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_UNQUOTED: Final = re.compile(r"\\(.?)|([*?\[\]{},~!^-])", re.DOTALL)
_QUOTED: Final = re.compile(r'\\([$`"\\\n])')
_ANSI: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_NUMBERS: Final = frozenset("?#$!") | {"RANDOM", "SECONDS", "UID", "EUID", "PPID", "LINENO", "BASHPID", "EPOCHSECONDS"}
_ENVIRONMENT: Final = frozenset({"HOME", "TMPDIR", "USER", "LOGNAME"})
"""Variables that are taken from the hook's own environment, where the line does not set them."""


class Word(str):
    """One word without quotes, with what still counts in it as a wildcard, and what of it is not known."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """Return what it says."""
        return self.translate(_TEXT)

    @property
    def pattern(self) -> str:
        """Return what the shell makes files of, where it has a wildcard; the text is meant too, without a match."""
        return self.translate(_HARMLESS).translate(_TEXT) if _WILD.search(self) else ""

    @property
    def single(self) -> bool:
        """Return whether it is one word whatever it says, since what is not known of it is quoted."""
        return ANY not in self

    @property
    def known(self) -> bool:
        """Return whether the line says what it is."""
        return self.single and _ONE not in self

    @property
    def literal(self) -> bool:
        """Return whether it is known and has no wildcard."""
        return self.known and not _WILD.search(self)


def glob(text: str) -> Word:
    """Return a text whose wildcards count."""
    return _settled(text.translate(_GLOB))


def _settled(text: str) -> Word:
    return Word(text.translate(_SPREAD if _BRACKET in text else _OUTSIDE))


UNKNOWN: Final = Word(ANY)
NAME: Final = glob("*")
"""Something without a `/`, such as a number or a date."""

Value: TypeAlias = tuple[Word, ...]
"""What a variable may hold: one word, or the elements of an array."""
Binding: TypeAlias = Mapping[str, Value]
Output: TypeAlias = "Callable[[Node, Binding], list[Word]]"
"""What the commands of a substitution write, as words."""


def names_in(nodes: "Sequence[Node]") -> set[str]:
    """Return the variables whose values some nodes use."""
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node.type in {"simple_expansion", "expansion", "subscript"}:
            found |= {_said(child) for child in node.children if child.type.endswith("variable_name")}
        stack += node.children
    return found


def bindings(nodes: "Sequence[Node]", values: Mapping[str, dict[Value, None]]) -> Iterator[dict[str, Value]]:
    """Yield what the variables in some nodes may hold, one value each; too many are as good as unknown ones."""
    names = sorted(name for name in names_in(nodes) if name in values)
    rows = [list(values[name]) for name in names]
    count = 1
    for row in rows:
        count *= len(row)
    if count > MAX_VALUES:
        rows = [[(UNKNOWN,)] for _ in rows]
    for row in product(*rows):
        yield dict(zip(names, row, strict=True))


class Expander:
    """Puts words together."""

    def __init__(self, output: Output, env: Mapping[str, str]) -> None:
        self.output = output
        self.env = env
        self.splits = True
        """Unquoted values are split at blanks; not where the line sets `IFS`."""

    def words(self, nodes: "Sequence[Node]", binding: Binding, here: str | None) -> list[Word]:
        """Return what some nodes become, in order; `here` is the current folder, None where that is not known."""
        return [word for node in nodes for word in self.fields(node, binding, here)]

    def fields(self, node: "Node", binding: Binding, here: str | None) -> list[Word]:
        """Return the words that one node becomes."""
        known = dict(binding)
        if here is not None:
            known.setdefault("PWD", (Word(here),))
        found: list[Word] = []
        for row in self._parts(node, known, quoted=False):
            found += [self._finished(text, known) for text in _braces(row)]
            if len(found) > MAX_FIELDS:
                return [UNKNOWN]
        return found

    def _finished(self, text: str, binding: Binding) -> Word:
        if text.startswith(_TILDE):
            user, sign, rest = text.partition("/")
            if user == f"{_TILDE}+" and "PWD" in binding:
                user = binding["PWD"][0]
            elif user == _TILDE and "HOME" not in binding:
                user = self.env.get("HOME") or os.path.expanduser("~")
            else:
                user = ANY
            text = user + sign + rest
        return _settled(text)

    def _parts(self, node: "Node", binding: Binding, *, quoted: bool) -> list[str]:
        """Return the words that a node becomes, before braces and `~`."""
        match node.type:
            case "word" | "number" | "brace_expression" | "extglob_pattern" | "string_content" | "variable_name":
                return [_unescaped(_said(node), quoted=quoted)]
            case "raw_string":
                return [_said(node)[1:-1]]
            case "ansi_c_string":
                return [_ANSI.sub(lambda match: _ESCAPES.get(match[1], ANY), _said(node)[2:-1])]
            case "command_name" | "concatenation":
                return _joined(self._parts(child, binding, quoted=quoted) for child in node.children)
            case "string" | "heredoc_body":
                rows = _joined(self._quoted(node, binding, int(node.type == "string")))
                several = b"[@]" in (node.text or b"") or "@" in names_in([node])
                return rows if several else [row.replace(ANY, _ONE) for row in rows]
            case "simple_expansion" | "expansion":
                return self._inserted(self._variable(node, binding), quoted=quoted)
            case "command_substitution":
                words = self.output(node, binding)
                if quoted and len(words) != 1:
                    is_plain = all(word.literal for word in words) and b"|" not in (node.text or b"")
                    words = [Word(" ".join(words)) if is_plain else UNKNOWN]
                return self._inserted(words, quoted=quoted)
            case "arithmetic_expansion":
                return [NAME]
            case _:
                return [{"process_substitution": "/dev/fd/63", "$": "$"}.get(node.type, ANY)]

    def _quoted(self, node: "Node", binding: Binding, edge: int) -> Iterator[list[str]]:
        """Yield the parts of a text in double quotes: what is between its expansions counts, whatever it is."""
        data, base, at = node.text or b"", node.start_byte, edge
        for child in node.children:
            if child.type.endswith(("expansion", "substitution")):
                yield [_unescaped(data[at : child.start_byte - base].decode(errors="replace"), quoted=True)]
                yield self._parts(child, binding, quoted=True)
                at = child.end_byte - base
        yield [_unescaped(data[at : len(data) - edge].decode(errors="replace"), quoted=True)]

    def _inserted(self, words: Sequence[Word], *, quoted: bool) -> list[str]:
        """Return words as the shell puts them in: unquoted ones are split, and what was a wildcard is one again."""
        if quoted:
            return list(words)
        return [part.translate(_GLOB) for word in words for part in word.split()] if self.splits else [ANY]

    def _variable(self, node: "Node", binding: Binding) -> Sequence[Word]:
        first, *rest = node.children[1:] if node.type == "simple_expansion" else node.children[1:-1]
        if first.type in {"#", "!"}:
            return [NAME if first.type == "#" else UNKNOWN]
        name = _said(first.children[0] if first.type == "subscript" else first)
        value = self._value(name, binding)
        if not rest:
            return value
        operator, after = rest[0].type, rest[1:]
        if operator in {":-", "-"}:
            if all(word.known for word in value):
                return value
            is_unset = name in _ENVIRONMENT and not self.env.get(name)
            rows = _joined(self._parts(part, binding, quoted=True) for part in after) if is_unset else [ANY]
            return [Word(row) for row in rows]
        if operator in {"%", "%%", "#", "##"} and len(after) == 1 and after[0].type in {"word", "regex"}:
            return [_trimmed(word, operator, _unescaped(_said(after[0]), quoted=False)) for word in value]
        return [UNKNOWN]

    def _value(self, name: str, binding: Binding) -> Sequence[Word]:
        known = self.env.get(name) if name in _ENVIRONMENT else ""
        return binding[name] if name in binding else [NAME if name in _NUMBERS else Word(known or ANY)]


def _said(node: "Node") -> str:
    return (node.text or b"").decode(errors="replace")


def _joined(rows: Iterable[list[str]]) -> list[str]:
    found = [""]
    for parts in rows:
        found[-1:] = [found[-1] + "".join(parts[:1]), *parts[1:]]
    return found


def _unescaped(text: str, *, quoted: bool) -> str:
    """Take backslashes off, and mark what the shell does not take as it is."""
    if quoted:
        return _QUOTED.sub(lambda match: match[1].strip("\n"), text)
    return _UNQUOTED.sub(lambda match: match[1].strip("\n") if match[2] is None else match[2].translate(_ACTIVE), text)


def _trimmed(word: Word, operator: str, shape: str) -> Word:
    """Return a word without an end that is spelled out, or without all but its last part, or without that."""
    if (operator, shape) == ("##", f"{_STAR}/"):
        return Word(os.path.basename(word))
    if (operator, shape) == ("%", f"/{_STAR}"):
        return Word(os.path.dirname(word) if "/" in word else word)
    shape = _settled(shape)
    if _WILD.search(shape) or (not word.literal and not (operator[0] == "%" and word.endswith((shape, _STAR)))):
        return UNKNOWN
    return Word(word.removesuffix(shape) if operator[0] == "%" else word.removeprefix(shape))


def _braces(text: str) -> list[str]:
    rows, done = [text], [""][:0]
    while rows:
        row = rows.pop()
        found = _GROUP.search(row)
        if found is None:
            done.append(row)
            continue
        new = found[1].split(_COMMA)
        if len(new) == 1:
            new = [_STAR if ".." in found[1] else f"{{{found[1]}}}"]
        rows += [row[: found.start()] + part + row[found.end() :] for part in reversed(new)]
        if len(rows) + len(done) > MAX_FIELDS:
            return [ANY]
    return done
