"""The language of path patterns: its canonical form, what a pattern matches, and which patterns overlap."""

from interlock.reservations.patterns.globs import quote
from interlock.reservations.patterns.pattern import (
    FOLD_CASE,
    Pattern,
    ancestors,
    as_prefix,
    canonical,
    covers,
    enters,
    index_prefix,
    is_folder,
    is_plain,
    matches,
    may_match,
    meets_plain,
    overlaps,
    plain_prefix,
    relative,
)

__all__ = [
    "FOLD_CASE",
    "Pattern",
    "ancestors",
    "as_prefix",
    "canonical",
    "covers",
    "enters",
    "index_prefix",
    "is_folder",
    "is_plain",
    "matches",
    "may_match",
    "meets_plain",
    "overlaps",
    "plain_prefix",
    "quote",
    "relative",
]
