"""Who does the work: asks, runners, role prompts and the contract that every prompt ends with."""

from typing import Final

from interlock.agents.answer import Answer
from interlock.agents.ask import REMOTE, AgentConfigError, Ask, Remote, Runner, RunnerError
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

PUBLIC_MODULES: Final = ("ask",)
"""What others import besides the names above."""
