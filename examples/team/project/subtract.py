"""Subtracts."""


def subtract(one: int, other: int) -> int:
    """Return the difference."""
    return one + other
