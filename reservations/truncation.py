"""How long an answer to an agent may be: its lists are cut to what fits, and what is left out is counted.

The entry points of agents bound what they answer; the command line and everything inside gets the whole.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from interlock.core.json import compact

MAX_ANSWER_BYTES: Final = 16 * 1024
"""The lists of an answer are cut so that it is at most this long as JSON in UTF-8.

A result carries it twice, as text and as structured content.
"""

_SPACE_FOR_REST: Final = 512

AnswerT = TypeVar("AnswerT", bound=Mapping[str, Any])


def bounded(answer: AnswerT) -> AnswerT:
    """Return an answer whose lists are cut to `MAX_ANSWER_BYTES`; one that fits comes back as it is.

    Lists get space in their order, and `rest` says of each that is cut how many rows are missing. `fetch_inbox` has a
    bound of its own, with a cursor.
    """
    if size(answer) <= MAX_ANSWER_BYTES:
        return answer
    lists: dict[str, list[Any]] = {name: rows for name, rows in answer.items() if isinstance(rows, list)}
    fitted: dict[str, Any] = {**answer, **{name: [] for name in lists}}
    rest: dict[str, int] = {}
    space = MAX_ANSWER_BYTES - _SPACE_FOR_REST - size(fitted)
    for name, rows in lists.items():
        for row in rows:
            space -= size(row) + 1
            if space < 0:
                rest[name] = len(rows) - len(fitted[name])
                break
            fitted[name].append(row)
    return cast("AnswerT", fitted | {"rest": rest})


def size(value: object) -> int:
    """Return how many bytes a value has as JSON in UTF-8, without blanks."""
    return len(compact(value).encode("utf-8", "replace"))
