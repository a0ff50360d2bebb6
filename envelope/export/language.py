"""The language that a model may be held to: the canonical spelling of an envelope, made from the tables.

It is a part of what the validator accepts: one spelling of each list, one line for each item, no label at the
beginning of an OUTPUT line. What a regular language cannot say (subset, ownership, evidence) stays with the rules.
"""

from dataclasses import dataclass
from typing import Final

from interlock.envelope.export.notation import Alt, Chars, Expr, Literal, Ref, Repeat, Rules, any_of, seq, span
from interlock.envelope.protocol import DEFAULT_PROTOCOL, ECHO, EVIDENCE_KEYS, LABELS, STATUSES, Protocol

MAX_ACTIONS: Final = 12
"""How many NEXT_ACTIONS the exported grammars can count; the validator itself has no such limit."""

UPPER: Final = span("AZ")
UPPER_OR_DIGIT: Final = span("AZ", "09")
WORD: Final = span("az", "AZ", "09")
PART: Final = seq(Literal("-"), Repeat(UPPER_OR_DIGIT, "+"))
BLANK: Final = span(" ", "\t")
TEXT: Final = Chars(
    (
        (0x09, 0x09),
        (0x20, 0x7E),
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
"""What free text is made of: no control, line break, bidirectional control or invisible filler. A test holds it against
the characters that the validator refuses."""

INVISIBLE: Final = " \t\u200c\u200d"
"""What may not begin a text, so that it begins with something to see."""


@dataclass(frozen=True, slots=True)
class Known:
    """What of an envelope is known before it is written, and held to; what is not given is free.

    Args:
        agent: ASSIGNED_AGENT; holds STATUS to what the role may set or echo.
        task_id: TASK_ID.
        task: TASK, one line that may stand in an envelope.
        gates: GATES_REQUIRED, in order.
    """

    agent: str | None = None
    task_id: str | None = None
    task: str | None = None
    gates: tuple[str, ...] = ()


def envelope_language(protocol: Protocol = DEFAULT_PROTOCOL, known: Known = Known()) -> Rules:
    """Return the rules of the canonical envelope; the first one is the whole.

    Args:
        protocol: Names the roles that ASSIGNED_AGENT may hold.
        known: What is known.

    Raises:
        KeyError: The protocol has no such role.
    """
    agents = tuple(protocol.roles) if known.agent is None else (protocol.roles[known.agent].name,)
    required = seq(*(Literal(f"- {gate}\n") for gate in known.gates))
    fields: dict[str, Expr] = {
        "STATUS": _line("STATUS", any_of(owned_or_echoed(protocol, known.agent))),
        "TASK_ID": _line("TASK_ID", Literal(known.task_id) if known.task_id else Ref("id")),
        "TASK": _line("TASK", Literal(known.task) if known.task else Ref("text")),
        "ASSIGNED_AGENT": _line("ASSIGNED_AGENT", any_of(agents)),
        "REPORTS_TO": _line("REPORTS_TO", Literal("orchestrator")),
        "INPUTS_USED": _list("INPUTS_USED:", Ref("input")),
        "GATES_REQUIRED": seq(
            Literal("GATES_REQUIRED:"), seq(Literal("\n"), required) if known.gates else _bullets(Ref("gate"))
        ),
        "GATES_PASSED": _list("GATES_PASSED:", Ref("gate")),
        "EVIDENCE": seq(Literal("EVIDENCE:\n"), *(_list(f"  {key}:", Ref("path"), "    ") for key in EVIDENCE_KEYS)),
        "FAIL_REASONS": seq(Literal("FAIL_REASONS:"), Alt((Literal(" NONE\n"), _bullets(Ref("reason"))))),
        "OUTPUT": seq(Ref("output-head"), Ref("first-line"), Repeat(Ref("line"), "*")),
        "NEXT_ACTIONS": seq(Literal("NEXT_ACTIONS:"), Alt((Literal(" NONE\n"), seq(Literal("\n"), _numbered(1))))),
    }
    return {
        "envelope": seq(*(Ref(_rule_name(label)) for label in LABELS)),
        **{_rule_name(label): fields[label] for label in LABELS},
        "output-head": Literal("OUTPUT:\n"),
        "first-line": seq(Ref("unlabelled"), Literal("\n")),
        "line": seq(Repeat(Alt((Ref("unlabelled"), seq(BLANK, Ref("rest")))), "?"), Literal("\n")),
        "unlabelled": _unlabelled(),
        "id": seq(UPPER, Repeat(UPPER_OR_DIGIT, "*"), Repeat(PART, "+")),
        "gate": seq(Literal("GATE"), Repeat(PART, "+")),
        "reason": seq(Ref("gate"), Literal(": "), Ref("text")),
        "input": seq(WORD, Repeat(span("az", "AZ", "09", ".", "_", "-", "/"), "*")),
        "path": seq(Literal("artifacts"), Repeat(seq(Literal("/"), Ref("segment")), "+")),
        "segment": seq(WORD, Repeat(Alt((span("az", "AZ", "09", "_", "-"), seq(Literal("."), WORD))), "*")),
        "text": seq(TEXT.minus(INVISIBLE + "[]"), Ref("rest")),
        "rest": Repeat(TEXT, "*"),
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


def _bullets(item: Expr, indent: str = "") -> Expr:
    return seq(Literal("\n"), Repeat(seq(Literal(f"{indent}- "), item, Literal("\n")), "+"))


def _list(head: str, item: Expr, indent: str = "") -> Expr:
    return seq(Literal(head), Alt((Literal(" []\n"), _bullets(item, indent))))


def _numbered(number: int) -> Expr:
    item = (Literal(f"{number}. "), Ref("text"), Literal("\n"))
    return seq(*item) if number == MAX_ACTIONS else seq(*item, Repeat(_numbered(number + 1), "?"))


def _unlabelled() -> Expr:
    """Return one line, without its end, that begins with something to see and not with a label and a colon.

    Each branch leaves a label at the first character that does not continue one, so no engine needs lookahead.
    """
    starts = dict.fromkeys(label[:length] for label in LABELS for length in range(len(label) + 1))
    branches: list[Expr] = []
    for start in starts:
        nexts = "".join({label[len(start)] for label in LABELS if label.startswith(start) and label != start})
        closing = " \t:" if start in LABELS else "" if start else INVISIBLE
        leave = seq(TEXT.minus(nexts + closing), Ref("rest"))
        branches.append(seq(Literal(start), Repeat(leave, "?")) if start else leave)
        if start in LABELS:
            branches.append(seq(Literal(start), Repeat(BLANK, "+"), Repeat(seq(TEXT.minus(closing), Ref("rest")), "?")))
    return Alt(tuple(branches))
