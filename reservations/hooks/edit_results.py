"""What an editing tool makes of a file, computed from its input before it runs, as far as its input says it.

So the tool's own result is known from what it was asked to do, and never from what a hook finds on the disk later.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from interlock.reservations.hooks.client_input import Call

_WHOLE: Final = {"write": "content", "write_file": "content"}
"""Tool that writes a whole file to the field with its text."""
_PARTS: Final = frozenset({"edit", "multiedit", "replace", "update"})


def results_of(call: Call) -> Callable[[bytes], list[bytes]] | None:
    """Return a function from what a file is to what it may be after the tool; None for a tool that does not say it."""
    tool = call.tool.lower()
    if tool in _WHOLE:
        text = call.tool_input.get(_WHOLE[tool])
        return (lambda before: [*_with_its_line_ends(before, text)]) if isinstance(text, str) else None
    if tool in _PARTS:
        edits = call.tool_input.get("edits", [call.tool_input])
        if isinstance(edits, list):
            rows = cast("list[object]", edits)
            return lambda before: [*_with_its_line_ends(before, _edited(before, rows))]
    return None


def _with_its_line_ends(before: bytes, text: str | None) -> Iterator[bytes]:
    """Yield a text as bytes; where the file has lines that end in CRLF, first with these, as clients keep them."""
    if text is None:
        return
    plain = text.encode("utf-8", "surrogatepass")
    if b"\r\n" in before and b"\r\n" not in plain:
        yield plain.replace(b"\n", b"\r\n")
    yield plain


def _edited(before: bytes, edits: list[object]) -> str | None:
    try:
        text = before.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    for edit in edits:
        row: Mapping[str, Any] = cast("Mapping[str, Any]", edit) if isinstance(edit, dict) else {}
        old, new = row.get("old_string"), row.get("new_string")
        if not isinstance(old, str) or not isinstance(new, str) or (old and old not in text):
            return None
        text = text.replace(old, new, -1 if row.get("replace_all") else 1) if old else new
    return text
