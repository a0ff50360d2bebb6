"""What a run may spend, what it has spent, and the reason when nothing is left."""

from collections.abc import Mapping
from typing import Any

from interlock.agents.usage import Limits, Usage, total
from interlock.graph.task.policy import Policy


def left_for(policy: Policy, spent: Mapping[str, Mapping[str, Any]], role: str) -> Limits:
    """Return what a role may spend on its next answer: what is left of its own limits and of those of the task."""
    own = policy.agents[role].limits if role in policy.agents else Limits()
    return own.after(_of(spent, role)).within(policy.limits.after(_all(spent)))


def spent_by(policy: Policy, spent: Mapping[str, Mapping[str, Any]], role: str) -> str:
    """Say which budget is used up, so that a role is not asked any more; empty when something is left of each.

    Roles that are asked side by side do not see what the others spend meanwhile.
    """
    own = policy.agents[role].limits if role in policy.agents else Limits()
    if found := own.spent(_of(spent, role)):
        return f"the budget of {role} is used up: {found}"
    if found := policy.limits.spent(_all(spent)):
        return f"the budget of the task is used up: {found}"
    return ""


def _of(spent: Mapping[str, Mapping[str, Any]], role: str) -> Usage:
    return Usage.from_json(spent.get(role, {}))


def _all(spent: Mapping[str, Mapping[str, Any]]) -> Usage:
    return total(Usage.from_json(row) for row in spent.values())
