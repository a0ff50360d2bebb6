"""Who does the work: asks, runners, role prompts and the contract that every prompt ends with."""

from typing import Final

from interlock.agents.ask import REMOTE, AgentConfigError, Answer, Ask, Remote, Runner, RunnerError
from interlock.agents.reply import reply
from interlock.agents.runners import make_runner, remote_request

__all__ = [
    "REMOTE",
    "AgentConfigError",
    "Answer",
    "Ask",
    "Remote",
    "Runner",
    "RunnerError",
    "make_runner",
    "remote_request",
    "reply",
]

PUBLIC_MODULES: Final = (
    "ask",
    "changes",
    "confined",
    "contract",
    "file_refusals",
    "files",
    "model_spec",
    "prompt",
    "quoting",
    "role_file",
    "runners",
    "tables",
    "tools",
    "usage",
)
"""What others import besides the names above: the parts of an ask, of its records and of a runner's settings."""
