"""What can go wrong while evidence is made: one row per code."""

from typing import Final, Literal, TypeAlias

from interlock.gates.errors import CollectorError

Code: TypeAlias = Literal[
    "COL301", "COL302", "COL303", "COL304", "COL305", "COL306", "COL307", "COL308", "COL309", "COL310", "COL311"
]

ERRORS: Final[dict[Code, tuple[str, str]]] = {
    "COL301": (
        "no browser",
        "Run `apt-get install chromium-headless-shell` or `playwright install chromium`, or set INTERLOCK_BROWSER.",
    ),
    "COL302": (
        "bad target",
        "Name an HTML file relative to the root, such as site/index.html, or the URL of a server that runs.",
    ),
    "COL303": (
        "timeout",
        "Look for an endless loop or a request without answer in the page, or allow more time.",
    ),
    "COL304": (
        "browser crashed",
        "Run it again; when it repeats, read the lines above, or set INTERLOCK_BROWSER to another Chromium.",
    ),
    "COL305": (
        "page not loaded",
        "Make the page answer with a status below 400 and finish loading; check that its server runs.",
    ),
    "COL306": (
        "page left",
        "Name the page that is meant as the target, and take the automatic redirect or reload out of it.",
    ),
    "COL307": (
        "page gone",
        "Look for what makes the page crash or close itself, and remove it.",
    ),
    "COL308": (
        "frame not analysed",
        "Serve the frame's document from the page's own origin, or take the frame out of the page.",
    ),
    "COL309": (
        "page hides its document",
        "Rename these elements: their name or id takes the place of a DOM property, so that a checker misses content.",
    ),
    "COL310": (
        "collector failed",
        'Run `pip install "./interlock[browser]"`; when that is done, report the lines above.',
    ),
    "COL311": (
        "evidence not written",
        "Make sure that the disk has room and that artifacts/ and its folders are real folders that you may write to.",
    ),
}
"""Code, what it means, and what to do about it."""


def collector_error(code: Code, message: str, fix: str = "") -> CollectorError:
    """Make the error of one row; `fix` replaces the row's own where the place knows better."""
    return CollectorError(code, message, fix or ERRORS[code][1])
