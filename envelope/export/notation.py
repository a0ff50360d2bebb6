"""A small notation for regular languages, and its two spellings: GBNF and Lark terminals.

The exported grammars are written once in this notation. It has no lookaround and no recursion, so every
model-side engine can run what is printed from it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias, assert_never
from typing import Literal as Either

Dialect: TypeAlias = Either["gbnf", "lark"]
CLASS_SYNTAX: Final = "\\[]^-"


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set. The ranges are inclusive, ascending and disjoint."""

    ranges: tuple[tuple[int, int], ...]

    def minus(self, characters: str) -> "Chars":
        """Return the set without some characters."""
        ranges = self.ranges
        for taken in map(ord, characters):
            ranges = tuple(part for low, high in ranges for part in _without(low, high, taken))
        return Chars(ranges)

    def __contains__(self, character: str) -> bool:
        return any(low <= ord(character) <= high for low, high in self.ranges)


def _without(low: int, high: int, taken: int) -> tuple[tuple[int, int], ...]:
    if not low <= taken <= high:
        return ((low, high),)
    return tuple((start, end) for start, end in ((low, taken - 1), (taken + 1, high)) if start <= end)


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Seq:
    """One part after another."""

    parts: "tuple[Expr, ...]"


@dataclass(frozen=True, slots=True)
class Alt:
    """One of several."""

    choices: "tuple[Expr, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    """One part a number of times.

    Args:
        part: What repeats.
        times: `?` at most once, `*` any number, `+` at least once, or the least and the greatest number.
    """

    part: "Expr"
    times: "Times"


@dataclass(frozen=True, slots=True)
class Ref:
    """The rule of this name; rules never refer to themselves, directly or not."""

    name: str


Times: TypeAlias = Either["?", "*", "+"] | tuple[int, int]
Expr: TypeAlias = Chars | Literal | Seq | Alt | Repeat | Ref
Rules: TypeAlias = dict[str, Expr]


def span(*pairs: str) -> Chars:
    """Return the set of some ranges and characters, such as `span("az", "_")`."""
    return Chars(tuple(sorted((ord(pair[0]), ord(pair[-1])) for pair in pairs)))


def any_of(words: Iterable[str]) -> Alt:
    """Return the choice between whole words."""
    return Alt(tuple(Literal(word) for word in words))


def seq(*parts: Expr) -> Seq:
    """Return one part after another."""
    return Seq(parts)


def spell_rules(rules: Rules, dialect: Dialect) -> str:
    """Spell a set of rules, one a line; the first one is the whole.

    In Lark, a rule made of nothing but references is a rule of the parser; every other one is a terminal. So a
    greedy lexer never has to give back what it read: it sees one line of free text at a time.
    """
    whole = next(iter(rules))
    parsed = {name for name, expr in rules.items() if dialect == "lark" and _only_references(expr)}
    names = {name: _named(name, dialect, name in parsed) for name in rules}
    names[whole] = "root" if dialect == "gbnf" else "start"
    sign = " ::=" if dialect == "gbnf" else ":"
    return "".join(f"{names[name]}{sign} {_spell(expr, dialect, names)}\n" for name, expr in rules.items())


def _only_references(expr: Expr) -> bool:
    parts = expr.parts if isinstance(expr, Seq) else (expr,)
    return all(isinstance(part.part if isinstance(part, Repeat) else part, Ref) for part in parts)


def _named(name: str, dialect: Dialect, parsed: bool) -> str:
    if dialect == "gbnf":
        return name
    return name.replace("-", "_") if parsed else name.replace("-", "_").upper()


def _spell(expr: Expr, dialect: Dialect, names: dict[str, str]) -> str:
    match expr:
        case Chars():
            inside = "".join(_range(low, high, dialect) for low, high in expr.ranges)
            return f"[{inside}]" if dialect == "gbnf" else f"/[{inside}]/"
        case Literal():
            return '"' + "".join(_quoted(character) for character in expr.text) + '"'
        case Seq():
            return " ".join(_grouped(part, dialect, names, Alt) for part in expr.parts)
        case Alt():
            return " | ".join(_spell(choice, dialect, names) for choice in expr.choices)
        case Repeat():
            return _grouped(expr.part, dialect, names, (Alt, Seq, Literal, Repeat)) + _times(expr, dialect)
        case Ref():
            return names[expr.name]
        case _:
            assert_never(expr)


def _times(expr: Repeat, dialect: Dialect) -> str:
    if isinstance(expr.times, str):
        return expr.times
    least, most = expr.times
    return f"{{{least},{most}}}" if dialect == "gbnf" else f"~{least}..{most}"


def _grouped(expr: Expr, dialect: Dialect, names: dict[str, str], needing: type[Expr] | tuple[type[Expr], ...]) -> str:
    text = _spell(expr, dialect, names)
    return f"({text})" if isinstance(expr, needing) else text


def _quoted(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}.get(character, character)


def _range(low: int, high: int, dialect: Dialect) -> str:
    return "-".join(_escaped(end, dialect) for end in ((low, high) if high > low else (low,)))


def _escaped(code_point: int, dialect: Dialect) -> str:
    character = chr(code_point)
    if character.isascii() and character.isalnum():
        return character
    # Lark turns hexadecimal escapes into the characters before it compiles a class; GBNF knows no other escape.
    if character in CLASS_SYNTAX and dialect == "lark":
        return "\\" + character
    if code_point < 0x100:
        return f"\\x{code_point:02X}"
    return f"\\u{code_point:04X}" if code_point < 0x10000 else f"\\U{code_point:08X}"


def longest_bytes(rules: Rules) -> float:
    """Return the length in UTF-8 of the longest word of a set of rules; infinite when there is no longest one."""
    known: dict[str, float] = {}

    def of(expr: Expr) -> float:
        match expr:
            case Chars():
                return max(len(chr(high).encode()) for _, high in expr.ranges)
            case Literal():
                return len(expr.text.encode())
            case Seq():
                return sum(map(of, expr.parts))
            case Alt():
                return max(map(of, expr.choices))
            case Repeat():
                most = {"?": 1}.get(expr.times, inf) if isinstance(expr.times, str) else expr.times[1]
                return most * of(expr.part)
            case Ref():
                if expr.name not in known:
                    known[expr.name] = of(rules[expr.name])
                return known[expr.name]
            case _:
                assert_never(expr)

    return of(next(iter(rules.values())))
