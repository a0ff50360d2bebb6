"""Fixes applied by the book: read them out of a re-ask and make them, with no other knowledge."""

import re
from collections.abc import Iterator

from interlock.core.finding import Edit
from interlock.envelope.scanner import IN_OUTPUT

_STEP = re.compile(
    r"(Replace|Delete|Move) lines? (\d+)(?:-(\d+))?"
    r"(?: with |\.| under OUTPUT, with `> ` before each that [a-z ]+\.)"
    r"|Insert (?:after line (\d+)|before line 1): "
)
_TICKS = re.compile(r"`+")


def spans(text: str, at: int) -> tuple[list[str], int]:
    """Read code spans joined by `, ` as CommonMark does; return them and the index after the last."""
    found: list[str] = []
    while True:
        ticks = _TICKS.match(text, at)
        assert ticks, f"no code span in {text[at : at + 40]!r}"
        end = re.compile(rf"(?<!`){ticks[0]}(?!`)").search(text, ticks.end())
        assert end, "a code span does not end"
        inner = text[ticks.end() : end.start()]
        found.append(inner[1:-1] if inner[:1] == inner[-1:] == " " and len(inner) > 1 else inner)
        at = end.end()
        if not text.startswith(", `", at):
            return found, at
        at += 2


def stated(reask: str) -> list[Edit]:
    """Read the edits out of the `Fix:` lines of a re-ask; words that are not an edit are skipped."""
    edits: list[Edit] = []
    for line in reask.split("\n"):
        if line.startswith("   Fix: "):
            edits += _sentences(line.removeprefix("   Fix: "))
    return edits


def _sentences(text: str) -> Iterator[Edit]:
    at = 0
    while step := _STEP.match(text, at):
        first = int(step[2] or 0)
        last = int(step[3] or first)
        at = step.end()
        if step[1] == "Delete":
            yield Edit("delete", first, last)
        elif step[1] == "Move":
            yield Edit("to-output", first, last)
        else:
            lines, at = spans(text, at)
            line = int(step[4] or 0)
            body = "\n".join(lines)
            yield Edit("replace", first, last, body) if step[1] else Edit("insert-after", line, line, body)
            assert text[at] == "."
            at += 1
        at += text[at : at + 1] == " "


def apply(text: str, edits: list[Edit]) -> str:
    """Make all edits together, in the numbering of the text; an edit that is stated twice is made once."""
    lines: list[str | None] = list(text.split("\n"))
    after: dict[int, list[str]] = {}
    for edit in edits:
        if edit.kind == "replace":
            lines[edit.line - 1] = edit.text
            lines[edit.line : edit.end_line] = [None] * (edit.end_line - edit.line)
    replaced, under = list(lines), dict[int, str]()
    for edit in dict.fromkeys(edits):
        if edit.kind == "insert-after":
            after.setdefault(edit.line, []).append(edit.text)
        for number in range(edit.line, edit.end_line + 1) if edit.kind in {"delete", "to-output"} else ():
            if edit.kind == "to-output":
                under[number] = replaced[number - 1] or ""
            lines[number - 1] = None
    out = list(after.get(0, ()))
    for number, line in enumerate(lines, 1):
        out += [] if line is None else [line]
        out += after.get(number, ())
    whole = "\n".join(out)
    head, label, steps = whole.rpartition("\nNEXT_ACTIONS:")
    quoted = "".join(f"\n> {line}" if is_label(line) else f"\n{line}" for _, line in sorted(under.items()))
    return f"{head}{quoted}{label}{steps}" if under else whole


def is_label(line: str) -> bool:
    """Return whether a person takes the beginning of a line for a label."""
    return IN_OUTPUT.match(line) is not None


def fill(text: str) -> str:
    """Put an agent's word in place of each placeholder: what follows `such as`, or a file that it has."""
    made = re.sub(r"<path of a (\w+) file for ([A-Z0-9-]+) that exists>", r"artifacts/\1/\2.made", text)
    return re.sub(r"<[^<>\n]*?such as ([^<>\n]*)>", r"\1", made)


def apply_fixes(text: str, reask: str) -> str:
    """Return the text with every stated fix made."""
    return fill(apply(text, stated(reask)))
