"""Re-asks that are open or to come, and where an answer to one is kept until it is judged.

The key of a kept answer is made from that of the refused one. Nobody knows that before the refusal, and it belongs to
one re-ask alone.
"""

from collections.abc import Mapping
from typing import Any, cast

from interlock.graph.task.asking import may_ask_again, reask_number
from interlock.graph.task.policy import Policy
from interlock.graph.task.state import TaskState
from interlock.graph.task.store import RunStore


def asked_again(values: Mapping[str, Any], policy: Policy, task_id: str, store: RunStore) -> dict[str, str]:
    """Return the ids of the re-asks that are open or to come, by role: of roles that answer from outside.

    Their last answer in this turn was refused, and they have a re-ask left; so they have no verdict yet.
    """
    state = cast("TaskState", values)
    return {
        role: f"{store.run_id}/{task_id}/{role}/{last['attempt']}.{last['turn']}/{last['reask'] + 1}"
        for role, last in values.get("answers", {}).items()
        if reask_number(state, role)
        and may_ask_again(state, role, last["reask"], policy.max_reasks)
        and not store.cost(last["stored"])  # what a runner brings has a cost
    }


def kept_answer(values: Mapping[str, Any], role: str, store: RunStore) -> str | None:
    """Return the answer that is kept for the re-ask of a role, or None."""
    return store.answer(kept_key(values, role)) if reask_number(cast("TaskState", values), role) else None


def kept_key(values: Mapping[str, Any], role: str) -> str:
    """Return the key under which the answer to the re-ask of a role is kept."""
    return f"{values['answers'][role]['stored']}.again"
