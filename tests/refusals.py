"""The errors with a code, or with a place and a fix, that tests expect."""

from typing import TypeVar

import pytest

E = TypeVar("E", bound=BaseException)


def raises_code(error: type[E], code: str) -> "pytest.RaisesExc[E]":
    """Expect an error of this type with this code."""
    return pytest.raises(error, check=lambda caught: getattr(caught, "code", "") == code)


def raises_told(error: type[E], *fix: str, **told: object) -> "pytest.RaisesExc[E]":
    """Expect an error with these attributes, and a fix that has these words."""

    def check(caught: E) -> bool:
        assert {name: getattr(caught, name, None) for name in told} == told
        assert [word for word in fix if word not in getattr(caught, "fix", "")] == []
        return True

    return pytest.raises(error, check=check)
