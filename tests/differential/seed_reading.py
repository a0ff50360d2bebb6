"""A second reading of the protocol, written from its source document alone, to be held against the validator.

It shares no code, no table and no word of a message with `interlock.envelope`. It knows the twelve labels, the lists
and the owners of a status, and answers with the clauses that a text breaks. Where the document shows a form and does
not describe it, the reading is this:

* A response is the twelve fields and nothing else: each label once, at the beginning of a line, in the order of §2.
* A list is `- item` lines, indented or not, or one line `[]` or `[a, b]`; a label with nothing under it is a list
  without items. An ordered list is `1.`, `2.` and so on.
* A gate id and a task id look like the examples: capital letters and digits, in parts joined by hyphens.
* `NONE` stands alone, also as a bullet.
"""

import re

LABELS = (
    "STATUS",
    "TASK_ID",
    "TASK",
    "ASSIGNED_AGENT",
    "REPORTS_TO",
    "INPUTS_USED",
    "GATES_REQUIRED",
    "GATES_PASSED",
    "EVIDENCE",
    "FAIL_REASONS",
    "OUTPUT",
    "NEXT_ACTIONS",
)
KEYS = ("screenshots", "a11y", "console", "reports")

# §3, the table of owners. BLOCKED is any agent's.
BUILDERS = ("web-design-lead", "frontend-implementer")
OWNERS = {
    "BLOCKED": ("orchestrator", *BUILDERS, "visual-qa", "a11y-auditor", "code-reviewer"),
    "IN_PROGRESS": BUILDERS,
    "READY_FOR_QA": ("frontend-implementer",),
    "QA_IN_PROGRESS": ("orchestrator",),
    "READY_FOR_REVIEW": ("orchestrator",),
    "APPROVED": ("orchestrator",),
}
AGENTS = OWNERS["BLOCKED"]

# §3 EVIDENCE: what must be cited for a gate; §6: who judges it.
CITED = {
    "GATE-VISUAL-QA": ("screenshots", "console"),
    "GATE-A11Y-BASELINE": ("a11y",),
    "GATE-CODE-REVIEW": ("reports",),
}
JUDGES = {"GATE-VISUAL-QA": "visual-qa", "GATE-A11Y-BASELINE": "a11y-auditor", "GATE-CODE-REVIEW": "code-reviewer"}
QA_GATES = ("GATE-VISUAL-QA", "GATE-A11Y-BASELINE")

GATE = re.compile(r"GATE(-[A-Z0-9]+)+")
NAMED_GATE = re.compile(r"(?<![A-Za-z0-9_-])GATE(-[A-Z0-9]+)+(?![A-Za-z0-9_-])")
TASK_ID = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+")
LABEL = re.compile(rf"({'|'.join(sorted(LABELS, key=len, reverse=True))}):(.*)")
# Characters that some programs end a line at and others do not, and those that control a terminal.
UNREADABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")

Fields = dict[str, list[str]]


class UnreadableError(Exception):
    """The text has no twelve fields; its message is the clause."""


def broken_clauses(text: str) -> set[str]:
    """Return the clauses that a response breaks when nothing but its text is known; empty when it conforms."""
    try:
        fields = _fields(text)
    except UnreadableError as broken:
        return {str(broken)}
    found = set[str]()

    def one(label: str) -> str:
        lines = [line.strip(" \t") for line in fields[label] if line.strip(" \t")]
        if len(lines) != 1 or not fields[label][0].strip(" \t"):
            found.add(f"3 {label} is one line")
        return lines[0] if lines else ""

    def items(label: str, lines: list[str] | None = None) -> list[str]:
        listed = _items(fields[label] if lines is None else lines)
        if listed is None:
            found.add(f"3 {label} is a list")
        return listed or []

    status, agent = one("STATUS"), one("ASSIGNED_AGENT")
    if not TASK_ID.fullmatch(one("TASK_ID")):
        found.add("3 TASK_ID is an identifier")
    one("TASK")
    if one("REPORTS_TO") != "orchestrator":
        found.add("3 REPORTS_TO is orchestrator")
    if status not in OWNERS:
        found.add("3 STATUS is one of six")
    if agent not in AGENTS:
        found.add("3 ASSIGNED_AGENT is an agent")
    elif agent not in OWNERS.get(status, AGENTS):
        found.add("3 who can set a status")

    items("INPUTS_USED")
    required, passed = items("GATES_REQUIRED"), items("GATES_PASSED")
    if not required:
        found.add("4 GATES_REQUIRED is never omitted")
    if not all(GATE.fullmatch(gate) for gate in required + passed):
        found.add("3 a gate has an id")
    if not set(passed) <= set(required):
        found.add("3 GATES_PASSED is a subset")
    if status == "APPROVED" and set(passed) != set(required):
        found.add("4 APPROVED needs all gates")
    if status == "READY_FOR_REVIEW" and not {*QA_GATES} & set(required) <= set(passed):
        found.add("3 READY_FOR_REVIEW comes after QA pass")

    evidence = _evidence(fields["EVIDENCE"])
    if evidence is None:
        found.add("3 EVIDENCE has four keys")
    else:
        for gate in passed:
            if not all(evidence[key] for key in CITED.get(gate, ())):
                found.add("3 evidence for a gate")
            if gate != "GATE-MSG-STRICT" and gate not in CITED and not any(evidence.values()):
                found.add("3 evidence for a gate")
        if not all(_is_artifact(path) for listed in evidence.values() for path in listed):
            found.add("3 evidence is a relative path under artifacts")
    if agent in AGENTS and agent != "orchestrator" and any(JUDGES.get(gate, agent) != agent for gate in passed):
        found.add("4 nobody approves for the judge")

    reasons = _reasons(fields["FAIL_REASONS"])
    if reasons is None:
        found.add("3 FAIL_REASONS is NONE or bullets")
    else:
        named = [{match[0] for match in NAMED_GATE.finditer(reason)} for reason in reasons]
        if not all(named):
            found.add("3 each failure names a gate")
        if set(passed).intersection(*[set[str]().union(*named)]):
            found.add("3 a failed gate is not passed")
        if status == "BLOCKED" and not reasons:
            found.add("3 BLOCKED has reasons")
        if status in ("READY_FOR_REVIEW", "APPROVED") and reasons:
            found.add("6 a failure goes back to BLOCKED")

    if not any(line.strip() for line in fields["OUTPUT"]):
        found.add("3 OUTPUT is the deliverable")
    if not _is_ordered(fields["NEXT_ACTIONS"], may_be_none=status == "APPROVED"):
        found.add("3 NEXT_ACTIONS is an ordered list")
    return found


