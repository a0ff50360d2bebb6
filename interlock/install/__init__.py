"""What `interlock init` puts into a project, and how it is taken back."""

from typing import Final

from interlock.install.changes import apply, apply_undo, plan, plan_undo
from interlock.install.clients import NAME, Installation, Launch, find_launch
from interlock.install.errors import InstallError
from interlock.install.files import Change
from interlock.install.hooks import CLIENTS, INSTALLATIONS, pick

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

PUBLIC_MODULES: Final = ("errors", "files", "githooks", "hooks", "record", "templates")
"""What others import besides the names above."""
