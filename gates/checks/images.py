"""Screenshots: what an image file must be, from its own bytes.

Structure (format, size, end of the file) is read here without a library. Decoding and the look at the pixels need
Pillow, which is imported only then.
"""

import io
import re
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from interlock.core.finding import Finding
from interlock.gates.checks.subject import Subject, Subjects

if TYPE_CHECKING:
    from PIL.Image import Image

Format: TypeAlias = Literal["PNG", "JPEG", "WEBP"]

WIDTHS: Final = (375, 768, 1280)
"""The layout widths, in CSS pixels at scale 1, that a run's screenshots must all show."""

MIN_SIDE_PX: Final = 64
MAX_PIXELS: Final = 64_000_000
"""A full page of 1280 px may be 50,000 px high."""

TOLERANCE: Final = 8
"""Two values of a colour band this close count as the same."""

_EXTENSIONS: Final[dict[str, Format]] = {"png": "PNG", "jpg": "JPEG", "jpeg": "JPEG", "webp": "WEBP"}
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG_MARKER: Final = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
_JPEG_SIZES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_DECODING: Final = (OSError, SyntaxError, ValueError, EOFError, LookupError, OverflowError, struct.error, zlib.error)


@dataclass(frozen=True, slots=True)
class Picture:
    """What the bytes of an image say of it: format, size in pixels, and where the image ends."""

    format: Format
    width: int
    height: int
    end: int


def structure(subject: Subject, gate: str = "") -> Picture | Finding:
    """Read format, size and end of one image, or return why it is none.

    Codes: `EVD521` no image or cut short, `EVD522` name and format differ, `EVD525` data after the end, `EVD526` too
    many pixels. Nothing is decoded.
    """
    data = subject.file.data
    extension = subject.file.path.rpartition(".")[2].lower()
    named = _EXTENSIONS.get(extension)
    try:
        picture = _read(data)
    except (EOFError, struct.error, IndexError):
        return _no_image(subject, gate, "an image that is cut short or damaged")
    if picture is None:
        return _no_image(subject, gate, _looks_like(data))
    if named != picture.format:
        better = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}[picture.format]
        found = f"{picture.format} data in a file named `.{extension}`"
        message, expected = f"{subject.shown} holds {picture.format} data.", f"a name that ends in {better}"
        return subject.finding("EVD522", gate, message, found=found, expected=expected)
    if picture.end < len(data):
        message = f"{subject.shown} goes on for {len(data) - picture.end} bytes after the end of the image."
        found = f"the image ends at byte {picture.end}, the file at byte {len(data)}"
        return subject.finding("EVD525", gate, message, found=found)
    pixels = picture.width * picture.height
    if pixels > MAX_PIXELS:
        message = f"{subject.shown} has {picture.width} x {picture.height} pixels."
        return subject.finding("EVD526", gate, message, found=f"{pixels} pixels", expected=f"at most {MAX_PIXELS}")
    return picture


