"""What answers cost, how much of that a task or a role may spend, and what tokens cost."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Final

from annotated_types import Gt

LIMIT_NAMES: Final = ("calls", "tokens", "seconds", "usd")
"""The keys of a `budget` table, in the order in which a spent one is looked for."""


_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """What one or several answers cost.

    Calls are requests to a model, or starts of a program. Cached tokens are among those that were sent, and hidden
    reasoning among those that came back. `usd` is None when the price of any of it is not known.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    usd: float | None = 0.0

    @property
    def tokens(self) -> int:
        """All tokens, sent and received."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        # A part whose price is unknown makes the whole unknown: it is never taken for nothing.
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.seconds + other.seconds,
            usd,
        )

    def to_json(self) -> dict[str, Any]:
        """Return JSON values: seconds to the millisecond, money to a millionth."""
        row = asdict(self)
        row["seconds"] = round(self.seconds, 3)
        row["usd"] = None if self.usd is None else round(self.usd, 6)
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Usage":
        """Read back what `to_json` wrote; what is missing is nothing."""
        return cls(**{each.name: row[each.name] for each in fields(cls) if each.name in row})


def total(parts: Iterable[Usage]) -> Usage:
    """Return the sum."""
    return sum(parts, Usage())


def usage_row(used: Usage, limits: "Limits") -> dict[str, Any]:
    """Return what was spent as JSON values, and below `left` what is left of each limit that is set."""
    left = {name: amount for name, amount in asdict(limits.after(used)).items() if amount is not None}
    return {**used.to_json(), "left": {name: round(amount, 6) for name, amount in left.items()}}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be spent, as `Usage` counts it; None is without limit. The names are those of a `budget` table.

    What is written there is above 0; what is left of it may be 0.
    """

    calls: Annotated[int, Gt(0)] | None = None
    tokens: Annotated[int, Gt(0)] | None = None
    seconds: Annotated[float, Gt(0)] | None = None
    usd: Annotated[float, Gt(0)] | None = None

    def after(self, used: Usage) -> "Limits":
        """Return what is left after this use, at least 0; no money is left where the price is unknown."""
        return Limits(
            None if self.calls is None else max(0, self.calls - used.calls),
            None if self.tokens is None else max(0, self.tokens - used.tokens),
            None if self.seconds is None else max(0.0, self.seconds - used.seconds),
            None if self.usd is None else 0.0 if used.usd is None else max(0.0, self.usd - used.usd),
        )

    def within(self, other: "Limits") -> "Limits":
        """Return what both allow."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in LIMIT_NAMES)
        return Limits(*(min((each for each in pair if each is not None), default=None) for pair in pairs))

    def spent(self, used: Usage) -> str:
        """Name the first limit that is used up, with both figures; empty when something is left of each."""
        for name in LIMIT_NAMES:
            limit, amount = getattr(self, name), getattr(used, name)
            if limit is None:
                continue
            if amount is None:
                return f"money of an unknown price was spent, of {limit} {name} allowed"
            if amount >= limit:
                return f"{_shown(amount)} of {_shown(limit)} {name} are spent"
        return ""


def _shown(amount: float) -> str:
    return f"{amount:.4g}" if isinstance(amount, float) else str(amount)


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs, in US dollars per million tokens: a row of `[prices]` in `interlock.toml`.

    A model without a row there has no price, and its use no money. Without `cached_input`, tokens that the provider had
    kept cost what others do.
    """

    input: float
    output: float
    cached_input: float | None = None

    def usd(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return what so many tokens cost; the cached ones are among those that are sent."""
        cached = self.input if self.cached_input is None else self.cached_input
        sent = (input_tokens - cached_tokens) * self.input + cached_tokens * cached
        return (sent + output_tokens * self.output) / _MILLION
