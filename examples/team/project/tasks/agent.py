"""The agent of both tasks: scripted, but what it writes is real and is really tested."""

import time
from pathlib import Path

from interlock.agents import Ask, reply

RIGHT = {"add.py": ("one - other", "one + other"), "subtract.py": ("one + other", "one - other")}


def builder(ask: Ask) -> str:
    """Correct the one function that the task is about."""
    name = "add.py" if ask.task_id == "ADD-1" else "subtract.py"
    path = Path(ask.root) / name
    path.write_text(path.read_text().replace(*RIGHT[name]))
    time.sleep(3)  # a real agent would take longer
    return reply(ask, "READY_FOR_QA", inputs_used=(name,), output=f"{name} is right now.")
