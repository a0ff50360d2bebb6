"""What a model said in the stages of a ticket: on disk before it is judged, and its cost in the journal."""

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from interlock.agents.answer import Answer
from interlock.agents.usage import Limits, Usage, total, usage_row
from interlock.core.files import write_atomically
from interlock.graph.engine.paths import journal_run
from interlock.graph.ticket.state import RunState
from interlock.graph.ticket.store import TicketStore
from interlock.journal import Entry, Journal

TYPE: Final = "answer"
MAX_CHARS: Final = 1024 * 1024
"""A longer answer is cut; the gate refuses it for its size all the same."""


class StageAnswers:
    """What the model of one ticket run has said and cost, over every drive of the run.

    An answer that a killed drive kept, and did not write into the journal any more, is written there now.
    """

    def __init__(self, journal: Journal, store: TicketStore) -> None:
        self._journal = journal
        self._folder = store.folder / "answers"
        self._name = journal_run(store.run_id)
        self._lines = answer_lines(journal, store.run_id)
        known = {entry.key for entry in self._lines}
        for path in self._folder.glob("[0-9]*-*[0-9]"):
            if _key(path.name) not in known and (row := _read(path)) is not None:
                self._note(path.name, row)

    @property
    def spent(self) -> Usage:
        """Return what all of them cost."""
        return total(_usage(entry) for entry in self._lines)

    def count(self, stage: str) -> int:
        """Return how many there are of a stage."""
        return sum(entry.data["state"] == stage for entry in self._lines)

    def keep(self, state: RunState, answer: Answer) -> Answer:
        """Keep the answer of the present stage, and return it as it is kept."""
        text = answer.text[:MAX_CHARS]
        row: dict[str, Any] = {
            "state": state["state"],
            "revision": state["revision"],
            "model": answer.model,
            "usage": answer.usage.to_json(),
            "tool_calls": answer.tool_calls,
            "stopped": answer.stopped,
            "text": text,
        }
        name = f"{state['revision']}-{len(self._of(state)) + 1}"
        write_atomically(self._folder / name, json.dumps(row).encode())
        self._note(name, row)
        return Answer(text, answer.usage, answer.model, answer.tool_calls, answer.stopped)

    def kept(self, state: RunState) -> Answer | None:
        """Return the last answer for the present revision; None when there is none, or its file is not what it was."""
        here = self._of(state)
        if not here or here[-1].data["stopped"]:
            return None
        row = _read(self._folder / f"{state['revision']}-{len(here)}")
        if row is None or _line(row) != here[-1].data:
            return None
        return Answer(row["text"], Usage.from_json(row["usage"]), row["model"], row["tool_calls"])

    def _of(self, state: RunState) -> list[Entry]:
        return [entry for entry in self._lines if entry.data["revision"] == state["revision"]]

    def _note(self, name: str, row: dict[str, Any]) -> None:
        self._lines.append(self._journal.append(self._name, _key(name), TYPE, _line(row)))


def answer_lines(journal: Journal, run_id: str) -> list[Entry]:
    """Return the lines of the journal about answers of a ticket run, in order."""
    return [entry for entry in journal.entries(journal_run(run_id)) if entry.type == TYPE]


def ticket_usage(lines: Iterable[Entry], limits: Limits | None = None) -> dict[str, Any]:
    """Return what a ticket run has spent in the form of a task run: `roles` (here its stages) and `all` together."""
    by_stage: dict[str, Usage] = {}
    for entry in lines:
        stage = entry.data["state"]
        by_stage[stage] = by_stage.get(stage, Usage()) + _usage(entry)
    return {
        "roles": {stage: usage_row(used, Limits()) for stage, used in by_stage.items()},
        "all": usage_row(total(by_stage.values()), limits or Limits()),
    }


def _usage(entry: Entry) -> Usage:
    return Usage.from_json(entry.data["usage"])


def _key(name: str) -> str:
    revision, _, number = name.partition("-")
    return f"{revision}/answer/{number}"


def _line(row: dict[str, Any]) -> dict[str, Any]:
    """Return what the journal says of an answer: all but its text, of which it has the digest."""
    kept = {name: value for name, value in row.items() if name != "text"}
    return {**kept, "sha256": sha256(row["text"].encode("utf-8", "surrogatepass")).hexdigest()}


def _read(path: Path) -> dict[str, Any] | None:
    """Return what a file of an answer holds; None where it is gone, or holds none."""
    try:
        row: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    known = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    return known if isinstance(known.get("text"), str) and isinstance(known.get("usage"), dict) else None
