"""The assignment: what one role gets for one ask, and after a refusal. Bounded in size."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

from interlock.agents.ask import Ask
from interlock.agents.changes import TITLE, ChangedFile, FailedGate, changed_files, failed_gates
from interlock.agents.contract import answer_form, contract
from interlock.agents.quoting import bounded, bullets, data_block, listing, visible
from interlock.core.finding import Finding
from interlock.envelope.protocol import ANYBODY, DEFAULT_PROTOCOL, STATUS_MEANING, EvidenceKey, Protocol, Role, Status

KIB: Final = 1024
MAX_QUOTED_BYTES: Final = 3 * KIB // 2
"""How much one section of an assignment quotes, changes and failed gates apart: all of them together take 40 KiB."""
MAX_REASK_BYTES: Final = 16 * KIB
"""How much of the findings a re-ask repeats: more than the validator ever says about one answer."""

# So many digits of a digest tell the files of one task apart.
_DIGITS: Final = 16
_NONE: Final[Mapping[str, str]] = {}
_PUT_BACK: Final = (
    "Tests, settings and whatever else is no product keep the content that they had when the run began. So your change "
    "of these files was undone at the hand-over. Leave them as they are. Do the work in the product, and write new "
    "tests into new files."
)


def assignment(
    ask: Ask,
    *,
    attempts: int,
    scope: Sequence[str] = (),
    page: str | None = None,
    digests: Mapping[str, str] = _NONE,
    collected_findings: Sequence[Finding] = (),
    fail_reasons: Sequence[str] = (),
    failed: Sequence[FailedGate] = (),
    put_back: Sequence[str] = (),
    changes: Sequence[ChangedFile] | None = None,
    certified: Collection[str] = (),
    gate_notes: Mapping[str, str] = _NONE,
    outputs: Mapping[str, str] = _NONE,
    comments: Sequence[str] = (),
    note: str = "",
) -> str:
    """Return the assignment of one ask, which holds the contract of the answer; the role's own prompt is not in it.

    Args:
        ask: The ask, still without its prompt.
        attempts: How many rounds the budget allows.
        scope: Patterns of the files that may be edited.
        page: The page under test; without one the role is given texts about software and its gates.
        digests: SHA-256 of the collected files in hexadecimal digits, by path; their first digits are named.
        collected_findings: What the collectors found.
        fail_reasons: Why the round before failed, one line each.
        failed: The gates that Interlock measured to fail in the round before, with tests and logs.
        put_back: The files whose change was undone at the hand-over of the round before.
        changes: The files that changed since the run began; None when that is not shown or not known.
        certified: Gates that hold for the present tree.
        gate_notes: How a gate is judged, one line, by its id.
        outputs: What other roles reported in this round, by role; the last two are quoted.
        comments: What people wrote about lines of the work, one line each.
        note: Why the run was begun anew: what its work conflicts with, or what was said of it.
    """
    protocol = ask.protocol or DEFAULT_PROTOCOL
    role = protocol.roles[ask.role]
    # In the place of a digest stands why the files cannot be read.
    is_read = ask.tree.startswith("sha256:")
    rows = [
        ("Task", bounded(visible(ask.task), MAX_QUOTED_BYTES)),
        ("You are", role.name),
        ("Status now", f"{ask.status}: {STATUS_MEANING[cast('Status', ask.status)]}"),
        ("Attempt", f"{ask.attempt} of {attempts}"),
        ("Tree", ask.tree if is_read else "the files in scope cannot be read"),
        ("Your reports folder", ask.reports_dir),
        *([] if page is None else [("Page", bounded(visible(page), MAX_QUOTED_BYTES))]),
    ]
    sections = [
        f"# Assignment {ask.task_id}\n\n" + "\n".join(f"- {name}: {value}" for name, value in rows),
        f"## What to do now\n\n{_order(role, protocol, rework=ask.attempt > 1, page=page is not None)}",
        f"## Gates of the task\n\n{_gates(protocol, role, ask.required, certified, gate_notes)}",
        f"## Inputs\n\n{bullets(ask.inputs, MAX_QUOTED_BYTES)}",
        f"## Scope\n\n{bullets(scope, MAX_QUOTED_BYTES)}",
    ]
    if role.kind == "build" and ask.commands:
        listed = bullets([f"{name}: {shlex.join(argv)}" for name, argv in ask.commands.items()], MAX_QUOTED_BYTES)
        how = "In the root, each by its name where a tool takes names, else written exactly so:"
        sections.append(f"## Commands you may run\n\n{how}\n\n{listed}")
    if not is_read:
        sections.append(f"## Why the files cannot be read\n\n{data_block('reading them', ask.tree, MAX_QUOTED_BYTES)}")
    if note:
        quoted = data_block("the work before, and what came of it", note, 4 * MAX_QUOTED_BYTES)
        sections.append(f"## Why the task is begun anew\n\nDeal with it, or say in OUTPUT why not.\n\n{quoted}")
    sections += _work(fail_reasons, failed, put_back, changes, comments)
    sections += _quotations(ask.evidence, digests, collected_findings, outputs, page=page is not None)
    # Our own rules are read last, behind everything that others wrote.
    return "\n\n".join([*sections, contract(role.name, protocol, examples=False), answer_form(ask)])


def reask(prompt: str, findings: str, refused: str) -> str:
    """Return the prompt for the ask after a refusal: the assignment, the findings, and the refused answer as data.

    It never grows with the number of refusals: `prompt` is the assignment itself, not the last re-ask.
    """
    said = f"# Your last answer was refused\n\n{bounded(findings.strip(), MAX_REASK_BYTES)}"
    quoted = data_block("your last answer, with line numbers", refused, MAX_REASK_BYTES // 2, numbered=True)
    return "\n\n".join([prompt, said, quoted])


def _work(
    fail_reasons: Sequence[str],
    failed: Sequence[FailedGate],
    put_back: Sequence[str],
    changes: Sequence[ChangedFile] | None,
    comments: Sequence[str],
) -> list[str]:
    """Return the sections about the work so far: why it was sent back, what it changed, and what people say of it."""
    sections: list[str] = []
    if fail_reasons:
        reasons = data_block("the round before", "\n".join(fail_reasons), 2 * MAX_QUOTED_BYTES)
        sections.append(f"## What failed before\n\n{reasons}")
    if comments:
        quoted = data_block("people who read the work", "\n".join(comments), 2 * MAX_QUOTED_BYTES)
        sections.append(f"## Comments on lines\n\nDeal with each, or say in OUTPUT why not.\n\n{quoted}")
    if failed:
        sections.append(f"## What Interlock measured then\n\n{failed_gates(failed)}")
    if put_back:
        names = listing("the names of the files", put_back, MAX_QUOTED_BYTES)
        sections.append(f"## What was put back\n\n{_PUT_BACK}\n\n{names}")
    if changes is not None:
        sections.append(f"## {TITLE}\n\n{changed_files(changes)}")
    return sections


def _quotations(
    files: Mapping[EvidenceKey, tuple[str, ...]],
    digests: Mapping[str, str],
    findings: Sequence[Finding],
    outputs: Mapping[str, str],
    *,
    page: bool,
) -> list[str]:
    """Return the sections whose text comes from collectors, pages and other agents."""
    sections: list[str] = []
    if files:
        listed = "\n".join(
            f"{key}:\n{bullets([_with_digest(path, digests) for path in paths], MAX_QUOTED_BYTES // len(files))}"
            for key, paths in files.items()
        )
        quoted = data_block("the names of the files, by key", listed, 2 * MAX_QUOTED_BYTES)
        sections.append(f"## What Interlock collected for you\n\n{quoted}")
    if findings:
        found = "\n".join(f"{item.level} {item.code}: {item.message} Found: {item.found}" for item in findings)
        whom = "the page" if page else "what they ran"
        quoted = data_block(f"the collectors, which quote {whom}", found, MAX_QUOTED_BYTES)
        sections.append(f"## What the collectors found\n\n{quoted}")
    for author, text in tuple(outputs.items())[-2:]:
        sections.append(f"## What {author} reported\n\n{data_block(author, text, MAX_QUOTED_BYTES)}")
    return sections


def _with_digest(path: str, digests: Mapping[str, str]) -> str:
    digest = digests.get(path, "").removeprefix("sha256:")
    return f"{path} (sha256 {digest[:_DIGITS]}…)" if digest else path


def _order(role: Role, protocol: Protocol, *, rework: bool, page: bool) -> str:
    """Return what a role does now, by kind."""
    if role.kind == "qa":
        return (
            f"Judge the {'page' if page else 'work'} on what Interlock collected from the present tree. Open each file "
            "listed below, decide whether your gate passes or fails, and cite what you judged. Edit nothing."
        )
    if role.kind == "review":
        return (
            "Read the files in scope as they are now. Write a report into your reports folder that names the tree "
            "digest above, cite it, and decide whether your gate passes or fails. Edit nothing in scope."
        )
    builder = next((row.name for row in protocol.of_kind("build") if row.hands_over), "another role")
    if role.hands_over:
        what = "Fix every failure quoted below at its cause" if rework else "Do the whole task"
        return f"{what}, inside the scope, then hand over. A hand-over without a change to the files is refused."
    return f"Do your step of the task and report progress. {builder} builds on it and hands over; you do not."


def _gates(
    protocol: Protocol, role: Role, required: Sequence[str], certified: Collection[str], notes: Mapping[str, str]
) -> str:
    lines: list[str] = []
    for gate_id in required:
        spec = protocol.gate(gate_id)
        if spec.certifier == ANYBODY:
            by = "anybody may list it"
        elif spec.command and spec.certifier is None:
            by = "and its result decides"
        elif spec.certifier == role.name:
            by = "yours to certify"
        else:
            by = f"certified by {spec.certifier or 'a QA or review role'}"
        runs = f"Interlock runs `{shlex.join(spec.command)}`, " if spec.command else ""
        held = "; certified for the present tree" if gate_id in certified else ""
        note = f": {notes[gate_id]}" if notes.get(gate_id) else ""
        lines.append(f"{gate_id}: {spec.title} ({runs}{by}{held}){note}")
    return bullets(lines, MAX_QUOTED_BYTES)
