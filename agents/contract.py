"""The contract: what a role may say and how, written from the protocol tables for its prompt."""

from collections.abc import Iterable, Sequence
from typing import Final

from interlock.agents.ask import Ask
from interlock.envelope import render
from interlock.envelope.outcomes import OutcomeName, outcomes
from interlock.envelope.protocol import (
    ANYBODY,
    DEFAULT_PROTOCOL,
    ECHO,
    EVIDENCE_KEYS,
    LABELS,
    STATUS_MEANING,
    STATUS_OWNER,
    STATUSES,
    GateSpec,
    Protocol,
    Role,
    Status,
)
from interlock.envelope.template import example, template

_INTRODUCTION: Final = (
    "## The contract of your answer\n\nA program reads your answer. One that breaks a rule below is refused and sent "
    "back to you with the findings, and nothing moves."
)

_OBJECTION: Final = (
    "### A demand that cannot be met\n\nWhere a required gate cannot be met as the task stands, do not work around it: "
    "set STATUS to `BLOCKED`, with the line `- GATE-X: OBJECTION: reason` under FAIL_REASONS for that gate. A person "
    "decides; no round is spent. One objection for each gate and round."
)

_LAYOUT: Final = """\
- The whole answer is one envelope: no heading, no code fence, no word before `{first}:` or after the last item of \
{last}.
- It has these {count} labels, each once, at the start of a line, followed by a colon, in this order: {labels}.
- ASSIGNED_AGENT is `{role}`. REPORTS_TO is `orchestrator`. TASK_ID and GATES_REQUIRED are those of the assignment.
- A list is one `- item` line per item, or `[]` when it is empty. Gate ids stand alone, without remarks.
- INPUTS_USED names only what you read.
- EVIDENCE holds the keys {keys}, each once, in this order. Entries are existing files below `artifacts/`, \
written relative to the root.
- FAIL_REASONS is `NONE`, or one `- ` line per failure that begins with the id of a gate.
- OUTPUT is free text. Indent a line of it that begins with one of the labels. Cite files in EVIDENCE, not here.
- NEXT_ACTIONS is numbered `1.`, `2.`, … without gaps."""


def contract(role: str, protocol: Protocol, *, examples: bool = True, page: bool = True) -> str:
    """Return the contract of a role as Markdown: layout, statuses, gates, verdict and a whole answer for each outcome.

    These examples are filled in for a page alone, which the samples are about; others are shown with holes.
    """
    row = protocol.roles[role]
    keys = ", ".join(f"`{key}`" for key in EVIDENCE_KEYS)
    layout = _LAYOUT.format(
        first=LABELS[0], last=LABELS[-1], count=len(LABELS), labels=", ".join(LABELS), keys=keys, role=role
    )
    sections = [
        _INTRODUCTION,
        "### Layout\n\n" + layout,
        "### Statuses\n\n" + _list(_statuses(row, protocol)),
        "### Gates\n\n" + _list(_gates(row, protocol)),
    ]
    if row.kind == "build":
        sections.append(_OBJECTION)
    if row.kind in ECHO:
        sections.append("### Verdict\n\n" + _list(_verdict(row, ECHO[row.kind])))
    if examples:
        sections.append(_examples(row, protocol, filled=page))
    return "\n\n".join(sections)


