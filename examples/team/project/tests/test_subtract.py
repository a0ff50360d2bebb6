"""What the task has to make true."""

from subtract import subtract


def test_subtract() -> None:
    """A difference is a difference."""
    assert subtract(2, 2) == 0
