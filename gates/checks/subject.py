"""What a content check looks at: one evidence file, where it was cited, and a way to report on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from interlock.core.finding import Finding
from interlock.envelope.protocol import EvidenceKey
from interlock.gates import rules
from interlock.gates.evidence import EvidenceFile

if TYPE_CHECKING:
    from pydantic import ValidationError


_BLANKS: Final = b"\xef\xbb\xbf \t\r\n"
"""What may stand before JSON, the mark of byte order too."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One evidence file under one key, at its entry in the response: line and column from 1, 0 where there is none."""

    file: EvidenceFile
    key: EvidenceKey
    line: int = 0
    column: int = 0

    @property
    def shown(self) -> str:
        """The path, safe to print."""
        return rules.quote(self.file.path)

    def finding(self, code: str, gate: str, message: str, *, found: str, expected: str = "", fix: str = "") -> Finding:
        """Make a finding at this entry; a gate, where there is one, opens the message."""
        message = f"{gate}: {message}" if gate else message
        made = rules.finding(code, message, found=found, expected=expected, fix=fix, field=f"EVIDENCE.{self.key}")
        return made._replace(line=self.line, column=self.column)

    def unjudged(self, gate: str, reason: str, *, in_run: bool) -> Finding:
        """Return the finding of what no collector wrote: an error (`EVD531`), for prose outside of a run a note."""
        # What begins like JSON was meant for a machine, as the lists of `axe-cli` are: it is refused, and no prose.
        if in_run or self.file.data.lstrip(_BLANKS).startswith((b"{", b"[")):
            return self.finding("EVD531", gate, f"{self.shown} is not what a collector writes.", found=reason)
        return self.prose(gate, reason)

    def prose(self, gate: str, reason: str = "a report in prose") -> Finding:
        """Return the note (`EVD553`) that no machine judged the file."""
        message = f"{self.shown} is there and has content; no machine judged what it says."
        return self.finding("EVD553", gate, message, found=reason)


Subjects: TypeAlias = Sequence[Subject]


def why(error: "ValidationError") -> str:
    """Say what is wrong with JSON of another shape: the place and the reason of its first fault."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, fault["loc"]))
    return rules.quote(f"{place}: {fault['msg']}" if place else fault["msg"])