def answer_form(ask: Ask) -> str:
    """Return the forms of one ask: an envelope with holes for the usual end of the turn, and one to block it.

    They cite what was collected for the role; a review role, which writes its own, has a hole in its reports folder.
    """
    protocol = ask.protocol or DEFAULT_PROTOCOL
    role = protocol.roles[ask.role]
    rows = outcomes(role)
    entries: dict[str, Sequence[str]] = {**ask.evidence}
    # Nothing was collected for a gate whose evidence is written; the role writes it before it answers.
    if not entries and role.certifies and protocol.gate(role.certifies).grade == "written":
        keys = protocol.gate(role.certifies).evidence or ("reports",)
        entries = dict.fromkeys(keys, (f"{ask.reports_dir}/<file>",))
    forms = [
        f"<form outcome='{row.name}'>\n"
        + template(
            role.name,
            protocol,
            outcome=row.name,
            task_id=ask.task_id,
            task=ask.task,
            gates=ask.required,
            evidence=entries or None,
        )
        + "</form>"
        for row in (rows[0], next(row for row in rows if row.status == "BLOCKED"))
    ]
    introduction = (
        "## Your answer\n\nTake the form that fits and replace each `<…>`; an empty list is `[]`. The lines "
        "that begin with `<form` and `</form` are not part of it."
    )
    return "\n\n".join([introduction, *forms])


def _examples(role: Role, protocol: Protocol, *, filled: bool) -> str:
    def answer(outcome: OutcomeName) -> str:
        if not filled:
            return template(role.name, protocol, outcome=outcome)
        return render(example(role.name, protocol, outcome=outcome))

    shown = [f"<example outcome='{row.name}'>\n{answer(row.name)}</example>" for row in outcomes(role)]
    introduction = "### Examples\n\nThe lines that begin with `<example` and `</example` are not part of the answer."
    return "\n\n".join([introduction, *shown])


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _statuses(role: Role, protocol: Protocol) -> list[str]:
    rows = [
        f"`{status}` is yours to set ({STATUS_MEANING[status]})."
        for status in STATUSES
        if protocol.may_set(role, status)
    ]
    echo = ECHO.get(role.kind)
    if echo is not None:
        rows.append(f"`{echo}` is yours to repeat while the task has that status; it moves nothing.")
    refused: list[Status] = [status for status in STATUSES if not protocol.may_set(role, status) and status != echo]
    rows += [f"`{status}` is refused from you; it belongs to {_owner(status, protocol)}." for status in refused]
    return rows


def _owner(status: Status, protocol: Protocol) -> str:
    owner = STATUS_OWNER[status]
    # The table of statuses names the shipped roster; another one has its own role that hands over.
    if owner == "frontend-implementer":
        return next((role.name for role in protocol.of_kind("build") if role.hands_over), owner)
    return f"the {owner}" if owner == "assigned build agent" else owner


def _gates(role: Role, protocol: Protocol) -> list[str]:
    rows: list[str] = []
    # The gates of others are not listed one by one, so that no role is tempted to certify them.
    for gate in protocol.gates.values():
        if gate.certifier == ANYBODY:
            rows.append(f"`{gate.id}` ({gate.title}): list it in GATES_PASSED; it needs no entry in EVIDENCE.")
        elif gate.id == role.certifies or protocol.may_certify(role, gate.id):
            rows.append(f"`{gate.id}` ({gate.title}): yours to certify. {_needs(gate)}")
    rows.append(
        "Any other gate is not yours. List it only when the assignment says that it is certified for the present tree, "
        "and cite its evidence."
    )
    rows.append("GATES_PASSED holds no gate that GATES_REQUIRED lacks, and none that FAIL_REASONS names.")
    return rows


def _needs(gate: GateSpec) -> str:
    made = "files that Interlock collected for this attempt" if gate.grade == "runner" else "files that you wrote"
    if gate.evidence:
        keys = " and ".join(f"`{key}`" for key in gate.evidence)
        return f"It needs entries under {keys}: {made}."
    return f"It needs at least one entry under any key: {made}."


def _verdict(role: Role, echo: Status) -> list[str]:
    gate = f"`{role.certifies}`" if role.certifies else "your gate"
    return [
        f"Pass: STATUS `{echo}`, {gate} in GATES_PASSED with its evidence, FAIL_REASONS `NONE`.",
        f"Fail: STATUS `BLOCKED`, and a FAIL_REASONS line for {gate} per failure.",
        "Every mixture of the two is refused.",
    ]
