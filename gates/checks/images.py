"""Screenshots: a file that decodes as an image, and shows something.

Pillow is an extra, and imported only here. Where no gate judges an image, its first bytes are enough.
"""

import io
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.checks.subject import Subject, Subjects

TOLERANCE: Final = 8
"""Two values of a colour band this close count as the same."""

_FORMATS: Final = ("PNG", "JPEG", "WEBP")
_SIGNATURES: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}


def image_type(data: bytes) -> str | None:
    """Return the type of a picture that browsers show and nothing runs in; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _SIGNATURES.items() if data.startswith(begin)), None)


def not_an_image(subject: Subject, gate: str = "") -> Finding | None:
    """Return why a file is no image by its first bytes (`EVD521`); nothing is decoded."""
    if image_type(subject.file.data):
        return None
    return _no_image(subject, gate, f"a file that begins with {subject.file.data[:8]!r}")


def check_visual(gate: str, subjects: Subjects) -> list[Finding]:
    """Judge the screenshots of a gate."""
    return [finding for subject in subjects if (finding := judge_image(subject, gate))]


def judge_image(subject: Subject, gate: str) -> Finding | None:
    """Decode one image (`EVD521`, without Pillow `EVD528`) and look at it (`EVD524`: it is blank)."""
    if refused := not_an_image(subject, gate):
        return refused
    try:
        from PIL import Image  # noqa: PLC0415 - an optional extra, needed for images alone
    except ImportError:
        message = f"{subject.shown} cannot be judged, because Pillow is not installed."
        return subject.finding("EVD528", gate, message, found="no Pillow")
    try:
        # Other decoders of Pillow may start programs, as that of PostScript does; no screenshot needs them.
        with Image.open(io.BytesIO(subject.file.data), formats=_FORMATS) as image:
            histogram = image.convert("RGB").histogram()
    except Exception as error:  # noqa: BLE001 - a decoder raises whatever broken data makes it stumble over
        return _no_image(subject, gate, f"data that does not decode: {type(error).__name__}")
    # Pillow puts the histograms of red, green and blue one behind the other.
    bands = [histogram[at : at + 256] for at in (0, 256, 512)]
    values = [[value for value, count in enumerate(band) if count] for band in bands]
    if all(band[-1] - band[0] <= TOLERANCE for band in values):
        found = "all pixels have the same colour"
        return subject.finding("EVD524", gate, f"{subject.shown} is blank.", found=found)
    return None


def _no_image(subject: Subject, gate: str, found: str) -> Finding:
    return subject.finding("EVD521", gate, f"{subject.shown} is no image that a browser could show.", found=found)
