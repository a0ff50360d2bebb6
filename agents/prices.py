"""What tokens cost: `[prices]` in `interlock.toml`. A model without a row there has no price, and its use no money."""

from dataclasses import dataclass

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs, in US dollars per million tokens.

    Args:
        input: For tokens that are sent.
        output: For tokens that come back, hidden reasoning included.
        cached_input: For those of the sent ones that the provider had kept; None: they cost what others do.
    """

    input: float
    output: float
    cached_input: float | None = None

    def usd(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return what so many tokens cost; the cached ones are among those that are sent."""
        cached = self.input if self.cached_input is None else self.cached_input
        sent = (input_tokens - cached_tokens) * self.input + cached_tokens * cached
        return (sent + output_tokens * self.output) / _MILLION


FREE = Price(0.0, 0.0)
"""What a model on this machine costs."""
