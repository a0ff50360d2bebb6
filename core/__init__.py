"""What every package needs. It uses the standard library alone, and nothing happens on import."""

from typing import Final

__all__ = ["PUBLIC_MODULES"]

PUBLIC_MODULES: Final = (
    "errors",
    "exports",
    "files",
    "finding",
    "git",
    "json",
    "locks",
    "patterns",
    "private_file",
    "process",
    "project",
    "record",
    "render",
    "rule",
    "state",
    "text",
)
