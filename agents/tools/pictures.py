"""Pictures as a model takes them: as they are when they are small, else in parts that are scaled down."""

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from interlock.agents.file_refusals import refusal
from interlock.agents.tools.tool_factory import Block

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SIDE_PX: Final = 1568
"""Providers scale down what is longer; small text on a long page would be lost by that."""
MAX_SENT_BYTES: Final = 2 * 1024 * 1024
"""A larger picture is sent as JPEG, or not at all where Pillow is missing."""

_TYPES: Final = ((b"\x89PNG\r\n\x1a\n", "image/png", "PNG"), (b"\xff\xd8\xff", "image/jpeg", "JPEG"))
_JPEG_QUALITY: Final = 85


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a picture: a block, `{"type": "image", "base64": …, "mime_type": …}`; in how many parts.

    `size_px` is width and height of the whole picture; None where Pillow is missing.
    """

    block: Block
    parts: int
    size_px: tuple[int, int] | None


def is_picture(data: bytes) -> bool:
    """Return whether bytes begin as a PNG or a JPEG."""
    return any(data.startswith(magic) for magic, _, _ in _TYPES)


def show_picture(path: str, data: bytes, part: int) -> Shown:
    """Return one part of a picture, from 1. What is past the last part is refused by the caller, who gets their number.

    Raises:
        RefusedError: AGT915.
    """
    mime, form = next((mime, form) for magic, mime, form in _TYPES if data.startswith(magic))
    try:
        from PIL import Image  # noqa: PLC0415 - an optional extra, needed for large pictures alone
    except ImportError:
        if len(data) > MAX_SENT_BYTES:
            fix = 'Run `pip install "./interlock[browser]"` for Pillow; it is shown in parts then.'
            raise _bad(path, f"{len(data)} bytes, and no Pillow", fix) from None
        return Shown(_block(data, mime), 1, None)
    try:
        with Image.open(io.BytesIO(data), formats=(form,)) as image:
            width, height = image.size
            if max(width, height) <= MAX_SIDE_PX and len(data) <= MAX_SENT_BYTES:
                image.load()
                return Shown(_block(data, mime), 1, (width, height))
            return _band(image, part)
    except Exception as error:
        # Pillow raises what its decoders meet, and refuses a picture of too many pixels.
        raise _bad(path, str(error) or type(error).__name__, "Leave it, and say that it cannot be seen.") from error


def _band(image: "Image", part: int) -> Shown:
    """Return one band of a large picture, counted from the top, as wide and as high as a model takes it."""
    width, height = image.size
    scale = min(1.0, MAX_SIDE_PX / width)
    # Once it is scaled, a band is as high as it may be wide.
    band = max(1, int(MAX_SIDE_PX / scale))
    parts = -(-height // band)
    top = min(part - 1, parts - 1) * band
    # JPEG has neither a palette nor transparency.
    piece = image.convert("RGB").crop((0, top, width, min(height, top + band)))
    if scale < 1:
        piece = piece.resize((MAX_SIDE_PX, max(1, round(piece.height * scale))))  # pyright: ignore[reportUnknownMemberType] - numpy is not installed
    saved, mime = io.BytesIO(), "image/png"
    piece.save(saved, "PNG")
    if saved.tell() > MAX_SENT_BYTES:
        saved, mime = io.BytesIO(), "image/jpeg"
        piece.save(saved, "JPEG", quality=_JPEG_QUALITY)
    return Shown(_block(saved.getvalue(), mime), parts, (width, height))


def _block(data: bytes, mime: str) -> Block:
    return {"type": "image", "base64": base64.b64encode(data).decode("ascii"), "mime_type": mime}


def _bad(path: str, found: str, fix: str) -> Exception:
    return refusal("AGT915", path, found, expected="a PNG or JPEG that decodes", fix=fix)
