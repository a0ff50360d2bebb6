"""Many patterns beside one path: which of them match it."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from interlock.core import patterns

ValueT = TypeVar("ValueT")


class Near(Generic[ValueT]):
    """Many patterns in canonical form, and the value of each.

    A pattern that is one plain path, as most leases are, is a look into a table.

    Args:
        rows: Text, index prefix and value of each.
    """

    def __init__(self, rows: Iterable[tuple[str, str, ValueT]]) -> None:
        self.values: list[ValueT] = []
        self._plain: dict[str, list[ValueT]] = {}
        self._wide: list[tuple[str, ValueT]] = []
        for text, prefix, value in rows:
            self.values.append(value)
            if text == prefix:  # one path that needs no brackets
                self._plain.setdefault(prefix, []).append(value)
            else:
                self._wide.append((text, value))

    def covering(self, path: str) -> list[ValueT]:
        """Return the values of the patterns that match a path as the file system has it; plain paths first."""
        plain = self._plain.get(path, ())
        return [*plain, *(value for text, value in self._wide if patterns.may_match(text, path))]
