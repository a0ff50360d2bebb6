"""The `interlock` command: thin doors to the rooms. Data goes to stdout, talk to stderr."""

from interlock.cli.main import main

__all__ = ["main"]
