"""Many patterns beside one path or one pattern: which of them meet it, without reading more of them than is near.

A pattern that is one plain path, as most leases are, is a look into a table. Of the others those are read whose literal
beginning allows it.
"""

from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from interlock.core.finding import Finding
from interlock.reservations.patterns import pattern
from interlock.reservations.patterns.pattern import canonical, is_folder, may_match, overlaps

MAX_COMPARED: Final = 2000
"""At most this many pairs of patterns with wildcards are compared one by one: a third of a second."""

ValueT = TypeVar("ValueT")


class Near(Generic[ValueT]):
    """Patterns in canonical form, and the value of each, from rows of text, index prefix and value."""

    def __init__(self, rows: Iterable[tuple[str, str, ValueT]]) -> None:
        self._values: list[ValueT] = []
        self._plain: dict[str, list[ValueT]] = {}
        self._wide: dict[str, list[tuple[str, ValueT]]] = {}
        self._compared = 0
        for text, prefix, value in rows:
            self._values.append(value)
            if pattern.is_plain(text, prefix):
                self._plain.setdefault(prefix, []).append(value)
            else:
                self._wide.setdefault(prefix, []).append((text, value))

    def __len__(self) -> int:
        """Return how many patterns there are."""
        return len(self._values)

    def covering(self, path: str) -> list[ValueT]:
        """Return the values of the patterns that match a path as the file system has it; plain paths first.

        A pattern that cannot be read counts as a match: what is not understood is not let through.
        """
        key = pattern.as_prefix(path)
        found = list(self._plain.get(key, ()))
        for prefix in pattern.ancestors(key) if self._wide else ():
            for text, value in self._wide.get(prefix, ()):
                if (is_folder(text, prefix) and key != prefix) or may_match(text, path):
                    found.append(value)
        return found

    def meeting(self, text: str) -> list[ValueT]:
        """Return what has a path in common with a pattern; `**` is everything.

        A pattern that cannot be read meets everything. After `MAX_COMPARED` comparisons what is near counts as met.
        """
        wanted = canonical(text)
        if isinstance(wanted, Finding) or wanted.text == "**":
            return list(self._values)
        if wanted.literal:
            return self.covering(wanted.path)
        begins, whole = wanted.prefix, is_folder(wanted.text, wanted.prefix)
        found = [
            value
            for prefix, values in self._plain.items()
            if prefix.startswith(begins) and (whole or pattern.meets_plain(wanted, prefix))
            for value in values
        ]
        for prefix, rows in self._wide.items():
            if prefix.startswith(begins) and (whole or pattern.enters(wanted, prefix)):
                found += [value for row, value in rows if whole or is_folder(row, prefix) or self._meets(wanted, row)]
            elif begins.startswith(prefix) and prefix != begins:
                found += [value for row, value in rows if is_folder(row, prefix) or self._meets(wanted, row)]
        return found

    def _meets(self, wanted: pattern.Pattern, text: str) -> bool:
        self._compared += 1
        held = canonical(text) if self._compared <= MAX_COMPARED else None
        return held is None or isinstance(held, Finding) or overlaps(wanted, held)
