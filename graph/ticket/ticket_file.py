"""A ticket as a file: Markdown with front matter or headings, or JSON. What it says is data for the first stage."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from interlock.gates.stages import Surroundings, judge_stage
from interlock.graph.errors import GraphError
from interlock.graph.ticket.rules import wrong_ids
from interlock.graph.ticket.spec import TICKET
from interlock.redaction import KeyRefused, clean_arguments, redactor_for

MAX_FILE_BYTES: Final = 256 * 1024
"""No ticket that fits its stage is larger."""

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id", "ticket_id", "external_ticket_id", "key"),
    "title": ("title", "summary"),
    "description": ("description", "body"),
    "source": ("source", "external_source"),
}
"""What a ticket may hold, and the keys that it is read from, of each no more than one."""

_FENCE: Final = "---"
_LINE: Final = re.compile(r"(?P<key>[A-Za-z_]+)\s*:(?:\s+(?P<value>.*))?")
_HEADING: Final = re.compile(r"#\s+(?:(?P<id>[A-Z][A-Z0-9]*-[0-9]+):\s+)?(?P<title>.+?)\s*#*")
_NAMED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class TicketFileError(GraphError):
    """The ticket's file cannot be used; nothing was begun.

    Fix: It lacks a key, or a value does not fit. Correct what the message names and start again.
    """

    code = "RUN609"


@dataclass(frozen=True, slots=True)
class TicketFile:
    """One ticket, word for word."""

    ticket_id: str
    title: str
    description: str
    source: str

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of the first stage: the ticket, word for word."""
        return {
            "external_source": self.source,
            "external_ticket_id": self.ticket_id,
            "title": self.title,
            "description": self.description,
        }


def read_ticket(path: Path) -> TicketFile:
    """Return the ticket of a file.

    A `.json` file holds one object. Any other is Markdown: `key: value` lines between two lines of `---` at its
    beginning, then the text. Without a `title` there, the first heading of the first level is the title, and
    `# ABC-1: Title` names the id too; without an id, the file's name without its ending is the id.

    Raises:
        TicketFileError: It cannot be read, holds a key that no ticket has, or says too little or too much.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise _wrong(path, f"it cannot be read: {error.strerror}", "Name a readable file.") from error
    except UnicodeDecodeError as error:
        raise _wrong(path, f"it is not UTF-8 at byte {error.start}", "Save it as UTF-8.") from error
    if len(data) > MAX_FILE_BYTES:
        raise _wrong(path, f"it is larger than {MAX_FILE_BYTES} bytes", "Give the ticket alone, and name other texts.")
    found = _json(path, text) if path.suffix.lower() == ".json" else _markdown(path, text.replace("\r\n", "\n"))
    try:
        found = clean_arguments(found, redactor_for(path))
    except KeyRefused as error:
        raise _wrong(path, error.message, error.fix) from error
    ticket = TicketFile(
        found.get("id") or path.stem,
        found.get("title", ""),
        found.get("description") or found.get("title", ""),
        found.get("source") or "file",
    )
    if wrong_ids(ticket.ticket_id, None) is not None or _NAMED.fullmatch(ticket.ticket_id) is None:
        fix = (
            "Write `id: ABC-1` between two lines of `---` at the top, or the key `id`: letters, digits, `.`, `_`, `-`."
        )
        raise _wrong(path, f"it has no id that can be used; found {ticket.ticket_id[:60]!r}", fix)
    if not ticket.title:
        raise _wrong(path, "it has no title", "Write a first line `# ABC-1: What is to be done`, or the key `title`.")
    for item in judge_stage(TICKET.stages[0], ticket.payload, {}, Surroundings(path.parent)):
        raise _wrong(path, item.message.rstrip("."), item.fix)
    return ticket


def _json(path: Path, text: str) -> dict[str, str]:
    try:
        # Pairs: of two equal keys a dictionary would keep the last one alone.
        read: object = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"it is not JSON: {error}", "Correct it at the place named.") from error
    if not isinstance(read, tuple):
        raise _wrong(path, "it is not a JSON object", 'Write `{"id": …, "title": …, "description": …}`.')
    return _known(path, cast("tuple[tuple[str, object], ...]", read))


def _markdown(path: Path, text: str) -> dict[str, str]:
    head, body = _front_matter(path, text)
    found = _known(path, head)
    lines = body.strip("\n").split("\n")
    heading = _HEADING.fullmatch(lines[0].strip())
    if heading is not None and "title" not in found:
        found["title"] = heading["title"]
        if heading["id"]:
            found.setdefault("id", heading["id"])
        lines = lines[1:]
    written = "\n".join(lines).strip()
    if written and "description" in found:
        raise _wrong(path, "it has both a `description` and a text", "Keep one of the two.")
    return {**found, "description": written} if written else found


def _front_matter(path: Path, text: str) -> tuple[list[tuple[str, object]], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return [], text
    ends = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if ends is None:
        raise _wrong(path, "its front matter has no end", "Close it with a line of `---`.")
    head: list[tuple[str, object]] = []
    for number, line in enumerate(lines[1:ends], 2):
        if not line.strip() or line.startswith("#"):
            continue
        read = _LINE.fullmatch(line.rstrip())
        if read is None:
            raise _wrong(path, f"line {number} is not a `key: value` line", "Write `key: value` on one line.")
        head.append((read["key"], _unquoted((read["value"] or "").strip())))
    return head, "\n".join(lines[ends + 1 :])


def _unquoted(value: str) -> str:
    """Return a value without the quotation marks around it; those inside it stay."""
    mark = value[:1]
    whole = len(value) > 1 and mark in ("'", '"') and value.endswith(mark) and mark not in value[1:-1]
    return value[1:-1] if whole else value


def _known(path: Path, given: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Return the texts of a ticket by their names in `KEYS`; what means nothing here, or is said twice, is refused."""
    names = {key: name for name, keys in KEYS.items() for key in keys}
    found: dict[str, str] = {}
    for key, value in given:
        if key not in names:
            known = ", ".join(keys[0] for keys in KEYS.values())
            raise _wrong(path, f"the key `{key[:60]}` is unknown", f"Remove it; the keys are {known}.")
        if not isinstance(value, str):
            raise _wrong(path, f"`{key}` is not a text", f'Write `"{key}": "…"`.')
        if not (text := value.replace("\r\n", "\n").strip()):
            continue
        if names[key] in found:
            raise _wrong(path, f"`{key}` says its {names[key]} a second time", "Keep one of the two.")
        found[names[key]] = text
    return found


def _wrong(path: Path, message: str, fix: str) -> TicketFileError:
    return TicketFileError(f"{path}: {message}", fix)
