"""Untrusted text made safe to show: nothing that a file holds may drive a terminal or a log reader."""

from typing import Final

MAX_SHOWN: Final = 400
"""The longest value that a renderer for people shows, in characters."""


def visible(text: str) -> str:
    r"""Return text in which every character that does not show as itself is written as an escape.

    Controls, format characters (bidi marks, zero-width), line separators, lone surrogates and unassigned code points
    become `\xHH`, `\uHHHH` or `\UHHHHHHHH`.
    """
    return text if text.isprintable() else "".join(map(_escape, text))


def clipped(text: str, limit: int = MAX_SHOWN) -> str:
    """Return visible text of a bounded length."""
    return visible(text if len(text) <= limit else text[:limit] + "…")


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
