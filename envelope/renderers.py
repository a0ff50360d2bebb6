"""The result of checking one file, and four forms of it. Text in, text out; printing it is the caller's business."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from interlock.core.render import Checked, Form, render
from interlock.core.text import shown, visible

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.core.rule import Rule
    from interlock.envelope.validation import Report


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was found out about one file.

    Args:
        path: The file as the caller named it.
        findings: What the checks say, in the order of the text.
        report: What its response amounts to; None for a file that could not be read.
    """

    path: str
    findings: "tuple[Finding, ...]"
    report: "Report | None" = None

    @property
    def checked(self) -> Checked:
        """The file in the form that the services' renderers take."""
        return Checked(self.path, self.findings, self.report is not None)

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.refuses for finding in self.findings)


SCHEMA: Final = "interlock.findings/1"


def _row(result: "FileResult") -> dict[str, Any]:
    report = result.report
    envelope = report.envelope if report else None
    return {
        "path": result.path,
        "ok": result.ok,
        "status": report.status if report else None,
        "effective_status": report.effective_status if report else None,
        "envelope": None if envelope is None else asdict(envelope),
        "normalised": list(report.normalised) if report else [],
        "findings": [finding.to_json() for finding in result.findings],
    }


WIDTH: Final = 100
"""How many columns of a long source line are shown around the caret."""
BEFORE: Final = 40
"""How many of them come before the caret."""
TAB: Final = "    "

Paint: TypeAlias = Callable[[str, str], str]

COLORS: Final = {"error": "31", "warning": "33", "note": "36", "ok": "32", "bold": "1"}


def render_text(results: "Sequence[FileResult]", *, color: bool = False) -> str:
    """Return the findings of each file, then one line for the file; for several files, a last line for all."""
    paint: Paint = _paint if color else lambda text, _name: text
    blocks = [_file(result, paint) for result in results]
    if len(results) > 1:
        bad = sum(not result.ok for result in results)
        total = f"{len(results)} files: {len(results) - bad} valid, {bad} not valid"
        blocks.append(paint(total, "error" if bad else "ok"))
    return "".join(f"{block}\n" for block in blocks)


def _paint(text: str, name: str) -> str:
    return f"\x1b[{COLORS[name]}m{text}\x1b[0m"


def _file(result: "FileResult", paint: Paint) -> str:
    lines = result.report.reading.text.split("\n") if result.report else []
    path = visible(result.path)
    blocks = [_finding(path, finding, lines, paint) for finding in result.findings]
    blocks += [f"{path}: normalised: {shown(change)}" for change in (result.report.normalised if result.report else ())]
    return "\n".join((*blocks, _summary(path, result, paint)))


def _finding(path: str, finding: "Finding", lines: Sequence[str], paint: Paint) -> str:
    place = ":".join([path, *(str(number) for number in (finding.line, finding.column) if number)])
    subject = f"{finding.code} {visible(finding.field)}".rstrip()
    head = f"{paint(place, 'bold')}: {paint(finding.level, finding.level)} {subject}: {shown(finding.message)}"
    rows = (("found", shown(finding.found)), ("expected", shown(finding.expected)))
    rows += (("fix", visible(finding.fix)), ("source", visible(finding.source)))
    details = [f"  {name + ':':9} {value}" for name, value in rows if value]
    return "\n".join((head, *_excerpt(finding, lines, paint), *details, ""))


def _excerpt(finding: "Finding", lines: Sequence[str], paint: Paint) -> list[str]:
    if not 0 < finding.line <= len(lines) or not finding.column:
        return []
    source, before = source_line(lines[finding.line - 1].removesuffix("\r"), finding.column)
    number = str(finding.line)
    # An empty line leaves no blanks behind the bar.
    return [f"  {number} | {source}".rstrip(), f"  {' ' * len(number)} | {' ' * before}{paint('^', finding.level)}"]


def _summary(path: str, result: "FileResult", paint: Paint) -> str:
    counts = {
        level: sum(finding.level == level for finding in result.findings) for level in ("error", "warning", "note")
    }
    counted = ", ".join(f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items() if count)
    verdict = paint("valid", "ok") if result.ok else paint("not valid", "error")
    status = f" (counts as {result.report.effective_status})" if result.report and not result.ok else ""
    return f"{path}: {verdict}{status}{': ' + counted if counted else ''}"


def source_line(line: str, column: int) -> tuple[str, int]:
    """Return a source line as it can be shown, and how many characters come before the given column.

    Tabs become four blanks, characters that do not show become escapes, and a line that is too long is cut on both
    sides.

    Args:
        line: One line without its end.
        column: 1-based column in code points; the place after the last character is allowed.
    """
    # The caret of something missing stands behind the last character.
    at = max(0, min(column - 1, len(line)))
    first = max(0, at - BEFORE)
    head = "…" if first else ""
    tail = "…" if first + WIDTH < len(line) else ""
    # An escape is wider than its character, so the caret's place is counted in what is shown.
    before = head + _cells(line[first:at])
    return before + _cells(line[at : first + WIDTH]) + tail, len(before)


def _cells(text: str) -> str:
    return "".join(TAB if char == "\t" else visible(char) for char in text)


def render_results(
    results: Sequence[FileResult], form: Form, *, rules: "Iterable[Rule]" = (), version: str = "", color: bool = False
) -> str:
    """Return the results in one form, ended by a newline unless there is nothing to say."""
    if form == "text":
        return render_text(results, color=color)
    if form == "json":
        import json  # noqa: PLC0415 - a cold start that prints text does without

        # Pure ASCII, with one row for each file: `files[0]` is the first of the call.
        return json.dumps({"schema": SCHEMA, "files": [_row(result) for result in results]}, indent=2) + "\n"
    return render([row.checked for row in results], form, rules=rules, tool="validate-envelope", version=version)
