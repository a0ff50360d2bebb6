"""What a content check looks at: one evidence file, where it was cited, and a way to report on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from interlock.core.finding import Finding
from interlock.envelope.protocol import EvidenceKey
from interlock.gates import rules
from interlock.gates.evidence import EvidenceFile


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


Subjects: TypeAlias = Sequence[Subject]
