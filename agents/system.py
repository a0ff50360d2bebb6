"""The role's own prompt: its file with the contract filled in, for a runner or as a client's agent file."""

from pathlib import Path
from typing import Final

from interlock.agents.ask import AgentConfigError
from interlock.agents.contract import contract
from interlock.agents.role_file import load_role
from interlock.envelope.labels import closest
from interlock.envelope.protocol import Protocol

CONTRACT_MARK: Final = "<!-- contract -->"
"""Where the generated contract goes; a file without the mark gets it at its end."""


def system_prompt(role: str, protocol: Protocol, *, prompt: str | Path | None = None) -> str:
    """Return the prompt of a role with its contract filled in; a role without a file has the contract alone.

    Raises:
        AgentConfigError: When the role's file cannot be used.
    """
    file = load_role(role, prompt=prompt)
    return _filled(CONTRACT_MARK if file is None else file.body, role, protocol)


def render_agent_file(role: str, protocol: Protocol, *, prompt: str | Path | None = None) -> str:
    """Return a complete Claude Code agent file of a role, the contract filled in.

    Raises:
        AgentConfigError: When the role has no file, or one that cannot be used.
    """
    file = load_role(role, prompt=prompt)
    if file is None:
        known = [name for name in protocol.roles if name != role and load_role(name) is not None]
        near = closest(role, known)
        fix = f"Write `{near}`." if near else f'Write a prompt and name it: `[agents.{role}] prompt = "….md"`.'
        raise AgentConfigError("roles", role, f"there is no prompt for `{role}`", fix)
    return f"---\n{file.front_matter}\n---\n\n{_filled(file.body, role, protocol)}\n"


def _filled(body: str, role: str, protocol: Protocol) -> str:
    text = contract(role, protocol)
    return body.replace(CONTRACT_MARK, text) if CONTRACT_MARK in body else f"{body}\n\n{text}"
