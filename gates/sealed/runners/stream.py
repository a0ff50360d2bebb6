"""The events of a probe, read from its stream: only those whose seal is whole.

A line is JSON, a space, and a keyed digest of the line and of the digest before it (`probes/channel.py`). Each process
that writes has a chain of its own, a *lane*; lines of a worker travel inside a line of the process that was started.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Event: TypeAlias = Mapping[str, Any]

MAX_EVENTS: Final = 5_000_000


@dataclass(slots=True)
class Events:
    """What was read.

    Args:
        events: Each with the lane it came from, in the order of the stream.
        forged: The number of lines that bear no valid seal; the last line of a run that was stopped is not one.
    """

    events: list[tuple[str, Event]] = field(default_factory=list[tuple[str, Event]])
    forged: int = 0

    def of(self, kind: str) -> Iterator[Event]:
        """Yield the events of one kind, of all lanes."""
        return (event for _, event in self.events if event["e"] == kind)


def read_events(stream: bytes, key: bytes) -> Events:
    """Read a stream; a line that does not fit its chain is counted and left out."""
    result = Events()
    last: dict[str, bytes] = {}
    lines = stream.split(b"\n")
    for line in lines[:-1]:
        _read_line(line, "", key, last, result)
    return result


def _read_line(line: bytes, lane: str, key: bytes, last: dict[str, bytes], result: Events) -> None:
    body, _, seal = line.rpartition(b" ")
    before = last.get(lane, lane.encode())
    if hashlib.blake2b(before + body, key=key, digest_size=16).hexdigest().encode() != seal:
        result.forged += 1
        return
    last[lane] = seal
    event = json.loads(body)
    if event["e"] == "lane":
        _read_line(str(event["line"]).encode(), str(event["lane"]), key, last, result)
    else:
        result.events.append((lane, event))
