"""The events of a probe, read from its stream: only those whose seal is whole.

A line is JSON, a space, and a keyed digest of the line and of the digest before it (`probes/channel.py`). Each process
that writes has a chain of its own, a *lane*; lines of a worker travel inside a line of the process that was started.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

Event: TypeAlias = Mapping[str, Any]
_Seal: TypeAlias = Callable[[bytes], str]


@dataclass(slots=True)
class Events:
    """What was read: each event with the lane that it came from, and how many lines bear no valid seal.

    The last line of a run that was stopped is not one of these.
    """

    events: list[tuple[str, Event]] = field(default_factory=list[tuple[str, Event]])
    forged: int = 0

    def of(self, kind: str) -> Iterator[Event]:
        """Yield the events of one kind, of all lanes."""
        return (event for _, event in self.events if event["e"] == kind)


def read_events(stream: bytes, key: bytes, *, hmac_sha256: bool = False) -> Events:
    """Read a stream; a line that does not fit its chain is counted and left out.

    `hmac_sha256`: the digest is that of the probe for node, which has no keyed BLAKE2.
    """

    def seal(data: bytes) -> str:
        if hmac_sha256:
            return hmac.new(key, data, "sha256").hexdigest()
        return hashlib.blake2b(data, key=key, digest_size=16).hexdigest()

    result = Events()
    last: dict[str, bytes] = {}
    for line in stream.split(b"\n")[:-1]:
        _read_line(line, "", seal, last, result)
    return result


def _read_line(line: bytes, lane: str, seal: _Seal, last: dict[str, bytes], result: Events) -> None:
    body, _, mark = line.rpartition(b" ")
    if seal(last.get(lane, lane.encode()) + body).encode() != mark:
        result.forged += 1
        return
    last[lane] = mark
    read: object = json.loads(body)
    event: Event = cast("Event", read) if isinstance(read, dict) else {}
    if not isinstance(event.get("e"), str):  # a probe whose process was changed wrote it
        result.forged += 1
    elif event["e"] == "lane":
        _read_line(str(event.get("line")).encode(), str(event.get("lane")), seal, last, result)
    else:
        result.events.append((lane, event))
