"""The language that a model may be held to: the canonical spelling of an envelope, made from the tables.

It is a part of what the validator accepts: one spelling of each list, one line for each item, no label at the
beginning of an OUTPUT line. What a regular language cannot say (subset, ownership, evidence) stays with the rules.
"""

from dataclasses import dataclass
from typing import Final

from interlock.envelope.export.notation import (
    Alt,
    Chars,
    Expr,
    Literal,
    Ref,
    Repeat,
    Rules,
    Times,
    any_of,
    seq,
    span,
    spell_rules,
)
from interlock.envelope.protocol import DEFAULT_PROTOCOL, ECHO, EVIDENCE_KEYS, LABELS, STATUSES, Protocol

MAX_ACTIONS: Final = 12
"""How many NEXT_ACTIONS the exported grammars can count; the validator itself has no such limit."""

CUT: Final = 4
"""How many letters of a label one rule reads."""

UPPER: Final = span("AZ")
UPPER_OR_DIGIT: Final = span("AZ", "09")
WORD: Final = span("az", "AZ", "09")
BLANK: Final = span(" ", "\t")
ASCII: Final = span("\t", " ~")
WIDE: Final = Chars(
    (
        (0xA0, 0x115E),
        (0x1161, 0x180D),
        (0x180F, 0x200A),
        (0x200C, 0x200D),
        (0x2010, 0x2027),
        (0x202F, 0x205F),
        (0x2070, 0x3163),
        (0x3165, 0xD7FF),
        (0xE000, 0xFEFE),
        (0xFF00, 0xFF9F),
        (0xFFA1, 0xFFF8),
        (0xFFFC, 0xFFFD),
        (0x10000, 0xDFFFF),
        (0xE0080, 0x10FFFF),
    )
)
TEXT: Final = Chars((*ASCII.ranges, *WIDE.ranges))
"""What free text is made of: no control, line break, bidirectional control or invisible filler. A test holds it against
the characters that the validator refuses."""

INVISIBLE: Final = " \t\u200c\u200d"
"""What may not begin a text, so that it begins with something to see."""


