"""Screenshots against one another: how many pixels differ, and where, by Pillow."""

import io
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS: Final = 12_000_000
"""A larger picture is not opened, since a small file can hold an endless one: two of this size take about 0.3 GB."""
_MARGIN: Final = 48
"""So much of the page is shown around an element, in pixels."""
_MAX_CROP: Final = 600
"""So much is shown of the height of an element, in pixels."""
_MAX_SCANS: Final = 100
"""A JPEG is decoded once for each of its scans, each of which may be some bytes; real ones have about ten."""
_ANY_CHANGE: Final = [0.0, *([255.0] * 255)]
_SIGNATURES: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}


class Difference(NamedTuple):
    """How two pictures differ: changed pixels of how many, and a PNG in which they are red; or why it is not known.

    `box` is where they lie: left, top, right and bottom; `height` is that of the higher picture.
    """

    changed: int = 0
    pixels: int = 0
    png: bytes = b""
    unknown: str = ""
    box: tuple[int, int, int, int] = (0, 0, 0, 0)
    height: int = 0

    @property
    def top(self) -> int:
        """The row of pixels from which on the pictures are shown, so that the first change is in sight."""
        return max(0, self.box[1] - _MARGIN)

    @property
    def share(self) -> float:
        """The share of changed pixels, in percent."""
        return 100 * self.changed / self.pixels if self.pixels else 0.0


def kind_of(data: bytes) -> str | None:
    """Return the type of a picture that browsers show and nothing runs in; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _SIGNATURES.items() if data.startswith(begin)), None)


def difference(before: str, after: str, read: Callable[[str], bytes | None]) -> Difference:
    """Compare two pictures by their digests; one that was compared before is not read again."""
    with _ONE_AT_A_TIME:
        known = _KNOWN.get((before, after))
        if known is None:
            was, now = read(before), read(after)
            if was is None or now is None:
                return Difference(unknown="a picture is not there any more")
            known = _KNOWN[before, after] = _compare(was, now)
            while len(_KNOWN) > 1 and sum(len(each.png) for each in _KNOWN.values()) > _MAX_KNOWN_BYTES:
                _KNOWN.pop(next(iter(_KNOWN)))
        return known


_KNOWN: Final[dict[tuple[str, str], Difference]] = {}
_MAX_KNOWN_BYTES: Final = 64 * 1024 * 1024
_ONE_AT_A_TIME: Final = threading.Lock()


def _compare(was: bytes, now: bytes) -> Difference:
    try:
        from PIL import Image, ImageChops  # noqa: PLC0415 - an extra
    except ImportError:
        return Difference(unknown="Pillow, of the extra `browser`, is not installed")
    first, second = _opened(was), _opened(now)
    if isinstance(first, str) or isinstance(second, str):
        return Difference(unknown=first if isinstance(first, str) else str(second))
    size = max(first.width, second.width), max(first.height, second.height)
    if size[0] * size[1] > MAX_PIXELS:
        return Difference(unknown="the pictures are too large to compare")
    one, two = (_padded(each, size) for each in (first, second))
    differs = ImageChops.difference(one, two).convert("L").point(_ANY_CHANGE)  # pyright: ignore[reportUnknownMemberType]
    pale = Image.blend(two.convert("L").convert("RGB"), Image.new("RGB", size, "white"), 0.6)
    pale.paste(Image.new("RGB", size, (200, 0, 40)), mask=differs)
    kept = io.BytesIO()
    pale.save(kept, "PNG")
    box = differs.getbbox() or (0, 0, 0, 0)
    return Difference(differs.histogram()[255], size[0] * size[1], kept.getvalue(), "", box, size[1])


def strip(data: bytes, top: int) -> bytes:
    """Return as PNG the part of a picture from a row on, as high as wide or 600 pixels; empty for none."""
    try:
        from PIL import Image  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport] - an extra
    except ImportError:
        return b""
    with _ONE_AT_A_TIME:
        picture = _opened(data)
    if isinstance(picture, str) or not 0 <= top < MAX_PIXELS // picture.width:
        return b""
    bottom = max(top + 1, min(picture.height, top + max(_MAX_CROP, picture.width)))
    kept = io.BytesIO()
    _padded(picture, (picture.width, bottom)).crop((0, top, picture.width, bottom)).save(kept, "PNG")
    return kept.getvalue()


def around(data: bytes, box: tuple[int, int, int, int]) -> bytes:
    """Return as PNG the part of a picture around an element, outlined in red; empty where that cannot be done.

    Args:
        data: The picture.
        box: Left, top, width and height of the element in pixels; what lies outside the picture is left out.
    """
    try:
        from PIL import ImageDraw  # noqa: PLC0415 - an extra
    except ImportError:
        return b""
    with _ONE_AT_A_TIME:
        picture = _opened(data)
    left, top, width, height = box
    if isinstance(picture, str) or not (0 <= left < picture.width and 0 <= top < picture.height and width and height):
        return b""
    right, bottom = min(left + width, picture.width), min(top + height, picture.height)
    ImageDraw.Draw(picture).rectangle((left - 3, top - 3, right + 2, bottom + 2), outline=(200, 0, 40), width=3)
    sides = (
        max(0, left - _MARGIN), max(0, top - _MARGIN), min(picture.width, right + _MARGIN),
        min(picture.height, bottom + _MARGIN, top + _MAX_CROP),
    )  # fmt: skip
    kept = io.BytesIO()
    picture.crop(sides).save(kept, "PNG")
    return kept.getvalue()


def _opened(data: bytes) -> "Image | str":
    from PIL import Image  # noqa: PLC0415

    try:
        picture = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP"))
        scans = data.count(b"\xff\xda") if data.startswith(b"\xff\xd8") else 1
        if picture.width * picture.height > MAX_PIXELS or scans > _MAX_SCANS:
            return "a picture is too large to compare"
        return picture.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return "a picture cannot be read"


def _padded(picture: "Image", size: tuple[int, int]) -> "Image":
    from PIL import Image  # noqa: PLC0415

    whole = Image.new("RGB", size, "white")
    whole.paste(picture)
    return whole
