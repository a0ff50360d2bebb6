"""Adds."""


def add(one: int, other: int) -> int:
    """Return the sum."""
    return one - other
