"""Edits: the changes of all drafts become line edits that fit together, and one sentence that states them.

More than a few lines of somebody's text are never deleted: they go under OUTPUT.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from interlock.core.finding import Edit, Finding
from interlock.envelope.characters import split_lines
from interlock.envelope.draft import FEW, Delete, Draft, Insert, Join, Move, Op, Patch, code_span
from interlock.envelope.labels import label_in_output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from interlock.core.rule import Rule

MAX_FIX_CHARS: Final = 1600
"""The most text that the edits of one finding may carry; beyond it the fix is in words."""
MAX_OPS: Final = 60
"""The most changes that one finding may state."""
_ORDER: Final = ("replace", "to-output", "insert-after", "delete")
"""Lines are moved as they are replaced, and before they are deleted."""


def _patch_order(patch: Patch) -> tuple[int, bool, int, str]:
    return patch.start, patch.end > patch.start, -patch.end, patch.text


@dataclass(eq=False, repr=False)
class _Plan:
    lines: Sequence[str]
    patches: dict[int, list[Patch]] = field(default_factory=dict[int, list[Patch]])
    gone: dict[int, Delete | Move | Join] = field(default_factory=dict[int, "Delete | Move | Join"])
    joins: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    inserts: dict[int, list[Insert | Move]] = field(default_factory=dict[int, "list[Insert | Move]"])
    done: dict[int, str] = field(default_factory=dict[int, str])

    def add(self, op: Op) -> None:
        if isinstance(op, Patch):
            self.patches.setdefault(op.line, []).append(op)
        if isinstance(op, Join):
            self.gone[op.other] = op
            self.joins.setdefault(op.line, []).append(op.other)
        if isinstance(op, Delete | Move):
            for number in range(op.first, op.last + 1):
                if isinstance(op, Delete) or number not in self.gone:
                    self.gone[number] = op
        if isinstance(op, Insert | Move):
            known_here = self.inserts.setdefault(op.after, [])
            if op not in known_here:
                known_here.append(op)

    def final(self, number: int) -> str:
        """Return one line with everything done to it; a patch inside a larger one is covered by it."""
        if number in self.done:
            return self.done[number]
        text = self.lines[number - 1]
        if number in self.patches:
            out: list[str] = []
            at = 1
            for patch in sorted(set(self.patches[number]), key=_patch_order):
                out.append(text[at - 1 : max(at, patch.start) - 1])
                if patch.start >= at:
                    out.append(patch.text)
                at = max(at, patch.end)
            out.append(text[at - 1 :])
            text = "".join(out).rstrip(" \t")
        more = (self.final(other).strip(" \t") for other in self.joins.get(number, ()))
        self.done[number] = text = " ".join(part for part in (text, *more) if part)
        return text

    def moved(self, move: Move) -> tuple[str, ...]:
        """Return the lines of a move; what is put between or right after them goes with them."""
        out: list[str] = []
        for number in range(move.first, move.last + 1):
            if self.gone.get(number, move) == move:
                out.append(self.final(number))
                out += self.inserted(op for op in self.inserts.get(number, ()) if isinstance(op, Insert))
        return tuple(out)

    def inserted(self, inserts: Iterable[Insert | Move]) -> list[str]:
        """Return the lines of inserts at one place, in their order."""
        ordered = sorted(inserts, key=lambda each: each.rank)
        return [line for each in ordered for line in (each.lines if isinstance(each, Insert) else self.moved(each))]

    def insert(self, op: Insert | Move) -> Edit:
        """Return the edit of an insert; inserts at one place whose order matters are one edit."""
        here = self.inserts[op.after]
        group = sorted(here, key=lambda each: each.rank) if here != sorted(here, key=lambda each: each.rank) else [op]
        return Edit("insert-after", op.after, op.after, "\n".join(self.inserted(group)))

    def edits(self, ops: Iterable[Op]) -> tuple[Edit, ...]:
        out: dict[Edit, None] = {}
        for op in ops:
            if isinstance(op, Patch) and op.line in self.gone:
                gone = self.gone[op.line]
                out.update(dict.fromkeys(self.edits([gone])))
                if isinstance(gone, Delete) and gone.moves:
                    out[Edit("replace", op.line, op.line, self.final(op.line))] = None
            elif isinstance(op, Patch):
                out[Edit("replace", op.line, op.line, self.final(op.line))] = None
            elif isinstance(op, Delete):
                out[Edit("to-output" if op.moves else "delete", op.first, op.last)] = None
            elif isinstance(op, Insert) and isinstance(carrier := self.gone.get(op.after), Move):
                out.update(dict.fromkeys(self.edits([carrier])))
            elif isinstance(op, Insert):
                out[self.insert(op)] = None
            elif isinstance(op, Join):
                out.update(dict.fromkeys(self.edits([Patch(op.line, 1, 1, "")])))
                out[Edit("delete", op.other, op.other)] = None
            else:
                out[Edit("delete", op.first, op.last)] = None
                out[self.insert(op)] = None
        return tuple(out)


def to_findings(drafts: Iterable[Draft], text: str, rules: "Mapping[str, Rule]") -> tuple[Finding, ...]:
    """Turn drafts into findings whose edits may all be made together, in the order of the text."""
    ordered = sorted(drafts, key=lambda draft: (draft.line, draft.rank, draft.column, draft.code))
    if not ordered:
        return ()
    plan = _Plan([line.text for line in split_lines(text)])
    for draft in ordered:
        for op in draft.ops[:MAX_OPS]:
            plan.add(op)
    findings: list[Finding] = []
    for draft in ordered:
        rule = rules[draft.code]
        edits = plan.edits(draft.ops) if len(draft.ops) <= MAX_OPS else ()
        if sum(len(edit.text) for edit in edits) > MAX_FIX_CHARS:
            edits = ()
        words = " ".join(part for part in (sentence(edits), draft.advice) if part)
        findings.append(
            Finding(
                code=draft.code,
                level=draft.level or rule.level,
                field=draft.field,
                line=draft.line,
                column=draft.column,
                message=draft.message,
                found=draft.found,
                expected=draft.expected,
                fix=words or rule.remedy,
                source=rule.source,
                edits=edits,
            )
        )
    return tuple(dict.fromkeys(findings))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with all edits made, in the numbering of the text; one that is stated twice is made once."""
    lines: list[str | None] = list(text.split("\n"))
    after: dict[int, list[str]] = {}
    moved: dict[int, str] = {}
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: _ORDER.index(edit.kind)):
        if edit.kind == "insert-after":
            after.setdefault(edit.line, []).append(edit.text)
            continue
        if edit.kind == "to-output":
            moved |= {number: lines[number - 1] or "" for number in range(edit.line, edit.end_line + 1)}
        lines[edit.line - 1 : edit.end_line] = [None] * (edit.end_line - edit.line + 1)
        if edit.kind == "replace":
            lines[edit.line - 1] = edit.text
    out = list(after.get(0, ()))
    for number, line in enumerate(lines, 1):
        out += [*([] if line is None else [line]), *after.get(number, ())]
    if moved:
        out = "\n".join(out).split("\n")
        end = max((at for at, line in enumerate(out) if line.startswith("NEXT_ACTIONS:")), default=len(out))
        out[end:end] = [f"> {line}" if label_in_output(line) else line for _, line in sorted(moved.items())]
    return "\n".join(out)


