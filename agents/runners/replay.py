"""The `replay` runner: an agent whose every turn is written down in a TOML script, for demonstrations and tests."""

import re
import tomllib
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from interlock.agents.ask import AgentConfigError, Answer, Ask, RunnerError
from interlock.agents.confined import delete_confined, split_path, write_confined
from interlock.agents.files import files_of
from interlock.agents.tables import Table
from interlock.agents.usage import Usage
from interlock.core.text import closest
from interlock.envelope.protocol import EVIDENCE_KEYS

MAX_SCRIPT_BYTES: Final = 1024 * 1024
"""A longer script is refused."""

_WORD: Final = r"\{\{|\}\}|\{(?P<word>[a-z][a-z0-9_.]*)\}"
_PLACEHOLDER: Final = re.compile(_WORD, re.ASCII)
_EXPANSION: Final = re.compile(
    rf"^(?P<indent>[ \t]*)\{{evidence\.(?P<key>[a-z0-9]+)\}}[ \t]*(?P<end>\n|\Z)|{_WORD}", re.ASCII | re.MULTILINE
)
_WORDS: Final = ("run_id", "task_id", "role", "attempt", "turn", "reask", "tree", "reports_dir")
PLACEHOLDERS: Final = (*_WORDS, *(f"evidence.{key}" for key in EVIDENCE_KEYS))
"""Every name that may be in braces in a path, in `content` and in `response`."""


@dataclass(frozen=True, slots=True)
class Write:
    """One file that a turn writes: its path, and either text or the file that it copies."""

    path: str
    content: str | None
    source: Path | None


@dataclass(frozen=True, slots=True)
class Turn:
    """What a scripted agent does when it is asked for one attempt and re-ask."""

    role: str | None
    attempts: tuple[int, ...]
    turn: int | None
    reask: int
    writes: tuple[Write, ...]
    deletes: tuple[str, ...]
    response: str

    def answers(self, ask: Ask) -> bool:
        """Return whether this turn is the one for an ask."""
        return (
            ask.attempt in self.attempts
            and ask.reask == self.reask
            and self.turn in (None, ask.turn)
            and self.role in (None, ask.role)
        )

    def meets(self, other: "Turn") -> bool:
        """Return whether one ask could have both turns."""
        return (
            not set(self.attempts).isdisjoint(other.attempts)
            and self.reask == other.reask
            and (self.turn is None or other.turn in (None, self.turn))
            and (self.role is None or other.role in (None, self.role))
        )


@dataclass(frozen=True, slots=True)
class Script:
    """All turns of a scripted agent, in the order of the file."""

    path: str
    turns: tuple[Turn, ...]

    def turn(self, ask: Ask) -> Turn:
        """Return the turn for an ask.

        Raises:
            RunnerError: When the script has none.
        """
        for turn in self.turns:
            if turn.answers(ask):
                return turn
        have = ", ".join(f"{attempt}/{turn.reask}" for turn in self.turns for attempt in turn.attempts)
        message = f"{self.path} has no turn for {ask.role}, attempt {ask.attempt}, reask {ask.reask} (it has {have})"
        fix = f"Add a `[[turn]]` with `attempt = {ask.attempt}` and `reask = {ask.reask}`."
        raise RunnerError(message, fix)


def read_script(path: Path) -> Script:
    """Read and check a replay script.

    Raises:
        AgentConfigError: When the file cannot be read, is no TOML, or breaks the schema.
    """
    name = str(path)
    top = Table(_load(path), name, "")
    top.close(("turn",))
    turns = tuple(_read_turn(row, path.parent) for row in top.tables("turn"))
    if not turns:
        raise top.error("turn", "the script has no turn", 'Add a `[[turn]]` with `response = """…"""`.')
    for number, turn in enumerate(turns):
        first = next((place for place in range(number) if turns[place].meets(turn)), None)
        if first is not None:
            message = f"turn {number + 1} answers an ask that turn {first + 1} answers too"
            fix = "Give it another `attempt` or `reask`, or name a `turn` or `role` in both."
            raise AgentConfigError(name, f"turn[{number + 1}]", message, fix)
    return Script(name, turns)


def expand(text: str, ask: Ask) -> str:
    """Put the facts of an ask in the place of each placeholder.

    `{evidence.KEY}` alone on its line becomes one `- path` line per file with the same indentation (no line when there
    is none); within a line it becomes `[a, b]`. `{{` and `}}` are braces.
    """
    files: dict[str, tuple[str, ...]] = {key: ask.evidence.get(key, ()) for key in EVIDENCE_KEYS}
    values: dict[str, str] = {
        **{name: str(getattr(ask, name)) for name in _WORDS},
        **{f"evidence.{key}": f"[{', '.join(paths)}]" for key, paths in files.items()},
    }

    def put(match: re.Match[str]) -> str:
        if key := match["key"]:
            paths = files.get(key, ())
            return "\n".join(f"{match['indent']}- {path}" for path in paths) + (match["end"] if paths else "")
        return values[match["word"]] if match["word"] else match[0][0]

    return _EXPANSION.sub(put, text)


