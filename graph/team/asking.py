"""What is asked of workers: a run that begins elsewhere, and which queue does a step of it."""

from pathlib import Path
from typing import Final

from interlock.gates.config import Config, load_config
from interlock.graph.engine import legs
from interlock.graph.task.apart import Start, ask_to_begin
from interlock.graph.task.clone import target_commit
from interlock.graph.task.machine import COMMAND_GATES
from interlock.graph.task.nodes import EVIDENCE_SUFFIX
from interlock.graph.task.policy import Policy
from interlock.graph.task.roster import staffed
from interlock.graph.task.task import load_task

_KINDS: Final = {"command": "command", "acp": "command", "chat": "llm"}
"""Who answers for a role, and the queue that does it; whatever else is done where the run is driven."""


def queue_of(policy: Policy, node: str, config: Config) -> str:
    """Return the queue that does a node of a run."""
    if node == COMMAND_GATES:
        return "command"
    if node.endswith(EVIDENCE_SUFFIX):
        return "browser"
    setting = policy.agents.get(node)
    if setting is None:
        return "drive"
    provider = str(setting.settings.get("model", "")).partition(":")[0]
    queue = _KINDS.get(str(setting.settings.get("runner", "")).partition(":")[0], "drive")
    return f"llm-{provider}" if queue == "llm" and provider in config.workers.rates else queue


def submit(root: Path, path: Path, *, land: bool = False) -> str:
    """Put a task into the queue, and return the id of its run; a worker begins it.

    Raises:
        TaskError, ConfigError: The task file is wrong.
        GraphError: `RUN654` the project has no database; else as for `ask_to_begin`.
        DatabaseError: As there.
    """
    config = load_config(root)
    start = Start(target_commit(root, config.landing.target))
    return ask_to_begin(root, legs.needed(root), staffed(load_task(path), config, root, ()), start, land=land)
