"""The form for people: place, message, the line itself with a caret, and what to do."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from interlock.core.text import shown, visible

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.envelope.renderers.result import FileResult

WIDTH: Final = 100
"""How many columns of a long source line are shown around the caret."""
BEFORE: Final = 40
"""How many of them come before the caret."""
TAB: Final = "    "

Paint: TypeAlias = Callable[[str, str], str]

COLORS: Final = {"error": "31", "warning": "33", "note": "36", "ok": "32", "bold": "1"}


def render_text(results: "Sequence[FileResult]", *, color: bool = False) -> str:
    """Return the findings of each file, then one line for the file; for several files, a last line for all."""
    paint = _paint if color else _plain
    blocks = [_file(result, paint) for result in results]
    if len(results) > 1:
        bad = sum(not result.ok for result in results)
        total = f"{len(results)} files: {len(results) - bad} valid, {bad} not valid"
        blocks.append(paint(total, "error" if bad else "ok"))
    return "".join(f"{block}\n" for block in blocks)


def _plain(text: str, _name: str) -> str:
    return text


def _paint(text: str, name: str) -> str:
    return f"\x1b[{COLORS[name]}m{text}\x1b[0m"


def _file(result: "FileResult", paint: Paint) -> str:
    lines = result.text.split("\n") if result.findings else []
    path = visible(result.path)
    blocks = [_finding(path, finding, lines, paint) for finding in result.findings]
    blocks += [f"{path}: normalised: {shown(change)}" for change in result.normalised]
    return "\n".join((*blocks, _summary(path, result, paint)))


def _finding(path: str, finding: "Finding", lines: Sequence[str], paint: Paint) -> str:
    place = ":".join([path, *(str(number) for number in (finding.line, finding.column) if number)])
    subject = f"{finding.code} {visible(finding.field)}".rstrip()
    head = f"{paint(place, 'bold')}: {paint(finding.level, finding.level)} {subject}: {shown(finding.message)}"
    rows = (("found", shown(finding.found)), ("expected", shown(finding.expected)))
    rows += (("fix", visible(finding.fix)), ("source", visible(finding.source)))
    said = [f"  {name + ':':9} {value}" for name, value in rows if value]
    return "\n".join((head, *_excerpt(finding, lines, paint), *said, ""))


def _excerpt(finding: "Finding", lines: Sequence[str], paint: Paint) -> list[str]:
    if not 0 < finding.line <= len(lines) or not finding.column:
        return []
    source, before = source_line(lines[finding.line - 1].removesuffix("\r"), finding.column)
    number = str(finding.line)
    return [f"  {number} | {source}".rstrip(), f"  {' ' * len(number)} | {' ' * before}{paint('^', finding.level)}"]


def _summary(path: str, result: "FileResult", paint: Paint) -> str:
    counts = {
        level: sum(finding.level == level for finding in result.findings) for level in ("error", "warning", "note")
    }
    said = ", ".join(f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items() if count)
    verdict = paint("valid", "ok") if result.ok else paint("not valid", "error")
    status = f" (counts as {result.effective_status})" if result.effective_status and not result.ok else ""
    return f"{path}: {verdict}{status}{': ' + said if said else ''}"


def source_line(line: str, column: int) -> tuple[str, int]:
    """Return a source line as it can be shown, and how many columns come before the given one.

    Tabs become four blanks, characters that do not show become escapes, wide characters count twice, and a line that
    is too long is cut on both sides.

    Args:
        line: One line without its end.
        column: 1-based column in code points; the place after the last character is allowed.
    """
    at = max(0, min(column - 1, len(line)))
    first = max(0, at - BEFORE)
    cells = [_cell(character) for character in line[first : first + WIDTH]]
    before = sum(width for _, width in cells[: at - first])
    head = "…" if first else ""
    tail = "…" if first + WIDTH < len(line) else ""
    return head + "".join(text for text, _ in cells) + tail, len(head) + before


def _cell(character: str) -> tuple[str, int]:
    if character == "\t":
        return TAB, len(TAB)
    text = visible(character)
    if text.isascii():
        return text, len(text)
    import unicodedata  # noqa: PLC0415 - only a line with other letters needs it

    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return text, 0
    return text, 2 if unicodedata.east_asian_width(character) in "WF" else 1
