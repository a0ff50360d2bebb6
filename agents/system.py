"""The prompt of a role: its text for a runner, and the text with its contract for whom no assignment follows.

The contract is part of every assignment, so that each agent sees it once, whatever its runner hands on. A prompt alone,
as an agent file of a client or over MCP, holds it in its own text.
"""

import re
from pathlib import Path
from typing import Final

from interlock.agents.contract import contract
from interlock.agents.role_file import role_file
from interlock.envelope.protocol import Protocol, Role

CONTRACT_MARK: Final = "<!-- contract -->"
"""Where the contract goes in a prompt alone; a file without the mark gets it at its end."""
CONTRACT_END: Final = "<!-- end of the contract -->"
"""Ends a contract that was filled in, so that a file that was printed once can be the prompt of a role."""

_PLACE: Final = re.compile(rf"\s*{re.escape(CONTRACT_MARK)}(?:.*?{re.escape(CONTRACT_END)})?\s*", re.DOTALL)


def role_text(role: Role, *, page: bool, prompt: str | Path | None = None) -> str:
    """Return what a role is and does, without its contract: the system prompt of every ask.

    Raises:
        AgentConfigError: When the role's file cannot be used.
    """
    return _PLACE.sub("\n\n", role_file(role, page=page, prompt=prompt).body).strip("\n")


def system_prompt(role: str, protocol: Protocol, *, page: bool = True, prompt: str | Path | None = None) -> str:
    """Return the prompt of a role with its contract filled in, for an agent that is given no assignment.

    Raises:
        AgentConfigError: When the role's file cannot be used.
    """
    row = protocol.roles[role]
    return _filled(role_file(row, page=page, prompt=prompt).body, row, protocol, page=page)


def render_agent_file(role: str, protocol: Protocol, *, page: bool = True, prompt: str | Path | None = None) -> str:
    """Return a complete Claude Code agent file of a role, the contract filled in. The arguments are `system_prompt`'s.

    Raises:
        AgentConfigError: When the role's file cannot be used, or the role is the orchestrator.
    """
    row = protocol.roles[role]
    file = role_file(row, page=page, prompt=prompt)
    return f"---\n{file.front_matter}\n---\n\n{_filled(file.body, row, protocol, page=page)}\n"


def _filled(body: str, role: Role, protocol: Protocol, *, page: bool) -> str:
    before, after = _PLACE.split(body, maxsplit=1) if CONTRACT_MARK in body else (body, "")
    text = f"{CONTRACT_MARK}\n\n{contract(role.name, protocol, page=page)}\n\n{CONTRACT_END}"
    return "\n\n".join(part.strip("\n") for part in (before, text, after) if part.strip())
