"""What tokens cost: `[prices]` in `interlock.toml`. A model without a row there has no price, and its use no money."""

from dataclasses import dataclass

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs, in US dollars per million tokens.

    Args:
        input: For tokens that are sent; those that a provider keeps cached are counted as if they were not.
        output: For tokens that come back, hidden reasoning included.
    """

    input: float
    output: float

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return what so many tokens cost."""
        return (input_tokens * self.input + output_tokens * self.output) / _MILLION


FREE = Price(0.0, 0.0)
"""What a model on this machine costs."""
