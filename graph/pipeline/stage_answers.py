"""What a model said in the stages of a ticket: on disk before it is judged, and its cost in the journal."""

from hashlib import sha256
from typing import Any, Final

from interlock.agents.answer import Answer
from interlock.agents.usage import Usage, total
from interlock.graph.pipeline.state import RunState
from interlock.graph.pipeline.store import TicketStore, journal_run
from interlock.graph.store import write_atomically
from interlock.journal import Entry, Journal

TYPE: Final = "answer"
MAX_CHARS: Final = 1024 * 1024
"""A longer answer is cut; the gate refuses it for its size all the same."""


class StageAnswers:
    """What the model of one ticket run has said and cost, over every drive of the run.

    Args:
        journal: The root's journal.
        store: The files of the run.
    """

    def __init__(self, journal: Journal, store: TicketStore) -> None:
        self._journal = journal
        self._store = store
        self._name = journal_run(store.run_id)
        self._lines: list[Entry] = [entry for entry in journal.entries(self._name) if entry.type == TYPE]

    @property
    def spent(self) -> Usage:
        """Return what all of them cost."""
        return total(Usage.from_json(entry.data["usage"]) for entry in self._lines)

    def count(self, stage: str) -> int:
        """Return how many there are of a stage."""
        return sum(entry.data["state"] == stage for entry in self._lines)

    def keep(self, state: RunState, answer: Answer) -> Answer:
        """Keep the answer of the present stage, and return it as it is kept."""
        text = answer.text[:MAX_CHARS]
        data = text.encode("utf-8", "surrogatepass")
        number = sum(entry.data["revision"] == state["revision"] for entry in self._lines) + 1
        if not answer.stopped:
            write_atomically(self._store.folder / "answers" / f"{state['revision']}-{number}", data)
        line: dict[str, Any] = {
            "state": state["state"],
            "revision": state["revision"],
            "model": answer.model,
            "usage": answer.usage.to_json(),
            "tool_calls": answer.tool_calls,
            "stopped": answer.stopped,
            "sha256": sha256(data).hexdigest(),
        }
        key = f"{state['revision']}/answer/{number}"
        self._lines.append(self._journal.append(self._name, key, TYPE, line))
        return Answer(text, answer.usage, answer.model, answer.tool_calls, answer.stopped)

    def kept(self, state: RunState) -> Answer | None:
        """Return the last answer for the present revision; None when there is none, or its file is not what it was."""
        here = [entry for entry in self._lines if entry.data["revision"] == state["revision"]]
        if not here or here[-1].data["stopped"]:
            return None
        line = here[-1].data
        try:
            data = (self._store.folder / "answers" / f"{state['revision']}-{len(here)}").read_bytes()
        except FileNotFoundError:
            return None
        if sha256(data).hexdigest() != line["sha256"]:
            return None
        text = data.decode("utf-8", "surrogatepass")
        return Answer(text, Usage.from_json(line["usage"]), line["model"], line["tool_calls"])
