"""The path of a run as a picture: a band of statuses, and a lane for each role with its asks, gates and verdicts.

Pure geometry from journal lines. A run may wait for days and then work for seconds, so the axis is not linear: each
stretch between two events is as wide as the square root of its length, which keeps the order and shows short work.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from interlock.core.text import whole
from interlock.graph import failed_gates
from interlock.journal import Entry

WIDTH: Final = 1000.0
_LEAST: Final = 2.0
"""No bar is narrower."""
_GAP_SECONDS: Final = 0.02
"""Added to each stretch, so that events of one moment lie beside one another."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the band in which a task had a status."""

    x: float
    width: float
    status: str
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One ask of a role: from when it was asked to its answer, `look` names its colour."""

    x: float
    width: float
    look: str
    title: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The same ask in words, for the table: seconds, tokens, US dollars, and the number of its line."""

    seq: int
    role: str
    attempt: int
    number: int
    outcome: str
    at: str
    seconds: float
    tokens: int
    usd: float | None


@dataclass(slots=True)
class Lane:
    """What one role did, from left to right."""

    role: str
    bars: list[Bar] = field(default_factory=list[Bar])
    marks: list[Bar] = field(default_factory=list[Bar])
    good: int = 0
    bad: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """The band, the lanes, and all asks in words."""

    band: list[Segment]
    lanes: list[Lane]
    asks: list[Ask]

    @property
    def statuses(self) -> list[tuple[str, str]]:
        """The statuses of each colour of the band, for its legend."""
        names: dict[str, dict[str, None]] = {}
        for part in self.band:
            look = part.status.lower() if part.status in ("BLOCKED", "APPROVED") else ""
            names.setdefault(look, {})[part.status] = None
        return [(look, ", ".join(each)) for look, each in names.items()]


LOOKS: Final[Mapping[str, str]] = {
    "handover": "good", "progress": "good", "pass": "good", "fail": "bad", "blocked": "bad", "invalid": "odd",
    "objection": "odd", "stale": "odd", "spent": "bad",
}  # fmt: skip
"""The colour of an outcome: done, refused work, or an answer that did not count."""


def timeline(entries: Sequence[Entry]) -> Timeline:
    """Return the picture of a run from its journal lines, in their order."""
    asked, asks = _asks(entries)
    moments = {_seconds(entry.at) for entry in entries} | {start for _, start, _ in asked}
    place = _axis(moments)
    lanes: dict[str, Lane] = {}
    refused = _refused(entries)
    for entry, start, ask in asked:
        lane = lanes.setdefault(ask.role, Lane(ask.role))
        gates = refused.get(ask.seq, "")
        look = "bad" if gates else LOOKS.get(ask.outcome, "odd")
        lane.good, lane.bad = lane.good + (look == "good"), lane.bad + (look != "good")
        x, end = place[start], place[_seconds(entry.at)]
        title = f"{ask.role}, attempt {ask.attempt}, ask {ask.number}: {ask.outcome}"
        title += f", refused by {gates}" if gates else ""
        lane.bars.append(Bar(round(x, 1), round(max(_LEAST, end - x), 1), look, title))
    for entry in entries:
        if entry.type == "evidence":
            role = str(entry.data.get("role") or entry.data.get("gate"))
            lane = lanes.setdefault(role, Lane(role))
            good = bool(entry.data.get("ok"))
            title = f"evidence for {entry.data.get('gate')}: {'clean' if good else 'not met'}"
            lane.marks.append(Bar(round(place[_seconds(entry.at)], 1), 3.0, "good" if good else "bad", title))
    return Timeline(_band(entries, place), list(lanes.values()), asks)


def _refused(entries: Iterable[Entry]) -> dict[int, str]:
    """Return the gates that failed after a hand-over in its attempt, by the number of the hand-over's line."""
    handed, found = dict[int, Any](), dict[int, str]()
    for entry in entries:
        data = entry.data
        if entry.type == "answer" and data.get("outcome") == "handover":
            handed[entry.seq] = data.get("attempt")
        elif entry.type == "status" and data.get("to") == "BLOCKED":
            envelope: Mapping[str, Any] = data.get("envelope") or {}
            gates = ", ".join(failed_gates(str(data.get("cause", "")), map(str, envelope.get("fail_reasons", ()))))
            found |= {seq: gates for seq, attempt in handed.items() if gates and attempt == data.get("attempt")}
    return found


def _asks(entries: Iterable[Entry]) -> tuple[list[tuple[Entry, float, Ask]], list[Ask]]:
    """Return each answer with the moment at which its role was asked, as far as the lines have it."""
    begun, last = 0.0, dict[tuple[str, int], float]()
    rows: list[tuple[Entry, float, Ask]] = []
    for entry in entries:
        now = _seconds(entry.at)
        if entry.type in ("status", "evidence", "run_started", "resumed"):
            begun = now
        if entry.type != "answer":
            continue
        data: Mapping[str, Any] = entry.data
        usage: Mapping[str, Any] = data.get("usage") or {}
        role, attempt, seconds = (
            str(data.get("role", "agent")),
            whole(data.get("attempt")),
            usage.get("seconds") or 0.0,
        )
        start = now - seconds if seconds >= 0.1 else last.get((role, attempt), begun) or now
        last[role, attempt] = now
        tokens = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
        ask = Ask(
            entry.seq, role, attempt, whole(data.get("reask")) + 1, str(data.get("outcome", "")), entry.at,
            max(0.0, now - start), tokens, usage.get("usd"),
        )  # fmt: skip
        rows.append((entry, min(start, now), ask))
    return rows, [ask for _, _, ask in rows]


def _axis(moments: Iterable[float]) -> dict[float, float]:
    ordered = sorted(moments)
    widths = [math.sqrt(after - before) + _GAP_SECONDS for before, after in pairwise(ordered)]
    scale = (WIDTH - _LEAST) / (sum(widths) or 1.0)
    place, x = dict[float, float](), 0.0
    for moment, width in zip(ordered, [*widths, 0.0][: len(ordered)], strict=True):
        place[moment] = x
        x += width * scale
    return place


def _band(entries: Sequence[Entry], place: Mapping[float, float]) -> list[Segment]:
    changes = [entry for entry in entries if entry.type == "status"]
    ends = [place[_seconds(entry.at)] for entry in changes[1:]] + [WIDTH][: len(changes)]
    return [
        Segment(
            round(place[_seconds(entry.at)], 1), round(max(_LEAST, end - place[_seconds(entry.at)]), 1),
            str(entry.data["to"]), f"{entry.data['to']} by {entry.data['by']}, attempt {entry.data['attempt']}",
        )
        for entry, end in zip(changes, ends, strict=True)
    ]  # fmt: skip


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
