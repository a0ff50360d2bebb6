"""The `interlock` command: thin commands over the packages. Data goes to stdout, messages to stderr."""

from typing import Final

from interlock.cli.main import main

__all__ = ["main"]

PUBLIC_MODULES: Final = ("main",)
"""What others import besides the names above."""
