"""A ticket of a source, as `jira:ABC-12` names it: fetched word for word, with its digest and the time."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from interlock.agents.quoting import data_block
from interlock.core.json import compact
from interlock.core.text import one_line, shown
from interlock.gates.config import SourceCall, SourceConfig, load_config
from interlock.graph.errors import SOURCE_ANSWER, SOURCE_SETUP, SOURCE_UNKNOWN, GraphError
from interlock.graph.sources import github
from interlock.graph.sources.answer_path import found
from interlock.redaction import redactor_for

MAX_TITLE_CHARS: Final = 300
MAX_QUOTED_BYTES: Final = 48 * 1024
"""So much of a text an agent is shown."""
_MAX_ID_CHARS: Final = 200
_GITHUB: Final = {"id": "number", "title": "title", "text": "body", "state": "state"}
"""The paths in what GitHub answers about an issue."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A ticket as its source had it.

    Args:
        source: The name of the source.
        id: The id that was asked for.
        tracker_id: The id that the source gave; mostly the same.
        title: One line.
        text: The whole text, without keys of the environment; it may be empty.
        state: What the source calls its state; it may be empty.
        at: When it was fetched, in UTC.
    """

    source: str
    id: str
    tracker_id: str
    title: str
    text: str
    state: str
    at: str

    @property
    def name(self) -> str:
        """What it is called here: `jira:ABC-12`."""
        return f"{self.source}:{self.id}"

    @property
    def sha256(self) -> str:
        """The digest of title and text: what an agent goes by. A ticket that only changes its state is the same."""
        return hashlib.sha256(f"{self.title}\n\n{self.text}".encode("utf-8", "surrogatepass")).hexdigest()

    def record(self) -> dict[str, Any]:
        """Return what the journal keeps of it beside the text."""
        row = asdict(self)
        del row["title"], row["text"]
        return row | {"sha256": self.sha256, "bytes": len(self.text.encode("utf-8", "surrogatepass"))}

    def quoted(self, limit_bytes: int = MAX_QUOTED_BYTES) -> str:
        """Return it as an agent is shown it: labelled as data, each line with a bar, cut where it is too long."""
        about = f"{self.name}, as it was at {self.at}, digest sha256:{self.sha256}"
        return data_block(f"the ticket {one_line(about)}", f"{self.title}\n\n{self.text}", limit_bytes)


def source_of(root: Path, name: str) -> tuple[str, SourceConfig] | None:
    """Return the source that the name of a ticket begins with, and its table; None where it names none.

    Raises:
        ConfigError: `interlock.toml` is wrong.
    """
    source, colon, ticket = name.partition(":")
    table = load_config(root).sources.get(source) if colon and ticket else None
    return None if table is None else (source, table)


def known_source(root: Path, name: str) -> tuple[str, SourceConfig]:
    """Return the same of a name that has to be that of a ticket.

    Raises:
        GraphError: `SRC101` there is no such source, `SRC103` it cannot be the name of a ticket.
    """
    if (known := source_of(root, name)) is None:
        names = ", ".join(f"{each}:ID" for each in load_config(root).sources) or "none"
        message = f"{shown(name, 80)} names no source; those here: {names}"
        raise GraphError(message, "Write NAME:ID, with a table [sources.NAME] in interlock.toml.", SOURCE_SETUP)
    number = name.partition(":")[2]
    is_number = number.isascii() and number.isdecimal()
    if len(name) > _MAX_ID_CHARS or not name.isprintable() or " " in name or (known[1].gh and not is_number):
        message = f"{shown(name, 80)} cannot be the name of a ticket"
        fix = f"Write at most {_MAX_ID_CHARS} characters that show, without blanks; of GitHub, a number: github:123."
        raise GraphError(message, fix, SOURCE_UNKNOWN)
    return known


def fetch(root: Path, name: str) -> Fetched:
    """Fetch a ticket.

    Raises:
        GraphError: `SRC101` to `SRC105`; nothing happened.
    """
    source, table = known_source(root, name)
    paths = _GITHUB if table.gh else {key: getattr(table, key) for key in _GITHUB}
    pages, clean = answers(root, name), redactor_for(root).text
    values = {key: next((text for page in pages for text in _texts(page, path)), "") for key, path in paths.items()}
    if paths["title"] and not values["title"]:
        fix = f"`interlock source show {name} --raw` prints the answer; correct `title` in [sources.{source}]."
        raise GraphError(f"the answer of {source} has nothing at `{paths['title']}`", fix, SOURCE_ANSWER)
    asked = name.partition(":")[2]
    return Fetched(
        source,
        asked,
        one_line(clean(values["id"]))[:_MAX_ID_CHARS] or asked,
        one_line(clean(values["title"]))[:MAX_TITLE_CHARS] or asked,
        clean("".join("\n\n".join(_texts(page, paths["text"])) for page in pages)),
        one_line(clean(values["state"]))[:100],
        datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


def answers(root: Path, name: str) -> list[Any]:
    """Return what a source answers about a ticket, a JSON value for each page.

    Raises:
        GraphError: `SRC101` to `SRC105`.
    """
    source, table = known_source(root, name)
    asked = name.partition(":")[2]
    if table.gh:
        return [github.ask(root, f"issues/{asked}", repo=table.repo)]
    # A second to import, which only tickets of MCP servers need.
    from interlock.graph.sources.over_mcp import call  # noqa: PLC0415

    return call(root, source, table, SourceCall(table.tool, table.arguments, table.next), {"id": asked})


def _texts(page: Any, path: str) -> list[str]:
    """Return what an answer has at a path as texts; what is none, such as a document of Jira, as its JSON."""
    values: list[object] = [*found(page, path)] if path else []
    return [compact(cast("object", value)) if isinstance(value, (Mapping, list)) else str(value) for value in values]
