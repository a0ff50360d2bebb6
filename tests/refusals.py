"""The errors with a code, a place, a fix or words that tests expect."""

from typing import TypeVar

import pytest

E = TypeVar("E", bound=BaseException)


def raises_code(error: type[E], code: str, *said: str) -> "pytest.RaisesExc[E]":
    """Expect an error of this type with this code, whose message has these words."""
    return raises_with(error, said=said, code=code)


def raises_with(error: type[E], *fix: str, said: str | tuple[str, ...] = (), **fields: object) -> "pytest.RaisesExc[E]":
    """Expect an error with these attributes, and words of its fix and of its message."""

    def check(caught: E) -> bool:
        assert {name: getattr(caught, name, None) for name in fields} == fields
        assert [word for word in fix if word not in getattr(caught, "fix", "")] == []
        words = (said,) if isinstance(said, str) else said
        assert [word for word in words if word not in getattr(caught, "message", str(caught))] == []
        return True

    return pytest.raises(error, check=check)
