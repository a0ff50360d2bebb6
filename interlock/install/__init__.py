"""What `interlock init` puts into a project, and how it is taken back."""

from typing import Final

from interlock.install.changes import apply, apply_undo, plan, plan_undo
from interlock.install.clients import CLIENTS, INSTALLATIONS, NAME, Installation, Launch, find_launch, pick
from interlock.install.errors import InstallError
from interlock.install.files import Change

__all__ = [
    "CLIENTS",
    "INSTALLATIONS",
    "NAME",
    "Change",
    "InstallError",
    "Installation",
    "Launch",
    "apply",
    "apply_undo",
    "find_launch",
    "pick",
    "plan",
    "plan_undo",
]

PUBLIC_MODULES: Final = ("clients", "documents", "errors", "files", "githooks", "record", "templates")
"""What others import besides the names above."""
