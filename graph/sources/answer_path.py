"""What an answer of a source holds at a path."""

from collections.abc import Iterator, Mapping
from typing import Any, cast


def found(data: Any, path: str) -> Iterator[Any]:
    """Yield what an answer holds at a path: names with dots between them, `[0]` an entry of a list, `[*]` each."""
    name, _, rest = path.partition(".")
    name, *indexes = name.replace("]", "").split("[")
    values: list[Any] = [data]
    if name:
        values = [each[name] for each in values if isinstance(each, Mapping) and name in each]
    for index in indexes:
        lists = [cast("list[Any]", each) for each in values if isinstance(each, list)]
        values = [item for each in lists for item in (each if index == "*" else each[int(index) :][:1])]
    for each in values:
        if rest:
            yield from found(each, rest)
        elif each is not None:
            yield each
