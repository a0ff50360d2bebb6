"""Findings: what a check says about one place, and what to do about it. One record for every package.

It is a named tuple and not a dataclass: the hooks load it, and `dataclasses` alone costs them 10 ms.
"""

from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypedDict

from interlock.core.errors import InterlockError

Level: TypeAlias = Literal["error", "warning", "note", "retry", "stop", "warn"]
"""`error` refuses; `warning` and `note` do not. Of a ticket: `retry` can be corrected by the next submission, `stop`
ends the run, `warn` is reported and passes."""
EditKind: TypeAlias = Literal["replace", "delete", "insert-after", "to-output"]

FINDING_KEYS: Final = ("code", "level", "field", "line", "column", "message", "found", "expected", "fix", "source")
"""The keys of a finding in `interlock.findings/1`."""


class Edit(NamedTuple):
    """One mechanical change to the lines of a response, in the numbering of the text that was checked.

    Args:
        kind: What to do; `to-output` moves lines to the end of OUTPUT, each that begins with a label behind `> `.
        line: 1-based first line that the edit touches; for `insert-after`, 0 means before the first line.
        end_line: 1-based last line that another edit touches.
        text: The new lines, joined by a newline, without a final newline.
    """

    kind: EditKind
    line: int
    end_line: int
    text: str = ""


class Finding(NamedTuple):
    """One answer of one rule.

    Args:
        code: Stable code of the rule, such as `ENV203`.
        level: What it does to what was checked.
        field: The part that is meant: a label (`STATUS`, `EVIDENCE.a11y`), a key (`gates.GATE-UNIT.command`), an item
            of a payload (`plan_steps[0].intent`), an argument, a test; empty for the whole.
        message: What is wrong, in one sentence.
        found: What is there, bounded.
        expected: What would be right.
        fix: What to do, in the imperative.
        line: 1-based line in the text as given; 0 when there is no place.
        column: 1-based column, counted in code points; 0 when there is no place.
        source: The clause of the source that the rule enforces.
        edits: The same fix as line edits, where they do not depend on the agent's intent.
        path: The file, relative to the root, or as given; empty where the caller knows it.
    """

    code: str
    level: Level
    field: str
    message: str
    found: str = ""
    expected: str = ""
    fix: str = ""
    line: int = 0
    column: int = 0
    source: str = ""
    edits: tuple[Edit, ...] = ()
    path: str = ""

    @property
    def refuses(self) -> bool:
        """Whether what was checked does not pass because of it."""
        return self.level in ("error", "retry", "stop")

    @property
    def location(self) -> str:
        """The file with line and column, as far as they are known: `.mcp.json:3:5`."""
        numbers = (self.line, self.column) if self.line else ()
        return ":".join([self.path, *(str(number) for number in numbers if number)])

    @property
    def text(self) -> str:
        """Where, and what is wrong, in one line."""
        return ": ".join(part for part in (self.location, self.field, self.message) if part)

    def to_refusal(self) -> dict[str, str]:
        """Return the six keys by which a refused call is answered; `place` is the part that is meant."""
        return {
            "code": self.code,
            "message": self.message,
            "place": self.field,
            "found": self.found,
            "expected": self.expected,
            "fix": self.fix,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the ten keys of `interlock.findings/1`."""
        return {key: getattr(self, key) for key in FINDING_KEYS}


FindingJson = TypedDict(  # noqa: UP013 - the shape of a finding in JSON, which others extend; a record it is not
    "FindingJson", {"code": str, "message": str, "found": str, "expected": str, "fix": str}
)


class FindingError(InterlockError):
    """One finding ends what is being done: it is carried to where findings are returned."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message, finding.fix, finding.code)
        self.finding = finding
