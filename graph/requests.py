"""Asking for a file that a person holds, who may be elsewhere: the request, and word of it."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from interlock.core.errors import InterlockError
from interlock.gates.config import load_config
from interlock.graph.engine.folder import state_dir
from interlock.notify import Event, post
from interlock.reservations import Reservations
from interlock.reservations.answers import NegotiateAnswer


def negotiate(
    mine: Reservations, file: str, reason: str, urgency: str, agent_name: str | None = None, wait_seconds: float = 0
) -> NegotiateAnswer:
    """Ask for a file as `mine.negotiate_release` does; a person who holds it is notified before the wait begins."""
    table: Mapping[str, Any] = {}
    with suppress(InterlockError):
        table = load_config(mine.caller.root).notify
    if table:
        answer = mine.negotiate_release(file, reason, urgency, agent_name)
        if answer["status"] not in ("pending", "defer", "timeout"):
            return answer
        _notify_holder(mine, file, answer, table)
        if not wait_seconds:
            return answer
    return mine.negotiate_release(file, reason, urgency, agent_name, wait_seconds)


def _notify_holder(mine: Reservations, file: str, answer: NegotiateAnswer, table: Mapping[str, Any]) -> None:
    thread, held = answer["thread_id"], answer.get("holder")
    if thread is None or held is None:
        return
    with mine.runtime.store.transaction() as tx:
        holder = tx.agent(held["holder"])
    if holder is not None and holder.kind == "person":
        text, way = f"{mine.caller.name} asks {held['holder']} for {file}", f"interlock respond {thread} release"
        event = Event(thread, "waits", "negotiation", thread, "a file of yours is asked for", text, way)
        state_dir(Path(mine.caller.root))
        post(mine.caller.root, table, [event])