def sentence(edits: Iterable[Edit]) -> str:
    """State edits in the imperative; the same words are read back by whoever applies them.

    The forms are: Replace line 3 with `…`. / Replace lines 3-4 with `…`. / Delete line 7. / Delete lines 7-9. /
    Insert after line 4: `…`. / Insert before line 1: `…`. / Move lines 5-9 after line 3, as `…`. / Move lines 5-44
    under OUTPUT, … Several lines are several code spans, joined by comma and blank.
    """
    parts: list[str] = []
    for edit in edits:
        where = f"line {edit.line}" if edit.line == edit.end_line else f"lines {edit.line}-{edit.end_line}"
        spans = ", ".join(code_span(line) for line in edit.text.split("\n"))
        place = f"after line {edit.line}" if edit.line else "before line 1"
        if edit.kind == "delete":
            # So many lines are taken out only to be put in another place.
            parts.append(f"Move {where}" if edit.end_line - edit.line >= FEW else f"Delete {where}.")
        elif edit.kind == "to-output":
            parts.append(f"Move {where} under OUTPUT, with `> ` before each that begins with one of the twelve labels.")
        elif edit.kind == "replace":
            parts.append(f"Replace {where} with {spans}.")
        elif parts and not parts[-1].endswith("."):
            parts[-1] += f" {place}, as {spans}."
        else:
            parts.append(f"Insert {place}: {spans}.")
    return " ".join(parts)
