"""The contract in the notations that models and tools are held to: a Lark grammar and a JSON schema.

Both describe the canonical spelling of an envelope, made from the protocol tables: a part of what the validator
accepts. They have no lookaround, so that every engine can run them; that is why no line of OUTPUT may begin with the
first five letters of a label there, or end within them. What holds between fields stays with the rules.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from interlock.envelope.case import Case
from interlock.envelope.characters import REFUSED
from interlock.envelope.protocol import ECHO, EVIDENCE_KEYS, LABELS, STATUSES

Form: TypeAlias = Literal["lark", "json-schema"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)

MAX_ACTIONS: Final = 12
"""How many NEXT_ACTIONS the grammar can count; the validator itself has no such limit."""
END: Final = r"(?![\s\S])"
"""The end of a pattern in the schema. In Python, `$` is before a last newline too; here it agrees with ECMA 262."""
_UNSEEN: Final = r" \t\u200c\u200d"
"""What may not begin a text, so that it begins with something to see."""
_HEAD: Final = 5
"""So many letters of a label may not begin a line of OUTPUT."""
_ANY: Final = Case()
_NO_ASCII: Final = "\\x00-\\x1f\\x7f-\U0010ffff"


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


def export(form: Form, case: Case = _ANY, *, task: str | None = None, bounds: Bounds | None = None) -> str:
    """Return the contract in one notation.

    Args:
        form: Which notation.
        case: Its protocol names the roles that ASSIGNED_AGENT may hold. Its agent holds ASSIGNED_AGENT to this role,
            and STATUS to what it may set or echo; its task id and gates hold these fields, and GATES_PASSED to some.
        task: Hold TASK to this line.
        bounds: Hold lists, lines and texts to these sizes, so that every answer ends.

    Raises:
        KeyError: The protocol has no such role.
    """
    values = _Values(case, task, bounds)
    return _lark(values) if form == "lark" else json.dumps(_schema(values), indent=2) + "\n"


class _Values:
    """What each field may hold: fixed values as words, else a regular expression."""

    def __init__(self, case: Case, task: str | None, bounds: Bounds | None) -> None:
        protocol = case.protocol
        role = None if case.agent is None else protocol.roles[case.agent]
        self.statuses = [
            status
            for status in STATUSES
            if role is None or protocol.may_set(role, status) or ECHO.get(role.kind) == status
        ]
        self.agents = list(protocol.roles) if role is None else [role.name]
        self.task_id, self.task, self.gates, self.bounds = case.task_id, task, tuple(case.gates or ()), bounds
        part = f"{{1,{bounds.part_chars}}}" if bounds else "+"
        parts = f"{{1,{bounds.parts}}}" if bounds else "+"
        rest = f"{{0,{bounds.chars - 1}}}" if bounds else "*"
        more = f"{{0,{bounds.part_chars - 1}}}" if bounds else "*"
        any_char = _other_than()
        self.id = f"[A-Z][A-Z0-9]{more}(-[A-Z0-9]{part}){parts}"
        self.gate = f"GATE(-[A-Z0-9]{part}){parts}"
        self.text = f"{_other_than(_UNSEEN, '[]')}{any_char}{rest}"
        self.reason = f"{self.gate}: {self.text}"
        remark = f"{_other_than('()')}{_other_than('()')}{rest}"
        self.input = f"[A-Za-z0-9][A-Za-z0-9._/-]{rest}( [(]{remark}[)])?"
        self.path = f"artifacts(/[A-Za-z0-9]([A-Za-z0-9_-]|[.][A-Za-z0-9]){more}){parts}"
        self.unlabelled = f"({_not_labelled('')}){any_char}{rest}"
        self.indented = f"[ \\t]{any_char}{rest}"


def _other_than(*refused: str) -> str:
    """Return the class of the characters of free text but some."""
    # Some engines read an unescaped bracket within a class as a nested class.
    inside = "".join(part.replace("[", r"\[").replace("]", r"\]") for part in refused)
    return f"[^{inside}\\r\\n{REFUSED}]"


def _not_labelled(start: str) -> str:
    """Return the pattern of the first letters, behind a start, of a line of OUTPUT that does not begin with a label.

    It is a tree of the letters of the labels, left at the first one that does not continue any of them: so no engine
    needs lookahead. A few letters will do; the branches for whole labels would be long.
    """
    heads = {label[:_HEAD] for label in LABELS}
    letters = sorted({head[len(start)] for head in heads if head.startswith(start) and len(head) > len(start)})
    ways = [_other_than(_UNSEEN, "".join(letters)) if not start else f"[^{''.join(letters)}{_NO_ASCII}]"]
    ways += [f"{letter}({_not_labelled(start + letter)})" for letter in letters if start + letter not in heads]
    return "|".join(ways)


def _lark(values: _Values) -> str:
    """Return the grammar: LALR with the contextual lexer, one terminal for a field.

    An engine of llguidance, such as that of llama.cpp's server, takes it behind a line `%llguidance {}`.
    """
    bounds = values.bounds
    items = f"~1..{bounds.items}" if bounds else "+"
    lines = "" if bounds and bounds.lines == 1 else f" LINE~0..{bounds.lines - 1}" if bounds else " LINE*"
    steps = min(bounds.items, MAX_ACTIONS) if bounds else MAX_ACTIONS

    def bullets(item: str, indent: str = "", times: str = items) -> str:
        return f'"\\n" ("{indent}- " {item} "\\n"){times}'

    def listed(item: str, indent: str = "", times: str = items, nothing: str = "[]") -> str:
        return f'(" {nothing}\\n" | {bullets(item, indent, times)})'

    # GATES_REQUIRED is never empty; GATES_PASSED may be `[]`.
    required, passed = bullets("GATE"), listed("GATE")
    if values.gates:
        required = '"\\n" ' + " ".join(f'"- {gate}\\n"' for gate in values.gates)
        passed = listed(f"({_words(values.gates)})", times=f"~1..{len(values.gates)}")
    numbered = ""
    # LALR cannot count, so each step holds the ones behind it: `1. … (2. … (3. …)?)?`.
    for number in range(steps, 0, -1):
        numbered = f'"{number}. " TEXT "\\n"' + (f" ({numbered})?" if numbered else "")
    fields = {
        "STATUS": f'" " ({_words(values.statuses)}) "\\n"',
        "TASK_ID": f'" " {_words([values.task_id]) if values.task_id else "ID"} "\\n"',
        "TASK": f'" " {_words([values.task]) if values.task else "TEXT"} "\\n"',
        "ASSIGNED_AGENT": f'" " ({_words(values.agents)}) "\\n"',
        "REPORTS_TO": '" orchestrator\\n"',
        "INPUTS_USED": listed("INPUT"),
        "GATES_REQUIRED": required,
        "GATES_PASSED": passed,
        "EVIDENCE": '"\\n" ' + " ".join(f'"  {key}:" {listed("PATH", "    ")}' for key in EVIDENCE_KEYS),
        "FAIL_REASONS": listed("REASON", nothing="NONE"),
        "NEXT_ACTIONS": f'(" NONE\\n" | "\\n" {numbered})',
    }
    names = " ".join("output" if label == "OUTPUT" else label for label in LABELS)
    rows = [f"start: {names}", f"output: OUTPUT FIRST_LINE{lines}", 'OUTPUT: "OUTPUT:\\n"']
    rows += [f'{label}: "{label}:" {fields[label]}' for label in LABELS if label in fields]
    rows += ['FIRST_LINE: UNLABELLED "\\n"', 'LINE: (UNLABELLED | INDENTED)? "\\n"']
    patterns = {
        "UNLABELLED": values.unlabelled,
        "INDENTED": values.indented,
        "ID": values.id,
        "GATE": values.gate,
        "REASON": values.reason,
        "INPUT": values.input,
        "PATH": values.path,
        "TEXT": values.text,
    }
    rows += [f"{name}: /{pattern.replace('/', chr(92) + '/')}/" for name, pattern in patterns.items()]
    title = "// The canonical envelope: twelve fields in a fixed order. Generated from the protocol tables."
    return "\n".join((title, "", *rows, ""))


def _words(words: Sequence[str]) -> str:
    return " | ".join(json.dumps(word, ensure_ascii=False) for word in words)


def _schema(values: _Values) -> dict[str, Any]:
    """Return the schema (draft 2020-12) of the object that `--format json` shows as `envelope`.

    What holds between two fields is in it where JSON Schema can say it: APPROVED has no fail reasons, BLOCKED has some,
    and only APPROVED may have no next actions.
    """
    bounds = values.bounds

    def listed(items: dict[str, Any], most: int | None = bounds.items if bounds else None) -> dict[str, Any]:
        return {"type": "array", "items": items, "uniqueItems": True} | ({} if most is None else {"maxItems": most})

    def matching(pattern: str) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^({pattern}){END}"}

    known = {"enum": list(values.gates)} if values.gates else matching(values.gate)
    lines = f"{{0,{bounds.lines - 1}}}" if bounds else "*"
    evidence = {str(key): listed(matching(values.path)) for key in EVIDENCE_KEYS}
    most = min(bounds.items, MAX_ACTIONS) if bounds else None
    fields: dict[str, dict[str, Any]] = {
        "STATUS": {"enum": values.statuses},
        "TASK_ID": {"const": values.task_id} if values.task_id else matching(values.id),
        "TASK": {"const": values.task} if values.task else matching(values.text),
        "ASSIGNED_AGENT": {"enum": values.agents},
        "REPORTS_TO": {"const": "orchestrator"},
        "INPUTS_USED": listed(matching(values.input)),
        "GATES_REQUIRED": {"const": list(values.gates)} if values.gates else listed(known) | {"minItems": 1},
        "GATES_PASSED": listed(known, len(values.gates) or (bounds.items if bounds else None)),
        "EVIDENCE": _object(evidence),
        "FAIL_REASONS": listed(matching(values.reason)),
        "OUTPUT": matching(f"({values.unlabelled})(\\n({values.unlabelled}|{values.indented})?){lines}"),
        # A step may be repeated; what is cited may not.
        "NEXT_ACTIONS": {**listed(matching(values.text), most), "uniqueItems": False},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Interlock envelope",
        "description": "The twelve fields of a response, in the order of the text.",
        **_object({label.lower(): fields[label] for label in LABELS}),
        "if": {"properties": {"status": {"const": "APPROVED"}}},
        "then": {"properties": {"fail_reasons": {"maxItems": 0}}},
        "else": {
            "properties": {"next_actions": {"minItems": 1}},
            "if": {"properties": {"status": {"const": "BLOCKED"}}},
            "then": {"properties": {"fail_reasons": {"minItems": 1}}},
        },
    }


def _object(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