def _load(path: Path) -> dict[str, object]:
    fix = "Name a TOML file of `[[turn]]` tables."
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError as error:
        raise AgentConfigError(str(path), "script", f"the script cannot be read: {error.strerror}", fix) from error
    if len(data) > MAX_SCRIPT_BYTES:
        message = f"the script is larger than {MAX_SCRIPT_BYTES} bytes"
        raise AgentConfigError(str(path), "script", message, "Move long files beside it and copy them with `from`.")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AgentConfigError(str(path), "script", f"the script is not TOML: {error}", fix) from error


def _read_turn(row: Table, folder: Path) -> Turn:
    row.close(("role", "attempt", "turn", "reask", "write", "delete", "response"))
    turn = Turn(
        role=row.text("role") if row.has("role") else None,
        attempts=_attempts(row),
        turn=row.number("turn", None, least=1),
        reask=row.number("reask", 0, least=0),
        writes=tuple(_read_write(write, folder) for write in row.tables("write")),
        deletes=tuple(_read_delete(delete) for delete in row.tables("delete")),
        response=row.text("response"),
    )
    _check_placeholders(row, "response", turn.response)
    return turn


def _attempts(row: Table) -> tuple[int, ...]:
    """Read `attempt = 2` or `attempt = [2, 3, 4]`."""
    value = row.raw("attempt")
    if not isinstance(value, list):
        return (row.number("attempt", 1, least=1),)
    items = [item for item in cast("list[object]", value) if type(item) is int and item > 0]
    if not items or len(set(items)) != len(cast("list[object]", value)):
        fix = "Write it like `attempt = [2, 3]`."
        raise row.error("attempt", "`attempt` is not an array of different whole numbers from 1", fix)
    return tuple(items)


def _read_write(row: Table, folder: Path) -> Write:
    row.close(("path", "content", "from"))
    if row.has("content") == row.has("from"):
        message = "a write needs one of `content` and `from`"
        raise row.error("content", message, "Give the text with `content`, or the file to copy with `from`.")
    path = _read_path(row)
    if row.has("content"):
        content = row.raw("content")
        if not isinstance(content, str):
            raise row.error("content", "`content` is not a string", 'Write `content = """…"""`.')
        _check_placeholders(row, "content", content)
        return Write(path, content, None)
    source = folder / row.text("from")
    if not source.is_file():
        raise row.error("from", f"there is no file {source}", "Name a file relative to the script.")
    return Write(path, None, source)


def _read_delete(row: Table) -> str:
    row.close(("path",))
    return _read_path(row)


def _read_path(row: Table) -> str:
    path = row.text("path")
    _check_placeholders(row, "path", path)
    try:
        split_path(_PLACEHOLDER.sub("x", path))
    except RunnerError as error:
        raise row.error("path", error.message, error.fix) from error
    return path


def _check_placeholders(row: Table, key: str, text: str) -> None:
    for match in _PLACEHOLDER.finditer(text):
        name = match["word"]
        if name and name not in PLACEHOLDERS:
            near = closest(name, PLACEHOLDERS)
            literal = f"Write `{{{{{name}}}}}` for the braces themselves."
            fix = f"Write `{{{near}}}`. {literal}" if near else literal
            raise row.error(key, f"unknown placeholder `{{{name}}}`", fix)


class ReplayRunner:
    """A runner that edits files and answers as its script says.

    A build role of a run that holds its files edits under the run's leases; reports below `artifacts` need none.
    Asking twice for the same turn leaves the same files and gives the same text.
    """

    def __init__(self, script: Script) -> None:
        self._script = script

    @classmethod
    def load(cls, path: Path) -> "ReplayRunner":
        """Return the runner of a script file.

        Raises:
            AgentConfigError: When the script cannot be used.
        """
        return cls(read_script(path))

    def __call__(self, ask: Ask, /) -> Answer:
        """Do the writes and deletes of the turn for this ask and return its response, which cost a call and no money.

        Raises:
            RunnerError: When there is no such turn, a file of it cannot be read or written, or somebody else holds it.
        """
        turn = self._script.turn(ask)
        _edit(turn, ask)
        return Answer(expand(turn.response, ask), Usage(calls=1))


def _edit(turn: Turn, ask: Ask) -> None:
    changes: list[tuple[str, bytes | None]] = [(expand(write.path, ask), _bytes(write, ask)) for write in turn.writes]
    changes += [(expand(path, ask), None) for path in turn.deletes]
    holds = bool(ask.agent) and ask.step == "build" and bool(changes)
    with files_of(ask, lambda _path: True) if holds else nullcontext() as files:
        for path, data in changes:
            if files is not None and not path.startswith("artifacts/"):
                done = files.delete(path) if data is None else files.write_bytes(path, data)
                for row in done["errors"]:
                    raise RunnerError(f"{row['place']}: {row['code']} {row['message']}", row["fix"])
            elif data is None:
                delete_confined(ask.root, path)
            else:
                write_confined(ask.root, path, data)


def _bytes(write: Write, ask: Ask) -> bytes:
    if write.source is None:
        return expand(write.content or "", ask).encode("utf-8")
    try:
        return write.source.read_bytes()
    except OSError as error:
        message = f"{write.source} cannot be read: {error.strerror}"
        raise RunnerError(message, "Put the file back beside the script.") from error
