"""Subagents of one session: agents of their own, with the name `SESSION/ID` that the client's hooks tell.

Two of them cannot both hold a file. What the session's own agent holds is free for its subagents, which work for it: a
subagent's edit takes a lease of its own beside that. When a subagent has ended, its session holds what it held.
"""

from typing import TYPE_CHECKING, Final

from interlock.reservations.store.records import MAX_NAME_CHARS, key_of

if TYPE_CHECKING:
    from interlock.reservations.store.sqlite_rows import Transaction

CLIENT: Final = "subagent"
"""How a subagent calls: by its session's client, whose process stays bound to the session's own agent."""


def name_of(session: str, agent_id: str) -> str:
    """Return the name of a subagent."""
    kept = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in agent_id)
    return f"{session}/{kept}"[:MAX_NAME_CHARS] if agent_id else session


def session_of(tx: "Transaction", name: str) -> str:
    """Return the key of the agent of a subagent's session; empty for who is no subagent."""
    agent = tx.agent(name) if "/" in name else None
    return key_of(name.rpartition("/")[0]) if agent is not None and agent.client == CLIENT else ""


def is_own(tx: "Transaction", name: str, holder: str) -> bool:
    """Return whether a lease is an agent's own, or that of its session."""
    return key_of(holder) in {key_of(name), session_of(tx, name) or key_of(name)}