def _fields(text: str) -> Fields:
    """Cut a response at its labels; each field is what stands behind the label, then the lines below it.

    Raises:
        UnreadableError: A character is none of a text, or the labels are not the twelve, each once and in order.
    """
    text = text.replace("\r\n", "\n")
    if UNREADABLE.search(text):
        raise UnreadableError("2 a text that has one reading")
    found = list[tuple[str, list[str]]]()
    for line in text.split("\n"):
        if label := LABEL.fullmatch(line):
            found.append((label[1], [label[2]]))
        elif found:
            found[-1][1].append(line)
        else:
            raise UnreadableError("2 nothing stands before STATUS")
    if tuple(label for label, _ in found) != LABELS:
        raise UnreadableError("2 twelve fields in order")
    return dict(found)


def _items(lines: list[str]) -> list[str] | None:
    """Read a list, or return None."""
    first, *below = (line.strip(" \t") for line in lines)
    below = [line for line in below if line]
    if inline := re.fullmatch(r"\[(.*)\]", first):
        listed = [item.strip(" \t") for item in inline[1].split(",")] if inline[1].strip(" \t") else []
        return None if below or not all(listed) else listed
    if first:
        return None
    bullets = [re.fullmatch(r"-[ \t]+(.*\S.*)", line) for line in below]
    return [bullet[1] for bullet in bullets if bullet] if all(bullets) else None


def _evidence(lines: list[str]) -> dict[str, list[str]] | None:
    """Read the four keys, each with its list, or return None."""
    first, *below = lines
    if first.strip(" \t"):
        return None
    parts = list[tuple[str, list[str]]]()
    for line in below:
        if key := re.fullmatch(rf"[ \t]*({'|'.join(KEYS)}):(.*)", line):
            parts.append((key[1], [key[2]]))
        elif parts:
            parts[-1][1].append(line)
        elif line.strip(" \t"):
            return None
    if tuple(key for key, _ in parts) != KEYS:
        return None
    read = {key: _items(listed) for key, listed in parts}
    return {key: listed for key, listed in read.items() if listed is not None} if None not in read.values() else None


def _reasons(lines: list[str]) -> list[str] | None:
    """Read the failures: none for `NONE`, else the bullets, or None for anything else."""
    if _is_none(lines):
        return []
    listed = _items(lines)
    return None if not listed or "NONE" in listed or lines[0].strip(" \t") else listed


def _is_none(lines: list[str]) -> bool:
    """Return whether a field is `NONE` on its line, or that as the one bullet below."""
    first, *below = (line.strip(" \t") for line in lines)
    return [first, *(line for line in below if line)] in (["NONE"], ["", "NONE"], ["", "- NONE"])


def _is_ordered(lines: list[str], *, may_be_none: bool) -> bool:
    if may_be_none and _is_none(lines):
        return True
    written = [line.strip(" \t") for line in lines if line.strip(" \t")]
    numbered = [re.fullmatch(r"([1-9][0-9]*)\.[ \t]+.*\S.*", line) for line in written]
    if lines[0].strip(" \t") or not written or not all(numbered):
        return False
    return [int(match[1]) for match in numbered if match] == list(range(1, len(numbered) + 1))


def _is_artifact(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 1 and parts[0] == "artifacts" and "\\" not in path and not {"", ".", ".."} & set(parts)
