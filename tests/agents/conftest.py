"""Asks for the tests of this package."""

from pathlib import Path
from typing import Any

import pytest

from interlock.agents import Ask


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
