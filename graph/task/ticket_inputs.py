"""Tickets that a task names among its inputs: fetched when a run begins, and read by its agents as files.

The file of `jira:ABC-12` is `artifacts/sources/jira/ABC-12.md`. What is in it is frozen with the run, and written anew
before each ask, so that no agent changes what another one reads. Answers T1; in a sandbox it is read-only besides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from interlock.core.files import opened_beneath, write_in
from interlock.graph.sources.ticket import Fetched, fetch, source_of
from interlock.graph.task.task import Task

_FOLDER: Final = "artifacts/sources/"


def is_ticket(root: Path, name: str) -> bool:
    """Return whether an input is a ticket of a source, by its name or by its file."""
    return source_of(root, _named(name)) is not None


def with_files(root: Path, task: Task) -> Task:
    """Return a task that names the files of its tickets; the same for one that has none, or names them already."""
    return replace(task, inputs=tuple(_file(name) if is_ticket(root, name) else name for name in task.inputs))


def fetch_inputs(root: Path, task: Task) -> list[Fetched]:
    """Fetch the tickets that a task names.

    Raises:
        GraphError: `SRC101` to `SRC105`.
    """
    return [fetch(root, name) for name in tickets_of(root, task)]


def tickets_of(root: Path, task: Task) -> list[str]:
    """Return the names of the tickets of a task, such as `jira:ABC-12`."""
    return [_named(name) for name in task.inputs if is_ticket(root, name)]


def frozen_texts(tickets: Iterable[Fetched]) -> dict[str, str]:
    """Return what is frozen of tickets: by file, the text that agents read."""
    return {_file(ticket.name): f"{ticket.quoted()}\n" for ticket in tickets}


def write(root: Path, texts: Mapping[str, str]) -> None:
    """Write the files of tickets as they were frozen; no link is followed on the way.

    Raises:
        OSError: They cannot be written.
    """
    for path, text in texts.items():
        *folders, name = path.split("/")
        with opened_beneath(root, folders, make=True) as folder:
            write_in(folder, name, text.encode("utf-8", "replace"), durable=False)


def _file(name: str) -> str:
    if name.startswith(_FOLDER):
        return name
    source, _, ticket = name.partition(":")
    return f"{_FOLDER}{source}/{quote(ticket, safe='')}.md"


def _named(name: str) -> str:
    """Return the name of the ticket whose file an input is; any other input as it is."""
    if not (name.startswith(_FOLDER) and name.endswith(".md")):
        return name
    source, _, ticket = name.removeprefix(_FOLDER).removesuffix(".md").partition("/")
    return f"{source}:{unquote(ticket)}"
