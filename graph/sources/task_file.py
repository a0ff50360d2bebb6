"""The task file of a ticket: what `interlock task new` writes, for a person to look at and to correct."""

import json
import re
from pathlib import Path
from typing import Final

from interlock.core.text import one_line
from interlock.envelope.protocol import ANYBODY
from interlock.gates.config import load_config
from interlock.gates.registry import build_protocol
from interlock.graph.errors import TaskError
from interlock.graph.sources.ticket import Fetched

_FOLDER: Final = "tasks"


def new_task(root: Path, ticket: Fetched) -> Path:
    """Write the task file of a ticket, and return its path; one that is there is not touched.

    The text of the ticket is an input. Nothing of it is in the task itself, which is an instruction to agents and the
    subject of a commit, where GitHub would do what a title says (`fixes #1`); a comment has the title for people.

    Its scope is that of [tickets], else everything; its gates are those that a command decides, and the one for the
    format of answers.

    Raises:
        TaskError: The file is there.
        ConfigError: `interlock.toml` is wrong.
    """
    config = load_config(root)
    rows = build_protocol(config).gates.values()
    gates = [gate.id for gate in rows if gate.command or gate.certifier == ANYBODY]
    # The id of a ticket of Jira is that of a task already.
    is_whole = re.fullmatch("[A-Z][A-Z0-9]*(-[A-Z0-9]+)+", ticket.id)
    parts = re.findall("[A-Z0-9]+", (ticket.id if is_whole else ticket.name).upper())
    values = {
        "task_id": "-".join(parts)[:100].strip("-"),
        "task": f"Do what ticket {ticket.name} asks for; its text is an input.",
        "gates_required": gates,
        "scope": list(config.tickets.scope or ["**"]),
        "inputs": [ticket.name],
    }
    path = root / _FOLDER / f"{values['task_id']}.toml"
    path.parent.mkdir(exist_ok=True)
    text = f"# {one_line(ticket.title)}\n"
    text += f"# {ticket.name}, fetched at {ticket.at}: look at scope and gates before you run it.\n"
    # Texts and lists of JSON are those of TOML.
    text += "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        fix = f"Run it: `interlock run {path.relative_to(root)}`, or remove it first."
        raise TaskError(f"{path.relative_to(root)} is there already", fix) from error
    return path
