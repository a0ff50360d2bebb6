"""What can go wrong while evidence is made: one row per code."""

from typing import Final

from interlock.core.rule import rules
from interlock.gates.errors import CollectorError

_ROWS: Final = {
    "COL301": (
        "No browser.",
        "Run `apt-get install chromium-headless-shell` or `playwright install chromium`, or set INTERLOCK_BROWSER.",
    ),
    "COL302": (
        "Bad target.",
        "Name an HTML file relative to the root, such as site/index.html, or the URL of a server that runs.",
    ),
    "COL303": ("Timeout.", "Look for an endless loop or a request without answer in the page, or allow more time."),
    "COL304": (
        "Browser crashed.",
        "Run it again; when it repeats, read the lines above, or set INTERLOCK_BROWSER to another Chromium.",
    ),
    "COL305": (
        "Page not loaded, or gone.",
        "Make the page answer with a status below 400, load, and stay: take redirects and reloads out.",
    ),
    "COL308": (
        "Frame not analysed.",
        "Serve the frame's document from the page's own origin, or take the frame out of the page.",
    ),
    "COL310": (
        "Collector failed.",
        'Run `pip install "./interlock[browser]"`; when that is done, report the lines above.',
    ),
    "COL311": (
        "Evidence not written.",
        "Make sure that the disk has space and that artifacts/ and its folders are real folders that you may write to.",
    ),
}
"""Code, what it means, and what to do about it."""

ERRORS: Final = rules(_ROWS)


def collector_error(code: str, message: str, fix: str = "") -> CollectorError:
    """Make the error of one row; `fix` replaces the row's own where the place knows better."""
    return CollectorError(code, message, fix or ERRORS[code].remedy)
