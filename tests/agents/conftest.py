"""Asks for the tests of this package."""

from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Answer, Ask
from interlock.agents.runners.program_output import STREAMS, Unreadable


def read_output(form: str, output: bytes) -> Answer | Unreadable:
    """Return the answer that a program printed, or why there is none."""
    stream = STREAMS[form]()
    stream.feed(output)
    return stream.end()


class AskMaker:
    """Makes asks with plain values; keyword arguments replace fields."""

    def __call__(self, root: Path | str = ".", **changes: Any) -> Ask:
        values: dict[str, Any] = {
            "run_id": "run-1",
            "task_id": "HOME-UI-001",
            "role": "frontend-implementer",
            "attempt": 1,
            "reask": 0,
            "step": "build",
            "prompt": "Do it.",
            "root": str(root),
            "tree": "sha256:" + "ab" * 32,
            "evidence": {
                "screenshots": ("artifacts/screenshots/a.png", "artifacts/screenshots/b.png"),
                "console": ("artifacts/console/c.jsonl",),
            },
            "reports_dir": "artifacts/reports/HOME-UI-001/1",
            "system": "You build.",
        }
        return Ask(**{**values, **changes})


@pytest.fixture
def make_ask() -> AskMaker:
    return AskMaker()
