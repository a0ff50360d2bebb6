"""What the words of a command stand for: quotes taken off, braces spread, and what the line itself says of variables.

A word that the line does not spell out is not known, and is never guessed at. While a word is put together, characters
that quotes protect from the shell are moved out of its reach (`_hidden`), so that the others can be read as a pattern.
"""

import os.path
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from interlock.reservations.guard.syntax import Node

MAX_VALUES: Final = 200
"""So many combinations of the values of a command's variables are looked at."""
MAX_FIELDS: Final = 3000
"""So many words may come of one."""


class Word(NamedTuple):
    """One word.

    Args:
        text: What it says, without quotes.
        pattern: What the shell makes files of, where it has a wildcard; the text itself is meant too, without a match.
        known: The line says what it is.
        single: It is one word whatever it says, since it is quoted.
    """

    text: str = ""
    pattern: str = ""
    known: bool = True
    single: bool = True

    @property
    def literal(self) -> bool:
        """Return whether it is known and has no wildcard."""
        return self.known and not self.pattern


UNKNOWN: Final = Word(known=False, single=False)
NAME: Final = Word("0", "*")
"""Something without a `/`, such as a number or a date."""

Value: TypeAlias = tuple[Word, ...]
"""What a variable may hold: one word, or the elements of an array."""
Binding: TypeAlias = Mapping[str, Value]
Output: TypeAlias = "Callable[[Node, Binding], list[Word] | None]"
"""What the commands of a substitution write, as words; None where that is not known."""

