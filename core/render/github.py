"""GitHub workflow commands: one annotation for each finding."""

from typing import TYPE_CHECKING, Final

from interlock.core.text import shown, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.core.finding import Finding
    from interlock.core.render import Checked

COMMAND: Final = {"warning": "warning", "warn": "warning", "note": "notice"}


def render_github(files: "Sequence[Checked]") -> str:
    """Return one `::error file=…,line=…,col=…,title=…::message` line for each finding (GitHub's escaping)."""
    return "".join(_annotation(file.path, finding) for file in files for finding in file.findings)


def _annotation(path: str, finding: "Finding") -> str:
    place = {"file": path, "line": str(finding.line or 1)} if path else {}
    place |= {"col": str(finding.column)} if finding.column else {}
    place["title"] = f"{finding.code} {finding.field}".rstrip()
    quoted = {key: _data(visible(text)).replace(":", "%3A").replace(",", "%2C") for key, text in place.items()}
    properties = ",".join(f"{key}={text}" for key, text in quoted.items())
    parts = {"found": shown(finding.found, keep="\n"), "expected": shown(finding.expected)}
    parts |= {"fix": visible(finding.fix), "source": visible(finding.source)}
    body = "\n".join((shown(finding.message), *(f"{name}: {text}" for name, text in parts.items() if text)))
    return f"::{COMMAND.get(finding.level, 'error')} {properties}::{_data(body)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
