"""What a check reads: the payload, the stages before it, and its surroundings, with whatever has its shape."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from interlock.gates.stages.sources import Sources
from interlock.gates.stages.stage import Payload, Surroundings

MAX_TEXT_CHARS: Final = 16_000
"""How long one text may be."""

MAX_ENTRIES: Final = 200
"""How many entries one list may have."""

UNFIT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")
"""Control characters but for line ends and tabs, and halves of characters."""


@dataclass(frozen=True, slots=True)
class Case:
    """One payload to check, in which anything may be, after those of the passed stages."""

    payload: Payload
    earlier: Mapping[str, Any]
    surroundings: Surroundings
    sources: Sources


def fit_text(value: object) -> str:
    """Return a text that a check may use; empty for anything else."""
    fit = isinstance(value, str) and len(value) <= MAX_TEXT_CHARS and not UNFIT.search(value)
    return cast("str", value) if fit else ""


def blank(text: str) -> bool:
    """Return whether a text shows nothing."""
    return not any(char.isprintable() and not char.isspace() for char in text)


def texts_at(holder: Mapping[str, Any], name: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of a list, each with its position; what is no text is passed over."""
    for at, entry in enumerate(_entries(holder, name)):
        if text := fit_text(entry):
            yield at, text


def items_at(holder: Mapping[str, Any], name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list, each with its position; what is no object is passed over."""
    for at, entry in enumerate(_entries(holder, name)):
        if isinstance(entry, Mapping):
            yield at, cast("Mapping[str, Any]", entry)


def _entries(holder: Mapping[str, Any], name: str) -> list[object]:
    value: object = holder.get(name)
    return list(cast("list[object]", value)[:MAX_ENTRIES]) if isinstance(value, list | tuple) else []