_SPECIAL: Final = "*?[]!^-{},.~ \t\n\\'\"$`"
_HIDE: Final = {ord(char): 0xDB00 + ord(char) for char in _SPECIAL}
_SHOW: Final = {hidden: char for char, hidden in _HIDE.items()}
_WILD: Final = re.compile(r"[*?\[]")
_HIDDEN_WILD: Final = re.compile(f"[{''.join(chr(_HIDE[ord(char)]) for char in '*?[]')}]")
_GROUP: Final = re.compile(r"\{([^{}]*)\}")
_ESCAPES: Final = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_NUMBERS: Final = frozenset("?#$!") | {"RANDOM", "SECONDS", "UID", "EUID", "PPID", "LINENO", "BASHPID", "EPOCHSECONDS"}
_ENVIRONMENT: Final = frozenset({"HOME", "TMPDIR", "USER", "LOGNAME"})
"""Variables that are taken from the hook's own environment, where the line does not set them."""


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
    """Puts words together.

    Args:
        output: What substitutions write.
        env: The environment of the hook.
    """

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
        if here is not None and "PWD" not in known:
            known["PWD"] = (Word(here),)
        rows = self._parts(node, known, quoted=False)
        if rows is None:
            return [UNKNOWN._replace(single=_is_quoted(node))]
        found: list[Word] = []
        for row in rows:
            spread = _braces(row)
            if spread is None or len(found) + len(spread) > MAX_FIELDS:
                return [UNKNOWN]
            found += [self._finished(text, known) for text in spread]
        return found

    def text(self, node: "Node", binding: Binding, here: str | None) -> str | None:
        """Return what a node says as one text, such as the body of a here-document; None where that is not known."""
        words = self.fields(node, binding, here)
        return words[0].text if len(words) == 1 and words[0].literal else None

    def _finished(self, text: str, binding: Binding) -> Word:
        """Return one word of what was put together."""
        if text.startswith("~"):
            user, sign, rest = text.partition("/")
            if user == "~+" and "PWD" in binding:
                text = _hidden(binding["PWD"][0].text) + sign + rest
            elif user == "~" and "HOME" not in binding:
                text = _hidden(self.env.get("HOME") or os.path.expanduser("~")) + sign + rest
            else:
                return UNKNOWN
        plain = text.translate(_SHOW)
        if _WILD.search(text) is None:
            return Word(plain)
        return Word(plain, _HIDDEN_WILD.sub("?", text).translate(_SHOW))

    def _parts(self, node: "Node", binding: Binding, *, quoted: bool) -> list[str] | None:
        """Return the words that a node becomes, protected; None where that is not known."""
        match node.type:
            case "word" | "number" | "brace_expression" | "extglob_pattern" | "string_content" | "variable_name":
                return _unescaped(_said(node), quoted=quoted)
            case "raw_string":
                return [_hidden(_said(node)[1:-1])]
            case "ansi_c_string":
                return _ansi(_said(node)[2:-1])
            case "command_name" | "concatenation":
                return self._joined(node.children, binding, quoted=quoted)
            case "string" | "heredoc_body":
                return self._quoted(node, binding, int(node.type == "string"))
            case "simple_expansion" | "expansion":
                return self._inserted(self._variable(node, binding), quoted=quoted)
            case "command_substitution":
                words = self.output(node, binding)
                if quoted and words is not None and len(words) != 1:
                    literal = all(word.literal for word in words)
                    words = [Word(" ".join(word.text for word in words))] if literal else None
                return self._inserted(words, quoted=quoted)
            case "arithmetic_expansion":
                return self._inserted([NAME], quoted=quoted)
            case "process_substitution":
                return ["/dev/fd/63"]
            case "$":
                return [_hidden("$")]
            case _:
                return None

    def _joined(self, nodes: "list[Node]", binding: Binding, *, quoted: bool) -> list[str] | None:
        """Return the words that nodes become when nothing stands between them."""
        found = [""]
        for node in nodes:
            parts = self._parts(node, binding, quoted=quoted)
            if parts is None:
                return None
            if parts:
                found[-1] += parts[0]
                found += parts[1:]
        return found

    def _quoted(self, node: "Node", binding: Binding, edge: int) -> list[str] | None:
        """Return a text in double quotes: what stands between its expansions counts, whatever nodes it has."""
        data, base = node.text or b"", node.start_byte
        inner = [child for child in node.children if child.type.endswith(("expansion", "substitution"))]
        found, at = [""], edge
        for child in [*inner, None]:
            end = len(data) - edge if child is None else child.start_byte - base
            piece = _unescaped(data[at:end].decode(errors="replace"), quoted=True)
            parts = [""] if child is None else self._parts(child, binding, quoted=True)
            if piece is None or parts is None:
                return None
            found[-1] += piece[0]
            if parts:
                found[-1] += parts[0]
                found += parts[1:]
            at = end if child is None else child.end_byte - base
        return found

    def _inserted(self, words: "list[Word] | None", *, quoted: bool) -> list[str] | None:
        """Return words as the shell puts them in."""
        if words is None or not all(word.known for word in words):
            return None
        if quoted:
            # What stands for files is still a pattern; what was a wildcard in a text no longer is one.
            return [_kept(word) if word.pattern else _hidden(word.text) for word in words]
        if not self.splits:
            return None
        return [part for word in words for part in ([_kept(word)] if word.pattern else _split(word.text))]

    def _variable(self, node: "Node", binding: Binding) -> list[Word] | None:
        """Return what `$NAME` or `${NAME…}` stands for."""
        children = node.children[1:] if node.type == "simple_expansion" else node.children[1:-1]
        if not children:
            return None
        first, *rest = children
        if first.type == "#":
            return [NAME]
        if first.type == "subscript":
            first = first.children[0]
        name = _said(first)
        value = self._value(name, binding)
        if not rest:
            return value
        operator, after = rest[0].type, rest[1:]
        if operator in {":-", "-"}:
            return self._default(name, value, after, binding)
        if operator in {"%", "%%", "#", "##"} and value is not None and len(after) == 1:
            shape = _unescaped(_said(after[0]), quoted=False) if after[0].type in {"word", "regex"} else None
            rows = [None if shape is None else _trimmed(word, operator, shape[0]) for word in value]
            return None if None in rows else [row for row in rows if row is not None]
        return None

    def _value(self, name: str, binding: Binding) -> list[Word] | None:
        """Return what a variable holds."""
        if name in binding:
            return list(binding[name])
        if name in _NUMBERS:
            return [NAME]
        if name in _ENVIRONMENT and self.env.get(name):
            return [Word(self.env[name])]
        return None

    def _default(self, name: str, value: list[Word] | None, after: "list[Node]", binding: Binding) -> list[Word] | None:
        """Return what `${NAME:-DEFAULT}` stands for: only where one of the two is sure to count."""
        if value is not None and all(word.known for word in value):
            return value
        if name not in _ENVIRONMENT or self.env.get(name):
            return None
        parts = self._joined(after, binding, quoted=True)
        return None if parts is None else [Word(part.translate(_SHOW)) for part in parts]


