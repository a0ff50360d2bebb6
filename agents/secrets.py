"""The redactor, by the name that agents know; it is `interlock.redaction`, which every package may import."""

from interlock.redaction import MIN_CHARS, MIN_LINE_CHARS, Redactor, looks_like_key, redact, redactor_for

__all__ = ["MIN_CHARS", "MIN_LINE_CHARS", "Redactor", "looks_like_key", "redact", "redactor_for"]
