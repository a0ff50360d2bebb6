"""The arguments of a request and of its answer: what an agent sent, read and judged before the store is asked."""

from typing import NamedTuple

from interlock.core.patterns import Pattern
from interlock.reservations.answers import Refusal
from interlock.reservations.leases import arguments
from interlock.reservations.leases.arguments import MAX_REASON_CHARS, bad_text
from interlock.reservations.leases.runtime import Context
from interlock.reservations.messages.bodies import MAX_ETA_MINUTES
from interlock.reservations.rules import refused
from interlock.reservations.store.records import Urgency


class Ask(NamedTuple):
    """What is asked of a holder, or with no `agent_name` of whoever holds it; `urgency` sets the time limit."""

    pattern: Pattern
    reason: str
    urgency: Urgency
    agent_name: str
    wait_seconds: float
    legacy: bool = False


def read_ask(
    ctx: Context,
    file: str,
    reason: str,
    *,
    urgency: Urgency = "normal",
    agent_name: str | None = None,
    wait_seconds: float = 0,
    legacy: bool = False,
) -> Ask | list[Refusal]:
    """Return what is asked, or everything that is wrong with it."""
    pattern = arguments.typed(ctx, file)
    errors = bad_text("reason", reason, MAX_REASON_CHARS)
    if not isinstance(pattern, Pattern):
        return [refused(pattern, "pattern" if legacy else "file"), *errors]
    seconds = min(max(0.0, wait_seconds), ctx.runtime.settings.max_wait_seconds)
    return errors or Ask(pattern, reason, urgency, agent_name or "", seconds, legacy)


def read_answer(action: str, eta_minutes: float | None, reason: str) -> list[Refusal]:
    """Return what is wrong with an answer: an action that is none of two, `defer` without whole minutes."""
    errors = bad_text("reason", reason, MAX_REASON_CHARS)
    if action not in ("release", "defer"):
        errors.append(arguments.wrong("action", action, "release or defer", "Send one of release or defer."))
    minutes = eta_minutes or 0
    if action == "defer" and not (1 <= minutes <= MAX_ETA_MINUTES and minutes == int(minutes)):
        expected = f"a whole number from 1 to {MAX_ETA_MINUTES}"
        found = "nothing" if eta_minutes is None else eta_minutes
        fix = 'Send action="defer" with eta_minutes, for example 10.'
        errors.append(arguments.wrong("eta_minutes", found, expected, fix))
    return errors
