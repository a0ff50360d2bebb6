"""What a caller with a token may not bring into a task (programs, money, the roles of others), and may not see."""

from collections.abc import Container, Sequence
from pathlib import Path
from posixpath import normpath

from interlock import graph
from interlock.envelope import Case, validate
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.gates.errors import TreeError
from interlock.gates.shared import reaches_more, shared
from interlock.server.rules import CallError

_SHARED = "what git tracks, or neither tracks nor ignores, below the root, without links and untracked names with a dot"


def own_page(root: Path, page: str | None, caller: str) -> None:
    """Refuse a page elsewhere to a caller with a token: the browser would fetch it from inside this network.

    Every address has a colon; a page below the root must be one that the caller may see.
    """
    if not caller or page is None:
        return
    if ":" in page:
        raise CallError(
            "MCP408",
            f"the page {page[:200]!r} may be a URL; a caller with a token names files below the root",
            "Name an HTML file below the root without a colon, or have the task begun on the machine itself.",
        )
    refuse_hidden(root, "page", [page])


def refuse_power(task: "graph.Task") -> None:
    """Refuse a task that says who acts, which commands agents may run, or what a run may spend.

    That is for the owner of the machine to say: in interlock.toml, or in a task file.
    """
    for name in ("agents", "commands", "budget", "run"):
        if getattr(task, name):
            raise CallError(
                "MCP403",
                f"the task sets `{name}`",
                f"Leave `{name}` out: interlock.toml says that for every task of this server.",
            )


def own_files(root: Path, task: "graph.Task") -> None:
    """Refuse a task of a caller with a token that reaches files which such a caller may not see.

    Raises:
        CallError: It does; whether these files exist is not disclosed, but for what a wildcard matches.
    """
    refuse_hidden(root, "inputs", task.inputs)
    try:
        # A hidden file in the scope would be named in prompts and findings as soon as the work changes it.
        if reaches_more(root, task.scope):
            raise CallError(
                "MCP408",
                f"`scope` of the task, {', '.join(task.scope)[:200]}, reaches files that are not shown to you",
                f"Name the folders and kinds of files that the work changes, such as `src/*.py`: {_SHARED}.",
            )
    except TreeError:
        return  # it is refused with its reason when the task starts


def own_inputs(root: Path, text: str, known: Container[str]) -> None:
    """Refuse an answer of a caller with a token whose INPUTS_USED or EVIDENCE would disclose hidden files.

    The inputs of the task are known to everybody in it.
    """
    # The validator asks of each input whether it exists: so it is the one that reads the names out of the answer.
    named: list[str] = []

    def exists(path: str) -> bool:
        named.append(path)
        return True

    read = validate(text, Case(input_exists=exists)).reading.fields
    refuse_hidden(root, "INPUTS_USED", [path for path in named if path not in known])
    for label in (f"EVIDENCE.{key}" for key in EVIDENCE_KEYS):
        refuse_hidden(root, label, read[label].texts if label in read else ())


def refuse_hidden(root: Path, place: str, paths: Sequence[str]) -> None:
    """Refuse paths that a caller with a token may not see."""
    # Git knows `a` and not `./a`. An empty text stays one: `normpath` would make the root of it.
    plain = {path: normpath(path) if path else path for path in paths}
    visible = shared(root, plain.values())
    for path, name in plain.items():
        if name not in visible:
            raise CallError(
                "MCP408",
                f"`{place}` names {path[:200]!r}, which is not a file that a caller with a token may see",
                f"Take it out, or name another file: {_SHARED}.",
            )
