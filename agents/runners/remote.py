"""The `remote` runner: what an agent outside this process is shown while the run waits for its answer."""

from typing import Final

from interlock.agents.ask import Ask

REQUEST_SCHEMA: Final = "interlock.ask/1"


def remote_request(ask: Ask) -> dict[str, object]:
    """Return the public part of an ask as JSON types.

    The root stays out: a remote agent may work in another checkout, and every path is relative to it.
    """
    return {
        "schema": REQUEST_SCHEMA,
        "ask_id": ask.ask_id,
        "run_id": ask.run_id,
        "task_id": ask.task_id,
        "role": ask.role,
        "step": ask.step,
        "attempt": ask.attempt,
        "turn": ask.turn,
        "reask": ask.reask,
        "tree": ask.tree,
        "evidence": {key: list(paths) for key, paths in ask.evidence.items()},
        "reports_dir": ask.reports_dir,
        "system": ask.system,
        "prompt": ask.prompt,
    }
