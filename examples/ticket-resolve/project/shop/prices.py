"""What a cart costs."""


def total(prices: list[float]) -> float:
    """Return the sum of some prices."""
    return sum(prices)
