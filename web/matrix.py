"""Attempts as columns, gates as rows: what became of each gate in each attempt, from journal lines alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from interlock.journal import Entry

State: TypeAlias = Literal["passed", "failed", "waived", "objected", "open"]

MARKS: Final[Mapping[State, str]] = {
    "passed": "passed", "failed": "failed", "waived": "waived", "objected": "objected to", "open": "not judged",
}  # fmt: skip


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
    """Return what became of the gates; a gate that nobody judged in an attempt is open there."""
    passed: set[tuple[int, str]] = set()
    failed: dict[tuple[int, str], dict[str, None]] = {}
    noted: dict[tuple[int, str], State] = {}
    attempts: dict[int, None] = {}
    attempt = 1
    for entry in entries:
        data = entry.data
        attempt = data.get("attempt", attempt)
        if entry.type == "status":
            attempts[attempt] = None
        elif entry.type == "answer" and data.get("outcome") in ("pass", "handover"):
            envelope: Mapping[str, Any] = data.get("envelope") or {}
            passed |= {(attempt, gate) for gate in envelope.get("gates_passed", ())}
        elif entry.type == "evidence" and data.get("role") is None and data.get("ok"):
            passed.add((attempt, data["gate"]))
        elif entry.type == "waiver":
            noted[attempt, data["gate"]] = "waived"
        elif entry.type == "objection":
            noted.update({(attempt, gate): "objected" for gate in data.get("gates", ())})
        if entry.type == "status" and data["to"] == "BLOCKED":
            for reason in data["envelope"]["fail_reasons"]:
                failed.setdefault((attempt, reason.partition(":")[0]), {})[reason] = None
        elif entry.type == "status" and data["to"] == "APPROVED":
            passed |= {(attempt, gate) for gate in data["envelope"]["gates_passed"]}

    def cell(attempt: int, gate: str) -> Cell:
        key = attempt, gate
        if key in failed:
            return Cell(attempt, "failed", tuple(failed[key]))
        if key in noted:
            return Cell(attempt, noted[key])
        return Cell(attempt, "passed" if key in passed else "open")

    rows = tuple((gate, tuple(cell(attempt, gate) for attempt in attempts)) for gate in gates)
    return Matrix(tuple(attempts), rows)
