"""Attempts as columns, gates as rows: what became of each gate in each attempt, from journal lines alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from interlock.graph import weighed
from interlock.journal import Entry

State: TypeAlias = Literal["passed", "clean", "failed", "waived", "objected", "void", "open"]

MARKS: Final[Mapping[State, str]] = {
    "passed": "passed", "clean": "evidence clean", "failed": "failed", "waived": "waived", "objected": "objection",
    "void": "void", "open": "not judged",
}  # fmt: skip
_BY_COMMAND: Final = (None, "command-gates")
"""Whose evidence is a verdict: it is made by the command of a gate that no role certifies."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One gate in one attempt, with the reasons of who refused it."""

    attempt: int
    state: State
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Matrix:
    """The attempts, and for each gate its cells in their order."""

    attempts: tuple[int, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def matrix(gates: Sequence[str], entries: Iterable[Entry]) -> Matrix:
    """Return what became of the gates last in each attempt; a gate that nobody judged in an attempt is open there."""
    found: dict[tuple[int, str], dict[State, dict[str, None]]] = {}
    attempts: dict[int, None] = {}
    attempt = 1
    for entry in entries:
        attempt = entry.data.get("attempt", attempt)
        if entry.type == "status":
            attempts[attempt] = None
        for gate, state, reason in _said_of(entry):
            known = found.get((attempt, gate), {})
            if state == "clean" and "passed" in known:
                continue
            found[attempt, gate] = {state: known.get(state, {}) | ({reason: None} if reason else {})}

    def cell(attempt: int, gate: str) -> Cell:
        ((state, reasons),) = found.get((attempt, gate), {"open": {}}).items()
        return Cell(attempt, state, tuple(reasons))

    return Matrix(tuple(attempts), tuple((gate, tuple(cell(attempt, gate) for attempt in attempts)) for gate in gates))


def _said_of(entry: Entry) -> Iterator[tuple[str, State, str]]:
    """Yield what a line says of gates, with the reason."""
    data = entry.data
    envelope: Mapping[str, Any] = data.get("envelope") or {}
    match entry.type:
        case "answer" if data.get("outcome") in ("pass", "handover"):
            for gate in envelope.get("gates_passed", ()):
                yield gate, "passed", ""
        case "evidence" if data.get("ok"):
            yield data["gate"], "passed" if data.get("role") in _BY_COMMAND else "clean", ""
        case "waiver":
            yield data["gate"], "waived", ""
        case "status" if data["to"] == "BLOCKED":
            for gate, weight, reason in weighed(str(data.get("cause", "")), envelope["fail_reasons"]):
                if weight != "unjudged":
                    yield gate, weight, reason
        case "status" if data["to"] == "APPROVED":
            for gate in envelope["gates_passed"]:
                yield gate, "passed", ""
        case _:
            pass
