"""Fixes: from what the rules want changed to edits of lines that fit together, and the words that state them.

1. `correct` works out the values that every field has in the end. It makes the changes that the drafts ask for and
   holds the result to the same rules, again and again until they find nothing. So what one rule changes may break
   another one, and no rule has to know of the others: once all stated fixes are made, the response is valid by
   construction.
2. `_Plan` compares those values with the text, field by field: a field that differs, or that is not written as the
   grammar has it, is written anew; one that is missing or out of order is put into its place.
3. `to_findings` gives each finding the edits of the fields that it is about.

More than a few lines of somebody's text are never just deleted: they go under OUTPUT.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from interlock.core.finding import Edit, Finding
from interlock.envelope.characters import without_refused
from interlock.envelope.draft import Change, Draft, code_span
from interlock.envelope.model import LISTS, FieldText, Item, field_lines
from interlock.envelope.parser import BLANKS
from interlock.envelope.protocol import EVIDENCE_KEYS, LABELS
from interlock.envelope.scanner import Layout, out_of_order

if TYPE_CHECKING:
    from interlock.core.rule import Rule
    from interlock.envelope.case import Case

MAX_FIX_CHARS: Final = 1600
"""The most text that the edits of one finding may carry; beyond it the fix is in words."""
FEW: Final = 5
"""So many lines a fix may take out; more are moved under OUTPUT."""
_ROUNDS: Final = 8
"""So often values are corrected; rules that never agree leave a fix that is not whole."""
_HOLE: Final = re.compile(r"<[^<>\n]*?such as ([^<>\n]*)>")
_FILE_HOLE: Final = re.compile(r"<path of a (\w+) file for ([A-Z0-9-]+) that exists>")

Judge = Callable[["Case"], Iterable[Draft]]


# -- the values in the end -------------------------------------------------------------------------------------------


def correct(case: "Case", drafts: Iterable[Draft], judge: Judge) -> dict[str, FieldText]:
    """Return every field as it is once all fixes are made; one that is missing or empty begins with its default."""
    fields = dict(case.fields)
    for label in (*LABELS, *(f"EVIDENCE.{key}" for key in EVIDENCE_KEYS)):
        field = fields.get(label, FieldText(label, 0, 0, (), 0))
        # An empty list may be right; an empty value never is.
        if label not in fields or not (field.items or label in LISTS or label.startswith("EVIDENCE")):
            field = field._replace(items=tuple(Item(text) for text in case.default(label)))
        fields[label] = field
    # What the findings ask for comes first; what that breaks is found in the rounds.
    _change(fields, drafts)
    for _ in range(_ROUNDS):
        tried = {label: _filled(field) for label, field in fields.items()}
        more = [draft for draft in judge(replace(case, fields=tried)) if draft.changes]
        if not more:
            break
        _change(fields, more)
    return fields


def _filled(field: FieldText) -> FieldText:
    """Return a field with a sample in place of each placeholder, as the agent will fill it in."""
    return field._replace(items=tuple([item._replace(text=_sample(item.text)) for item in field.items]))


def _sample(text: str) -> str:
    return _HOLE.sub(r"\1", _FILE_HOLE.sub(r"artifacts/\1/\2", text)) if "<" in text else text


def _change(fields: dict[str, FieldText], drafts: Iterable[Draft]) -> None:
    """Make changes of values. Of several for one value, taking it out counts most, and BLOCKED for STATUS."""
    changes: dict[str, list[Change]] = {}
    for draft in drafts:
        for change in draft.changes:
            changes.setdefault(change.label, []).append(change)
    for label, wanted in changes.items():
        items: list[Item | None] = list(fields[label].items)
        added: dict[str, None] = {}
        put: set[int] = set()
        for change in wanted:
            if change.position is None:
                added[change.text or ""] = None
            elif change.text is None:
                items[change.position] = None
            # Two rules may want other statuses: the one that wants BLOCKED has seen what no other status allows.
            elif (item := items[change.position]) and (change.position not in put or change.text == "BLOCKED"):
                items[change.position] = item._replace(text=change.text)
                put.add(change.position)
        kept = [item for item in items if item is not None]
        fields[label] = fields[label]._replace(items=(*kept, *(Item(text) for text in added)))


# -- the edits -------------------------------------------------------------------------------------------------------


class _Plan:
    """The edits that turn a text into one with the corrected values.

    Args:
        text: The text as given.
        layout: What the tolerant reading wants done besides.
        fields: The fields as they were read.
        values: The fields as they are in the end.
        dirty: Lines with refused characters.
    """

    def __init__(
        self,
        text: str,
        layout: Layout,
        fields: Mapping[str, FieldText],
        values: Mapping[str, FieldText],
        dirty: Iterable[int],
    ) -> None:
        self._lines = [line.removesuffix("\r") for line in text.split("\n")]
        self._layout = layout
        self._fields = fields
        self._values = values
        self._dirty = set(dirty)
        in_text = sorted((label for label in LABELS if label in fields), key=lambda label: fields[label].line)
        self.moved = out_of_order(in_text)
        # These are what all inserted fields are placed behind.
        self._kept = [label for label in in_text if label not in self.moved]
        self.edits: list[tuple[str, Edit]] = []
        """Each edit with the label whose field it changes; an empty one for lines of no field."""
        self._strays = self._stray_lines()
        for label in LABELS:
            self._plan_field(label)
        # Blank lines behind what went away would come before STATUS.
        done = {number for _, edit in self.edits if edit.kind != "insert-after" for number in _numbers(edit)}
        before = set(range(1, fields[self._kept[0]].line)) - done
        for first, last in _runs(sorted(before)):
            self._add(min(self.moved, default=""), "delete", first, last)
        done |= before
        for number in sorted(self._dirty - done):
            self._add("", "replace", number, number, without_refused(self._lines[number - 1]))

    def _add(self, label: str, kind: str, first: int, last: int, text: str = "") -> None:
        self.edits.append((label, Edit(kind, first, last, text)))  # pyright: ignore[reportArgumentType]

    def _stray_lines(self) -> set[int]:
        """Take strays out, or move them under OUTPUT; blank lines between two of them go with them."""
        runs: list[tuple[int, int, str]] = []
        for first, last, label in self._layout.strays:
            if runs and not any(self._lines[number - 1].strip(BLANKS) for number in range(runs[-1][1] + 1, first)):
                # Only blank lines are between them.
                first, _, label = runs.pop()  # noqa: PLW2901 - one run of both
            runs.append((first, last, label))
        for first, last, label in runs:
            if last - first < FEW:
                self._add(label, "delete", first, last)
                continue
            self._add(label, "to-output", first, last)
            # What is moved is copied from the text as it was sent, refused characters and all.
            for number in sorted(self._dirty & set(range(first, last + 1))):
                self._add(label, "replace", number, number, without_refused(self._lines[number - 1]))
        return {number for first, last, _ in runs for number in range(first, last + 1)}

    def _plan_field(self, label: str) -> None:
        field = self._fields.get(label)
        if field is None:
            self._insert(label, self._new_lines(label))
            return
        numbers = [number for number in range(field.line, field.end_line + 1) if number not in self._strays]
        if label in self.moved:
            for first, last in _runs(numbers):
                self._add(label, "delete", first, last)
            self._insert(label, self._new_lines(label))
        # A deliverable is never written anew where single lines will do: its fix would be as long as it is.
        elif label == "OUTPUT" and not self._is_changed(label):
            self._plan_output(field, numbers)
        elif label in self._layout.rewrite or self._is_changed(label) or self._dirty & set(numbers):
            # Strays cut a field into runs; the new lines go where the first one was.
            first_run, *others = _runs(numbers)
            self._put(label, first_run, self._new_lines(label))
            for first, last in others:
                self._add(label, "delete", first, last)

    def _is_changed(self, label: str) -> bool:
        """Return whether the values of a field, or the numbers of its steps, are other ones in the end."""
        if label == "EVIDENCE":
            return any(self._is_changed(f"EVIDENCE.{key}") for key in EVIDENCE_KEYS)
        old, new = self._fields.get(label), self._values[label]
        numbers = [item.number for item in new.items]
        return (
            old is None
            or old.texts != new.texts
            # A wrong number is a change, although the texts are the same.
            or any(number and number != f"{at}." for at, number in enumerate(numbers, 1))
        )

    def _new_lines(self, label: str) -> list[str]:
        """Return the lines of a field with the values that it has in the end."""
        texts = {name: field.texts for name, field in self._values.items()}
        field = self._fields.get(label)
        if label == "OUTPUT" and field is not None and not self._is_changed(label):
            return ["OUTPUT:", *(self._output_line(item.line, item.text) for item in field.items)]
        indent = ""
        # With the indentation that the items have, those that are right are the same lines and need no edit.
        if field is not None and field.items and field.items[0].line > field.line:
            first = self._lines[field.items[0].line - 1]
            indent = first[: len(first) - len(first.lstrip(BLANKS))]
        return field_lines(label, texts, indent if label != "EVIDENCE" else "")

    def _output_line(self, number: int, text: str) -> str:
        return ("> " if number in self._layout.quoted else "") + without_refused(text)

    def _plan_output(self, field: FieldText, numbers: Sequence[int]) -> None:
        """Change single lines of OUTPUT: it may be long."""
        for number in numbers:
            line = self._lines[number - 1]
            new = self._output_line(number, line)
            # The label is misspelt and text follows it on its line.
            if number == field.line and "OUTPUT" in self._layout.rewrite:
                new = f"OUTPUT: {new[field.value_column - 1 :]}".rstrip(BLANKS)
            if new != line:
                self._add("OUTPUT", "replace", number, number, new)

    def _put(self, label: str, run: tuple[int, int], new: list[str]) -> None:
        """Put lines in place of a run of lines; those that are the same at both ends stay."""
        first, last = run
        old = self._lines[first - 1 : last]
        most = min(len(old), len(new))
        same_before = 0
        while same_before < most and old[same_before] == new[same_before]:
            same_before += 1
        same_after = 0
        while same_after < most - same_before and old[-1 - same_after] == new[-1 - same_after]:
            same_after += 1
        old, new = old[same_before : len(old) - same_after], new[same_before : len(new) - same_after]
        first, last = first + same_before, last - same_after
        if old and new:
            self._add(label, "replace", first, last, "\n".join(new))
        elif old:
            self._add(label, "delete", first, last)
        elif new:
            self._add(label, "insert-after", first - 1, first - 1, "\n".join(new))

    def _insert(self, label: str, lines: Sequence[str]) -> None:
        """Put a field into its place: behind the nearest one before it that stays, else before the first one."""
        before = [kept for kept in self._kept if LABELS.index(kept) < LABELS.index(label)]
        after = self._fields[before[-1]].end_line if before else self._fields[self._kept[0]].line - 1
        self._add(label, "insert-after", after, after, "\n".join(lines))


def _numbers(edit: Edit) -> range:
    return range(edit.line, edit.end_line + 1)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending numbers as runs from a first to a last one."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _report_edits(text: str, values: Mapping[str, FieldText]) -> list[Edit]:
    """Return the edits that make a plain report the OUTPUT of an envelope."""
    texts = {label: field.texts for label, field in values.items()} | {"OUTPUT": ()}
    head = [line for label in LABELS for line in field_lines(label, texts)]
    last = text.rstrip(" \t\r\n").count("\n") + 1
    return [Edit("insert-after", 0, 0, "\n".join(head)), Edit("to-output", 1, last)]


# -- the findings ----------------------------------------------------------------------------------------------------


def to_findings(
    drafts: Iterable[Draft], text: str, case: "Case", judge: Judge, rules: Mapping[str, "Rule"], layout: Layout
) -> tuple[Finding, ...]:
    """Turn drafts into findings whose edits may all be made together, in the order of the text.

    Args:
        drafts: What is wrong.
        text: The text as given.
        case: The response before the rules.
        judge: Holds a case to every rule that can be broken by a value.
        rules: The rows by code.
        layout: What the tolerant reading wants done.
    """
    ordered = sorted(drafts, key=lambda draft: (draft.line, draft.column, draft.code))
    errors = [draft for draft in ordered if (draft.level or rules[draft.code].level) == "error"]
    edits_of: dict[int, list[Edit]] = {}
    # A plain report has no fields to correct: its fix is a whole envelope, with the text under OUTPUT.
    reports = [index for index, draft in enumerate(errors) if draft.code == "ENV223"]
    dirty = [(index, number) for index, draft in enumerate(errors) if draft.code == "ENV106" for number in draft.lines]
    if reports:
        edits_of[reports[0]] = _report_edits(text, correct(case, errors, judge))
        lines = text.split("\n")
        for index, number in dirty:
            clean = without_refused(lines[number - 1])
            edits_of.setdefault(index, []).append(Edit("replace", number, number, clean))
    elif errors and case.fields:
        plan = _Plan(text, layout, case.fields, correct(case, errors, judge), [number for _, number in dirty])
        edits_of = _shared_out(errors, plan)
    # By identity, since two drafts may be equal and have edits of their own.
    edits = {id(errors[index]): tuple(found) for index, found in edits_of.items()}
    return tuple(dict.fromkeys(_finding(draft, rules[draft.code], edits.get(id(draft), ())) for draft in ordered))


def _shared_out(errors: Sequence[Draft], plan: _Plan) -> dict[int, list[Edit]]:
    """Give each error the edits of its fields and lines; what no error is about goes with one that has consequences."""
    edits_of: dict[int, list[Edit]] = {index: [] for index in range(len(errors))}
    # A change that no finding asked for follows from another one, mostly from that of STATUS.
    consequence = next((index for index, draft in enumerate(errors) if draft.field == "STATUS"), 0)
    for label, edit in plan.edits:
        takers = [index for index, draft in enumerate(errors) if _is_about(draft, label, edit, plan)]
        for index in takers or [consequence]:
            edits_of[index].append(edit)
    return _in_order(edits_of, [edit for _, edit in plan.edits if edit.kind == "insert-after"])


def _in_order(edits_of: Mapping[int, Sequence[Edit]], inserts: Sequence[Edit]) -> dict[int, list[Edit]]:
    """Make one edit of the inserts at one place, where the findings do not state them in the order of the fields."""
    stated = dict.fromkeys(edit for edits in edits_of.values() for edit in edits)
    joined: dict[Edit, Edit] = {}
    for place in {edit.line for edit in inserts}:
        # They were planned in the order of the fields. One edit would always do, but each finding would repeat it.
        here = [edit for edit in inserts if edit.line == place]
        if here != [edit for edit in stated if edit in here]:
            whole = Edit("insert-after", place, place, "\n".join(edit.text for edit in here))
            joined |= dict.fromkeys(here, whole)
    return {index: list(dict.fromkeys(joined.get(edit, edit) for edit in edits)) for index, edits in edits_of.items()}


def _is_about(draft: Draft, label: str, edit: Edit, plan: _Plan) -> bool:
    labels = {draft.field.partition(".")[0], *(change.label.partition(".")[0] for change in draft.changes)}
    # One finding stands for all fields that are out of order.
    if draft.code == "ENV205":
        labels = set(plan.moved)
    # Whether any line of the draft lies within the edit; one draft may have thousands.
    nearest = bisect_left(draft.lines, edit.line)
    touched = edit.kind != "insert-after" and nearest < len(draft.lines) and draft.lines[nearest] <= edit.end_line
    return touched or (label != "" and label in labels)


def _finding(draft: Draft, rule: "Rule", edits: tuple[Edit, ...]) -> Finding:
    # The agent has its own long text; the remedy says what to do with it.
    if sum(len(edit.text) for edit in edits) > MAX_FIX_CHARS:
        edits = ()
    words = " ".join(part for part in (sentence(edits), draft.advice) if part)
    return Finding(
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


def sentence(edits: Iterable[Edit]) -> str:
    """State edits in the imperative; the same words are read back by whoever applies them.

    The forms are: Replace line 3 with `…`. / Replace lines 3-4 with `…`. / Delete line 7. / Delete lines 7-9. /
    Insert after line 4: `…`. / Insert before line 1: `…`. / Move lines 5-44 under OUTPUT, … Several lines are several
    code spans, joined by comma and blank.
    """
    parts: list[str] = []
    for edit in edits:
        where = f"line {edit.line}" if edit.line == edit.end_line else f"lines {edit.line}-{edit.end_line}"
        spans = ", ".join(code_span(line) for line in edit.text.split("\n"))
        if edit.kind == "delete":
            parts.append(f"Delete {where}.")
        elif edit.kind == "to-output":
            parts.append(f"Move {where} under OUTPUT, with `> ` before each that begins with one of the twelve labels.")
        elif edit.kind == "replace":
            parts.append(f"Replace {where} with {spans}.")
        else:
            parts.append(f"Insert {f'after line {edit.line}' if edit.line else 'before line 1'}: {spans}.")
    return " ".join(parts)
