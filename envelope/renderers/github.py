"""GitHub workflow commands: one annotation for each finding."""

from typing import TYPE_CHECKING, Final

from interlock.core.text import shown, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.envelope.finding import Finding, Level
    from interlock.envelope.renderers.result import FileResult

COMMAND: Final[dict["Level", str]] = {"error": "error", "warning": "warning", "note": "notice"}


def render_github(results: "Sequence[FileResult]") -> str:
    """Return one `::error file=…,line=…,col=…,title=…::message` line for each finding (GitHub's escaping)."""
    return "".join(_annotation(result.path, finding) for result in results for finding in result.findings)


def _annotation(path: str, finding: "Finding") -> str:
    place = {"file": path, "line": str(finding.line or 1)} | ({"col": str(finding.column)} if finding.column else {})
    place["title"] = f"{finding.code} {finding.field}".rstrip()
    properties = ",".join(f"{key}={_property(value)}" for key, value in place.items())
    body = "\n".join(
        (
            shown(finding.message),
            f"found: {shown(finding.found)}",
            f"expected: {shown(finding.expected)}",
            f"fix: {visible(finding.fix)}",
            f"source: {visible(finding.source)}",
        )
    )
    return f"::{COMMAND[finding.level]} {properties}::{_data(body)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text)).replace(":", "%3A").replace(",", "%2C")
