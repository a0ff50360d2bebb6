"""What the task has to make true."""

from add import add


def test_add() -> None:
    """A sum is a sum."""
    assert add(2, 2) == 4
