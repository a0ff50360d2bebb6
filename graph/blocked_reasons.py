"""What the reasons of a BLOCKED say of their gates: a gate failed, a verdict is void, or an agent objects."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

Weight: TypeAlias = Literal["failed", "void", "objected", "unjudged"]

OBJECTS: Final = re.compile(r"(GATE-[A-Z0-9-]+):\s*OBJECTION:\s*(\S.*)", re.ASCII | re.DOTALL)
"""The form of an objection: its gate, and why."""

_WEIGHTS: Final[Mapping[str, Weight]] = {"stale": "void", "objection": "unjudged", "waiver": "unjudged"}
"""What the reasons of a BLOCKED with these causes say of their gates; with others, a gate failed."""


def weighed(cause: str, reasons: Iterable[str]) -> Iterator[tuple[str, Weight, str]]:
    """Yield each reason of a BLOCKED with its gate, and what it says of that gate.

    `failed`; `void` where files changed after the gate was judged or waived; `objected` where the agent objects to it,
    and `unjudged` for what the agent says besides, and where a waiver alone is missing.
    """
    for text in reasons:
        objected = cause in ("objection", "agent") and OBJECTS.fullmatch(text.strip()) is not None
        yield text.partition(":")[0], "objected" if objected else _WEIGHTS.get(cause, "failed"), text


def failed_gates(cause: str, reasons: Iterable[str]) -> list[str]:
    """Return the gates that failed, by the reasons of a BLOCKED, each once."""
    return list(dict.fromkeys(gate for gate, weight, _ in weighed(cause, reasons) if weight == "failed"))
