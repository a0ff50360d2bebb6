"""The `interlock` command: thin doors to the rooms. Data goes to stdout, talk to stderr."""

from typing import Final

from interlock.cli.main import main

__all__ = ["main"]

PUBLIC_MODULES: Final = ("main",)
"""What others import besides the names above."""
