"""Renderers: one result type, four forms of it. Text in, text out; who prints it is no concern of this room."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from interlock.envelope.explain import RuleRow
    from interlock.envelope.finding import Finding
    from interlock.envelope.model import Envelope
    from interlock.envelope.validate import Report

Format: TypeAlias = Literal["text", "json", "sarif", "github"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

__all__ = ["FORMATS", "FileResult", "Format", "render_results"]


@dataclass(frozen=True, slots=True)
class FileResult:
    """What was found out about one file.

    Args:
        path: The file as the caller named it.
        findings: What the checks say, in the order of the text.
        status: The status that the envelope sets or echoes; None when none could be read.
        effective_status: The status that counts; None for a file that could not be read.
        envelope: The well-formed envelope, or None.
        normalised: What extraction took away or joined.
        text: The text as given, for showing lines; empty when there is none to show.
    """

    path: str
    findings: "tuple[Finding, ...]"
    status: str | None = None
    effective_status: str | None = None
    envelope: "Envelope | None" = None
    normalised: tuple[str, ...] = ()
    text: str = ""

    @classmethod
    def of(cls, path: str, report: "Report") -> "FileResult":
        """Return the result for a file that was read and checked."""
        return cls(
            path=path,
            findings=tuple(report.findings),
            status=report.status,
            effective_status=report.effective_status,
            envelope=report.envelope,
            normalised=tuple(report.normalised),
            text=report.reading.text,
        )

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.level != "error" for finding in self.findings)


def render_results(
    results: Sequence[FileResult],
    form: Format,
    *,
    rules: "Iterable[RuleRow]" = (),
    version: str = "",
    color: bool = False,
) -> str:
    """Return the results in one form, ended by a newline unless there is nothing to say.

    Args:
        results: One row for each file, in the order of the command line.
        form: Which renderer.
        rules: The rows that SARIF describes the findings' codes by.
        version: The version that SARIF names.
        color: Whether text may carry terminal colours.
    """
    # Each renderer is imported by who asks for it: a cold start pays for one of them.
    if form == "text":
        from interlock.envelope.renderers.text import render_text  # noqa: PLC0415

        return render_text(results, color=color)
    if form == "json":
        from interlock.envelope.renderers.json import render_json  # noqa: PLC0415

        return render_json(results)
    if form == "sarif":
        from interlock.envelope.renderers.sarif import render_sarif  # noqa: PLC0415

        return render_sarif(results, rules, version)
    from interlock.envelope.renderers.github import render_github  # noqa: PLC0415

    return render_github(results)