def judge_image(subject: Subject, gate: str) -> Picture | Finding:
    """Decode one image and look at it: not tiny (`EVD523`), not blank (`EVD524`), Pillow there (`EVD528`)."""
    picture = structure(subject, gate)
    if isinstance(picture, Finding):
        return picture
    if min(picture.width, picture.height) < MIN_SIDE_PX:
        size = f"{picture.width} x {picture.height} px"
        expected = f"at least {MIN_SIDE_PX} px on each side"
        return subject.finding("EVD523", gate, f"{subject.shown} has only {size}.", found=size, expected=expected)
    try:
        from PIL import Image  # noqa: PLC0415 - an optional extra, needed for images alone
    except ImportError:
        message = f"{subject.shown} cannot be judged, because Pillow is not installed."
        return subject.finding("EVD528", gate, message, found="no Pillow")
    try:
        with Image.open(io.BytesIO(subject.file.data), formats=(picture.format,)) as image:
            if image.size != (picture.width, picture.height) or getattr(image, "n_frames", 1) != 1:
                return _no_image(subject, gate, "an image whose parts contradict each other, or an animation")
            image.load()
            different = _different_pixels(image)
    except _DECODING:
        return _no_image(subject, gate, f"{picture.format} data that does not decode")
    if different < max(16, picture.width * picture.height // 50_000):
        found = f"{different} of {picture.width * picture.height} pixels differ from the commonest colour"
        return subject.finding("EVD524", gate, f"{subject.shown} is blank.", found=found)
    return picture


def check_visual(gate: str, subjects: Subjects, *, in_run: bool) -> list[Finding]:
    """Judge the screenshots of a gate; in a run every layout width must be among them (`EVD527`)."""
    judged = [judge_image(subject, gate) for subject in subjects]
    findings = [each for each in judged if isinstance(each, Finding)]
    widths = {each.width for each in judged if isinstance(each, Picture)}
    missing = [width for width in WIDTHS if width not in widths]
    if in_run and subjects and missing and not findings:
        message, found = f"no screenshot is {_and(missing)} px wide.", f"widths {_and(sorted(widths))} px"
        expected = f"one screenshot at each of {_and(WIDTHS)} px"
        findings.append(subjects[-1].finding("EVD527", gate, message, found=found, expected=expected))
    return findings


def _and(numbers: "tuple[int, ...] | list[int]") -> str:
    texts = [str(number) for number in numbers]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _no_image(subject: Subject, gate: str, found: str) -> Finding:
    return subject.finding("EVD521", gate, f"{subject.shown} is no image that a browser could show.", found=found)


def _looks_like(data: bytes) -> str:
    """Describe bytes that are no image."""
    try:
        data[:4096].decode("utf-8")
    except UnicodeDecodeError:
        return f"data that begins with the bytes {data[:4].hex(' ')}"
    return "text"


def _read(data: bytes) -> Picture | None:
    """Read an image's structure by its first bytes; None when they are no image's."""
    if data.startswith(_PNG):
        return _png(data)
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return None


def _png(data: bytes) -> Picture:
    """Walk the chunks of a PNG from IHDR to IEND (PNG §5)."""
    length, kind, width, height = struct.unpack_from(">I4sII", data, 8)
    if kind != b"IHDR" or length != 13:
        raise EOFError
    at = 8
    while True:
        length, kind = struct.unpack_from(">I4s", data, at)
        at += 12 + length
        if at > len(data):
            raise EOFError
        if kind == b"IEND":
            return Picture("PNG", width, height, at)


def _jpeg(data: bytes) -> Picture:
    """Walk the segments of a JPEG from SOI to EOI (ITU T.81 annex B)."""
    width = height = 0
    at = 2
    while True:
        match = _JPEG_MARKER.search(data, at)
        if match is None:
            raise EOFError
        marker, at = data[match.end() - 1], match.end()
        if marker == 0xD9:
            if not width:
                raise EOFError
            return Picture("JPEG", width, height, at)
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", data, at + 3)
        at += struct.unpack_from(">H", data, at)[0]


def _webp(data: bytes) -> Picture:
    """Read the RIFF header and the first chunk of a WebP (RFC 9649 §2)."""
    size = struct.unpack_from("<I", data, 4)[0]
    end = 8 + size + (size & 1)
    if end > len(data):
        raise EOFError
    kind = data[12:16]
    if kind == b"VP8X":
        width = 1 + int.from_bytes(data[24:27], "little")
        height = 1 + int.from_bytes(data[27:30], "little")
    elif kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
    else:
        raise EOFError
    return Picture("WEBP", width, height, end)


def _different_pixels(image: "Image") -> int:
    """Count the pixels of a decoded image, laid on white, that differ from its commonest colour."""
    from PIL import Image, ImageChops  # noqa: PLC0415 - see judge_image

    white = Image.new("RGBA", image.size, "white")
    flat = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    histogram = flat.histogram()
    commonest = tuple(max(range(256), key=histogram[band * 256 : band * 256 + 256].__getitem__) for band in range(3))
    bands = ImageChops.difference(flat, Image.new("RGB", flat.size, commonest)).split()
    largest = ImageChops.lighter(ImageChops.lighter(bands[0], bands[1]), bands[2])
    return sum(largest.histogram()[TOLERANCE + 1 :])
