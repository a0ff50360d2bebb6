"""The folder in which Interlock keeps what must lie outside of every checkout."""

import os
from typing import Final

STATE: Final = "INTERLOCK_STATE"


def folder() -> str:
    """Return the folder: below `INTERLOCK_STATE`, else `XDG_STATE_HOME`, else `~/.local/state`; it may not be there."""
    named = os.environ.get(STATE) or os.environ.get("XDG_STATE_HOME")
    return os.path.join(os.path.abspath(named) if named else os.path.expanduser("~/.local/state"), "interlock")
