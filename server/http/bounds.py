"""How much one caller may ask for: request rate, requests at once, bytes, and how long it may stay silent."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from interlock.core.errors import InterlockError
from interlock.server.rules import MAX_MESSAGE_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server over HTTP allows; rates and counts are for one token, those after `head_seconds` for all.

    Args:
        rate: Requests a second in the long run.
        burst: Requests that may come at once after a pause.
        patience_seconds: How long a request is held back before it is refused: who waits for its answers is slowed.
        in_flight: Requests and open streams at the same time.
        body_bytes: The largest body.
        body_seconds: How long a body may take to arrive.
        sessions_of_token: Open sessions of the older protocol, of one token.
        session_idle_seconds: After this without a request, a session of the older protocol is closed.
        header_bytes: The largest request line with its headers.
        head_seconds: How long those may take to arrive, and how long a new connection may be silent.
        sessions: Open sessions of the older protocol.
        connections: Connections at the same time.
        stop_seconds: How long calls may go on once the server was asked to stop.
    """

    rate: float = 30.0
    burst: int = 60
    patience_seconds: float = 1.0
    in_flight: int = 64
    body_bytes: int = MAX_MESSAGE_BYTES
    body_seconds: float = 30.0
    sessions_of_token: int = 32
    session_idle_seconds: float = 30 * 60.0
    header_bytes: int = 32 * 1024
    head_seconds: float = 10.0
    sessions: int = 256
    connections: int = 512
    stop_seconds: int = 5


@dataclass(slots=True)
class Bucket:
    """A token bucket that may be overdrawn: what is owed is the time to wait. Pure; the caller brings the time.

    It is filled by `rate` each second up to `size`, with which it starts.
    """

    rate: float
    size: float
    filled_at: float
    level: float = field(init=False)

    def __post_init__(self) -> None:
        self.level = self.size

    def take(self, now: float, patience_seconds: float) -> tuple[bool, float]:
        """Take one; gives whether it was taken, and the seconds to wait before going on or before trying again."""
        self.level = min(self.size, self.level + max(0.0, now - self.filled_at) * self.rate)
        self.filled_at = now
        wait = max(0.0, (1.0 - self.level) / self.rate)
        if wait > patience_seconds:
            return False, wait - patience_seconds
        self.level -= 1.0
        return True, wait


class TooMuchError(InterlockError):
    """A caller asked for more than it may; nothing was taken from its share."""

    def __init__(self, found: str, expected: str, retry_seconds: float) -> None:
        super().__init__(found, f"Ask again in {retry_seconds:g} s.")
        self.found = found
        self.expected = expected
        self.retry_seconds = retry_seconds


class Meter:
    """Counts what each caller uses."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}
        self._open: Counter[str] = Counter()

    @contextmanager
    def request(self, key: str) -> Generator[float]:
        """Hold one slot for a request of a caller; gives the seconds by which it is to be held back.

        Raises:
            TooMuchError: The caller has too many requests open, or comes too fast.
        """
        limits = self._limits
        count = self._open[key]
        if count >= limits.in_flight:
            raise TooMuchError(f"{count} requests are open with this token", f"at most {limits.in_flight} at once", 1.0)
        now = self._clock()
        bucket = self._buckets.setdefault(key, Bucket(limits.rate, limits.burst, now))
        taken, wait = bucket.take(now, limits.patience_seconds)
        if not taken:
            allowed = f"at most {limits.rate:g} a second, and {limits.burst} at once after a pause"
            raise TooMuchError("too many requests with this token", allowed, wait)
        self._open[key] = count + 1
        try:
            yield wait
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
