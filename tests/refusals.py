"""The errors with a code that tests expect."""

from typing import TypeVar

import pytest

E = TypeVar("E", bound=BaseException)


def raises_code(error: type[E], code: str) -> "pytest.RaisesExc[E]":
    """Expect an error of this type with this code."""
    return pytest.raises(error, check=lambda caught: getattr(caught, "code", "") == code)