@dataclass(frozen=True, slots=True)
class Known:
    """What of an envelope is known before it is written, and held to; what is not given is free.

    Args:
        agent: ASSIGNED_AGENT, a role of the protocol (else `KeyError`); holds STATUS to what it may set or echo.
        task_id: TASK_ID.
        task: TASK, one line that an envelope may hold.
        gates: GATES_REQUIRED, in order.
    """

    agent: str | None = None
    task_id: str | None = None
    task: str | None = None
    gates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a model may write, so that one that does not find an end is given one.

    Args:
        chars: Characters of a line of free text, of an input, and of a remark behind one.
        lines: Lines of OUTPUT.
        items: Items of a list; NEXT_ACTIONS never count beyond `MAX_ACTIONS`.
        parts: Parts of an id, and folders and file of a path.
        part_chars: Characters of each of them.
    """

    chars: int
    lines: int
    items: int
    parts: int = 8
    part_chars: int = 48


def envelope_language(
    protocol: Protocol = DEFAULT_PROTOCOL, known: Known = Known(), bounds: Bounds | None = None
) -> Rules:
    """Return the rules of the canonical envelope; the first one is the whole.

    Args:
        protocol: Names the roles that ASSIGNED_AGENT may hold.
        known: What is known. GATES_PASSED then holds none but the known gates.
        bounds: How much may be written; None is without bounds.
    """
    agents = tuple(protocol.roles) if known.agent is None else (protocol.roles[known.agent].name,)
    any_chars = (0, bounds.chars - 1) if bounds else "*"
    items = (1, bounds.items) if bounds else "+"
    lines = (0, bounds.lines - 1) if bounds else "*"
    parts = (1, bounds.parts) if bounds else "+"
    part = (1, bounds.part_chars) if bounds else "+"
    rest_of_part = (0, bounds.part_chars - 1) if bounds else "*"
    actions = min(bounds.items, MAX_ACTIONS) if bounds else MAX_ACTIONS

    def bullets(item: Expr, indent: str = "", times: Times = items) -> Expr:
        return seq(Literal("\n"), Repeat(seq(Literal(f"{indent}- "), item, Literal("\n")), times))

    def listed(head: str, item: Expr, indent: str = "", times: Times = items) -> Expr:
        return seq(Literal(head), Alt((Literal(" []\n"), bullets(item, indent, times))))

    gates = known.gates
    passed = listed("GATES_PASSED:", any_of(gates) if gates else Ref("gate"), times=(1, len(gates)) if gates else items)
    required = seq(Literal("\n"), *(Literal(f"- {gate}\n") for gate in gates)) if gates else bullets(Ref("gate"))
    fields: dict[str, Expr] = {
        "STATUS": _line("STATUS", any_of(owned_or_echoed(protocol, known.agent))),
        "TASK_ID": _line("TASK_ID", Literal(known.task_id) if known.task_id else Ref("id")),
        "TASK": _line("TASK", Literal(known.task) if known.task else Ref("text")),
        "ASSIGNED_AGENT": _line("ASSIGNED_AGENT", any_of(agents)),
        "REPORTS_TO": _line("REPORTS_TO", Literal("orchestrator")),
        "INPUTS_USED": listed("INPUTS_USED:", Ref("input")),
        "GATES_REQUIRED": seq(Literal("GATES_REQUIRED:"), required),
        "GATES_PASSED": passed,
        "EVIDENCE": seq(Literal("EVIDENCE:\n"), *(listed(f"  {key}:", Ref("path"), "    ") for key in EVIDENCE_KEYS)),
        "FAIL_REASONS": seq(Literal("FAIL_REASONS:"), Alt((Literal(" NONE\n"), bullets(Ref("reason"))))),
        "OUTPUT": seq(Ref("output-head"), Ref("first-line"), Repeat(Ref("line"), lines)),
        "NEXT_ACTIONS": seq(
            Literal("NEXT_ACTIONS:"), Alt((Literal(" NONE\n"), seq(Literal("\n"), _numbered(1, actions))))
        ),
    }
    return {
        "envelope": seq(*(Ref(_rule_name(label)) for label in LABELS)),
        **{_rule_name(label): fields[label] for label in LABELS},
        "output-head": Literal("OUTPUT:\n"),
        "first-line": seq(Ref("unlabelled"), Literal("\n")),
        "line": seq(Repeat(Alt((Ref("unlabelled"), seq(BLANK, Ref("rest")))), "?"), Literal("\n")),
        **_unlabelled((1, bounds.chars) if bounds else "+"),
        "id": seq(UPPER, Repeat(UPPER_OR_DIGIT, rest_of_part), Repeat(Ref("part"), parts)),
        "gate": seq(Literal("GATE"), Repeat(Ref("part"), parts)),
        "part": seq(Literal("-"), Repeat(UPPER_OR_DIGIT, part)),
        "reason": seq(Ref("gate"), Literal(": "), Ref("text")),
        "input": seq(WORD, Repeat(span("az", "AZ", "09", ".", "_", "-", "/"), any_chars), Repeat(Ref("remark"), "?")),
        "remark": seq(Literal(" ("), TEXT.minus("()"), Repeat(TEXT.minus("()"), any_chars), Literal(")")),
        "path": seq(Literal("artifacts"), Repeat(seq(Literal("/"), Ref("segment")), parts)),
        "segment": seq(WORD, Repeat(Alt((span("az", "AZ", "09", "_", "-"), seq(Literal("."), WORD))), rest_of_part)),
        "text": seq(TEXT.minus(INVISIBLE + "[]"), Ref("rest")),
        "rest": Repeat(TEXT, any_chars),
        "wide": WIDE,
    }


def _rule_name(label: str) -> str:
    return label.lower().replace("_", "-")


def owned_or_echoed(protocol: Protocol, agent: str | None) -> tuple[str, ...]:
    """Return the statuses that a role may write, in order; without a role, all of them."""
    if agent is None:
        return STATUSES
    role = protocol.roles[agent]
    return tuple(status for status in STATUSES if protocol.may_set(role, status) or ECHO.get(role.kind) == status)


def _line(label: str, value: Expr) -> Expr:
    return seq(Literal(f"{label}: "), value, Literal("\n"))


def _numbered(number: int, last: int) -> Expr:
    item = (Literal(f"{number}. "), Ref("text"), Literal("\n"))
    return seq(*item) if number == last else seq(*item, Repeat(_numbered(number + 1, last), "?"))


def _unlabelled(blanks: Times) -> Rules:
    """Return the rules of one line without its end; it begins with something to see, and not with a label and a colon.

    They are a tree of the letters of the labels, left at the first character that does not continue one: so no engine
    needs lookahead, and few ways are open at a time. Every few letters it is cut, for engines that read no deep
    nesting. At most `blanks` may follow a label before something else than a colon.
    """
    rules: Rules = {}

    def after(start: str) -> Expr:
        letters = "".join(sorted({label[len(start)] for label in LABELS if label.startswith(start) and label != start}))
        ways: list[Expr] = [seq(Literal(letter), Repeat(after(start + letter), "?")) for letter in letters]
        if not start:
            return Alt((seq(Alt((ASCII.minus(letters + INVISIBLE), WIDE.minus(INVISIBLE))), Ref("rest")), *ways))
        if start in LABELS:
            ways.append(seq(Repeat(BLANK, blanks), Repeat(_leaving(" \t:"), "?")))
        node = Alt((_leaving(letters + (" \t:" if start in LABELS else "")), *ways))
        if len(start) % CUT:
            return node
        name = "after-" + _rule_name(start).strip("-")
        rules[name] = node
        return Ref(name)

    return {"unlabelled": after(""), **rules}


def _leaving(refused: str) -> Expr:
    return seq(Alt((ASCII.minus(refused), Ref("wide"))), Ref("rest"))


TITLE: Final = "The canonical envelope: twelve fields in a fixed order. Generated from the protocol tables."


def to_grammar(form: str, protocol: Protocol, known: Known, bounds: Bounds | None) -> str:
    """Return the grammar (ours): `gbnf` as llama.cpp reads it, `lark`, or `llguidance`, which is Lark under a header.

    In Lark it is LALR with the contextual lexer: one terminal for a field, no lookaround.
    """
    rules = envelope_language(protocol, known, bounds)
    if form == "gbnf":
        return f"# {TITLE}\n\n{spell_rules(rules, 'gbnf')}"
    lark = f"// {TITLE}\n\n{spell_rules(rules, 'lark')}"
    return lark if form == "lark" else f"%llguidance {{}}\n\n{lark}"