def _said(node: "Node") -> str:
    return (node.text or b"").decode(errors="replace")


def _is_quoted(node: "Node") -> bool:
    return node.type == "string" and b"[@]" not in (node.text or b"") and "@" not in names_in([node])


def _hidden(text: str) -> str:
    return text.translate(_HIDE)


def _kept(word: Word) -> str:
    """Return a pattern whose wildcards count, and nothing else in it."""
    return "".join(char if char in "*?[]" or (char in "-!^" and "[" in word.pattern) else char.translate(_HIDE)
                   for char in word.pattern)  # fmt: skip


def _split(text: str) -> list[str]:
    """Return an unquoted value as the shell splits it; its wildcards count, its braces do not."""
    keep = {code: hidden for code, hidden in _HIDE.items() if chr(code) not in "*?[]-!^"}
    return [part.translate(keep) for part in text.split()]


def _unescaped(text: str, *, quoted: bool) -> list[str] | None:
    """Take backslashes off; None where something is left that the shell would put in."""
    found: list[str] = []
    rest = iter(text)
    for char in rest:
        if char == "\\":
            after = next(rest, "")
            if quoted and after not in '$`"\\\n':
                found.append(_hidden(char + after))
            elif after != "\n":
                found.append(_hidden(after))
        elif char == "`":
            return None
        elif char == "$":
            found.append("$")
        else:
            found.append(_hidden(char) if quoted else char)
    joined = "".join(found)
    return None if re.search(r"\$[\w{(\[@*#?$!-]", joined) else [joined.replace("$", _hidden("$"))]


def _ansi(text: str) -> list[str] | None:
    """Return what `$'…'` says, where it has no escapes but the usual ones."""
    found = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], "\0"), text, flags=re.DOTALL)
    return None if "\0" in found else [_hidden(found)]


def _trimmed(word: Word, operator: str, shape: str) -> Word | None:
    """Return a word without an end that is spelled out, or without all but its last part, or without that."""
    text = word.pattern or word.text
    if (operator, shape) == ("##", "*/"):
        cut = os.path.basename(text)
    elif (operator, shape) == ("%", "/*"):
        cut = os.path.dirname(text) if "/" in text else text
    elif _WILD.search(shape):
        return None
    elif operator in {"%", "%%"}:
        if word.pattern and not text.endswith((shape, "*")):
            return None
        cut = text.removesuffix(shape)
    elif word.pattern:
        return None
    else:
        cut = text.removeprefix(shape)
    return Word(cut, cut) if word.pattern and _WILD.search(cut) else Word(cut)


def _braces(text: str) -> list[str] | None:
    """Return the words that `{a,b}` spreads to, with a wildcard for `{1..3}`; None for too many."""
    rows, done = [text], [""][:0]
    while rows and len(rows) + len(done) <= MAX_FIELDS:
        row = rows.pop()
        found = _GROUP.search(row)
        if found is None:
            done.append(row)
            continue
        new = found[1].split(",")
        if len(new) == 1:
            new = ["*" if ".." in found[1] else f"{_hidden('{')}{found[1]}{_hidden('}')}"]
        rows += [row[: found.start()] + part + row[found.end() :] for part in reversed(new)]
    return None if rows else done
