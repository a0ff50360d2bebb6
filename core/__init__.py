"""What every package needs. Nothing happens on import, and only the standard library is; `database` uses an extra."""

from typing import Final

__all__ = ["PUBLIC_MODULES"]

PUBLIC_MODULES: Final = (
    "database",
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
