"""Runs `interlock resolve` with a model that is a function, killed with SIGKILL at a point, or to its end.

The point is named by its number, or by its name, which means the first one of that name.

A point lies before and after each effect: a journal line, a file of the run, an answer, a recorded line, a file of the
project, and each submission. The model writes a line into `paid` for each call; `points` lists the points.
"""

import json
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from interlock.agents import files
from interlock.cli.main import main
from interlock.graph import StageRunner, TicketAgent, Tickets
from interlock.graph.ticket import by_model, recording
from interlock.journal import Journal
from interlock.reservations import Reservations
from tests.graph.ticket.scripted import EDIT, SETTINGS, ScriptedModel, calls, says
from tests.graph.victim import Points


class NamedPoints(Points):
    """Dies at the first point of a name."""

    def __init__(self, name: str) -> None:
        super().__init__(0)
        self.name = name

    def pass_by(self, name: str) -> None:
        """Count one point."""
        self.fatal = len(self.names) + 1 if name == self.name else 0
        super().pass_by(name)


class PaidModel(ScriptedModel):
    """Answers each stage with what passes it, and is paid for each call."""

    paid: Path

    def _generate(self, messages: list[BaseMessage], *_given: Any, **_more: Any) -> ChatResult:
        stage = self.tools[-1][-1]
        with self.paid.open("a") as file:
            file.write(f"{stage}\n")
        acts = stage == "act_via_tools" and not any(isinstance(message, ToolMessage) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=calls(EDIT) if acts else says(stage))])


def resolve() -> None:
    """Work the ticket, and count or die."""
    folder, fatal = Path(sys.argv[1]), sys.argv[2]
    points = Points(int(fatal)) if fatal.isdigit() else NamedPoints(fatal)
    for owner, name in (
        (Journal, "append"),
        (Journal, "extend"),
        (by_model, "write_atomically"),
        (StageRunner, "__call__"),
        (recording.RecordingRunner, "__call__"),
        (Tickets, "submit_payload"),
        (files, "write_confined"),
        (Reservations, "release_all"),
    ):
        points.around(owner, name)
    model = PaidModel(script=[], paid=folder / "paid")
    TicketAgent.runner = lambda _agent: StageRunner(model, SETTINGS, None)  # pyright: ignore[reportAttributeAccessIssue]
    words = ["resolve", str(folder / "SHOP-7.md"), "--model", "test:scripted", "--root", str(folder / "shop")]
    try:
        main([*words, "--record", str(folder / "recorded.jsonl")])
    finally:
        (folder / "points").write_text(json.dumps(points.names))


if __name__ == "__main__":
    resolve()
