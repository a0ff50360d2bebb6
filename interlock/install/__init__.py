"""What `interlock init` puts into a project, and how it is taken back."""

from interlock.install.changes import Change, apply, apply_undo, pick, plan, plan_undo
from interlock.install.clients import INSTALLATIONS, NAME, Installation, Launch, find_launch
from interlock.install.errors import InstallError, Problem

__all__ = [
    "INSTALLATIONS",
    "NAME",
    "Change",
    "InstallError",
    "Installation",
    "Launch",
    "Problem",
    "apply",
    "apply_undo",
    "find_launch",
    "pick",
    "plan",
    "plan_undo",
]
