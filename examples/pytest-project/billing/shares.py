"""How an amount in cents is divided among people; money is never a fraction of a cent."""

from collections.abc import Sequence


def split(cents: int, people: int) -> list[int]:
    """Return equal shares of an amount; shares differ by at most one cent, the larger ones first.

    Args:
        cents: The amount.
        people: How many shares.

    Raises:
        ValueError: There is nobody to share with.
    """
    if people < 1:
        raise ValueError("an amount is divided among at least one person")
    share, left = divmod(cents, people)
    return [share + 1] * left + [share] * (people - left)


def split_by_weight(cents: int, weights: Sequence[int]) -> list[int]:
    """Return shares in proportion to weights, in the same order.

    Args:
        cents: The amount.
        weights: One number for each share, none of them negative.

    Raises:
        ValueError: A weight is negative, or all are zero.
    """
    whole = sum(weights)
    if whole == 0 or min(weights) < 0:
        raise ValueError("weights are zero or more, and one of them is more")
    return [cents * weight // whole for weight in weights]
