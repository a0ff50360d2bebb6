"""Best of several: candidates of one task, each a run in a tree of its own; the gates decide, then the smaller change.

A candidate is a task of its own, `TASK-C1` and so on, so that its evidence, envelopes and run have names of their own.
It is driven until its review would begin. Of those that got there the one that changed the fewest lines goes on to
review; should it not be approved, the next one does. The others are kept to be compared.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from interlock.gates.config import Config
from interlock.graph.engine.folder import beside_run, journal_of
from interlock.graph.task.roster import staffed
from interlock.graph.task.runs import view_run
from interlock.graph.task.task import Task
from interlock.graph.task.trees import changes
from interlock.redaction import redactor_for

BEFORE_REVIEW: Final = "READY_FOR_REVIEW"
"""The step before which candidates stop."""
CHOSEN: Final = "chosen"
"""The type of the journal line, beside the candidate that goes on, that says which there were."""
CANDIDATE: Final = re.compile(r"(.+)-C\d")
"""The task id of a candidate, with that of its task."""


class Green(NamedTuple):
    """A candidate whose gates passed, with how many lines it changed."""

    lines: int
    run_id: str


def candidates_of(task: Task, config: Config, root: Path) -> list[Task]:
    """Return the candidates of a task; none where one builder works on it.

    Raises:
        AgentConfigError: A model of the candidates is ill-formed.
    """
    for name, row in config.roles.items():
        if (row.candidates or 1) > 1:
            models = [[f"{name}={model}"] for model in row.models] or [[]]
            return [
                replace(
                    staffed(task, config, root, models[number % len(models)]), task_id=f"{task.task_id}-C{number + 1}"
                )
                for number in range(row.candidates or 1)
            ]
    return []


def green_of(root: Path, run_ids: Sequence[str]) -> list[Green]:
    """Return the candidates that wait for their review, the smallest change first."""
    found: list[Green] = []
    for run_id in run_ids:
        view = view_run(run_id, root=root)
        if BEFORE_REVIEW not in view.next or view.abandoned:
            continue
        sealing = view.values.get("sealing", {})
        names = (view.values.get("first_snapshot", ""), view.values.get("snapshot", ""))
        files = changes(root, view.task, sealing, names, (), redactor_for(root)) or []
        rows = [line for file in files for line in file.diff.splitlines() if not line.startswith(("+++", "---"))]
        found.append(Green(sum(line.startswith(("+", "-")) for line in rows), run_id))
    return sorted(found)


def keep_choice(root: Path, chosen: str, green: Sequence[Green], every: Sequence[str]) -> None:
    """Write down which candidates there were when one of them goes on to review."""
    data = {"candidates": [*every], "lines": {row.run_id: row.lines for row in green}}
    journal = journal_of(root)
    if journal.find(beside_run(chosen), CHOSEN) is None:
        journal.append(beside_run(chosen), CHOSEN, CHOSEN, data)
