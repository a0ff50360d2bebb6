"""The result of checking one file, which every renderer shows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.core.render import Checked

if TYPE_CHECKING:
    from interlock.core.finding import Finding
    from interlock.envelope.model import Envelope
    from interlock.envelope.validate import Report


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
    def checked(self) -> Checked:
        """The file in the form that the services' renderers take."""
        return Checked(self.path, self.findings, self.text, self.effective_status is not None)

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.refuses for finding in self.findings)
