"""What a content check looks at: one evidence file, where it was cited, and a way to speak about it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from interlock.core.errors import InterlockError
from interlock.core.finding import Finding
from interlock.envelope.protocol import EvidenceKey
from interlock.gates import rules
from interlock.gates.evidence import EvidenceFile


class MalformedError(InterlockError):
    """Bytes are not of the format that a check reads; the message says what is wrong, for `found`."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "Make the file again, as its collector writes it.")


@dataclass(frozen=True, slots=True)
class Subject:
    """One evidence file under one key.

    Args:
        file: The bytes, as they were read.
        key: The EVIDENCE key that it stands under.
        line: 1-based line of the entry in the response; 0 when there is none.
        column: 1-based column of the entry; 0 when there is none.
    """

    file: EvidenceFile
    key: EvidenceKey
    line: int = 0
    column: int = 0

    @property
    def shown(self) -> str:
        """The path, safe to print."""
        return rules.quote(self.file.path)

    def finding(self, code: str, gate: str, message: str, *, found: str, expected: str, fix: str) -> Finding:
        """Make a finding at this entry; a gate, where there is one, opens the message."""
        return rules.finding(
            code,
            f"{gate}: {message}" if gate else message,
            found=found,
            expected=expected,
            fix=fix,
            field=f"EVIDENCE.{self.key}",
            line=self.line,
            column=self.column,
        )


Subjects: TypeAlias = Sequence[Subject]


def loads(text: str) -> Any:
    """Read JSON strictly: no key twice, no NaN, no nesting that exhausts the stack.

    Raises:
        MalformedError: The text is not such JSON.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise MalformedError(f"it is not JSON: {error.msg} (character {error.pos + 1})") from error
    except (RecursionError, ValueError) as error:
        raise MalformedError("it is nested too deeply, or holds a number that is too long") from error


def decode(data: bytes) -> str:
    """Read UTF-8 text, a byte order mark at its start left out.

    Raises:
        MalformedError: The bytes are not UTF-8, or hold NUL.
    """
    if b"\0" in data:
        raise MalformedError(f"a NUL byte stands at offset {data.index(0)}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedError(f"byte {error.start} is not UTF-8") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise MalformedError("an object names a key twice")
    return table


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedError(f"{name} is not JSON")
