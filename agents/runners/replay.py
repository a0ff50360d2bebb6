"""The `replay` runner: an agent whose every turn is written down in a TOML script, for demonstrations and tests."""

import re
import tomllib
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from annotated_types import Ge, MinLen

from interlock.agents.ask import AgentConfigError, Answer, Ask, RunnerError
from interlock.agents.confined import write_confined
from interlock.agents.files import files_of
from interlock.agents.tables import Positive, Table, Text
from interlock.agents.usage import Usage
from interlock.envelope.protocol import EVIDENCE_KEYS

_WORD: Final = r"\{\{|\}\}|\{(?P<word>[a-z][a-z0-9_.]*)\}"
# The list that stands alone comes first, since it takes the whole line with its end.
_EXPANSION: Final = re.compile(
    rf"^(?P<indent>[ \t]*)\{{evidence\.(?P<key>[a-z0-9]+)\}}[ \t]*(?P<end>\n|\Z)|{_WORD}", re.ASCII | re.MULTILINE
)
PLACEHOLDERS: Final = ("run_id", "task_id", "role", "attempt", "turn", "reask", "tree", "reports_dir")
"""Every name that may be in braces in a path, in `content` and in `response`, beside `evidence.KEY`."""


@dataclass(frozen=True, slots=True)
class ReplayTable:
    """What a table with `runner = "replay"` holds beside the keys of all runners."""

    script: Text


@dataclass(frozen=True)
class Write:
    """One file that a turn writes: its path, and either its text or the text file that it copies."""

    # pydantic reads this: a key that is not known is refused.
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    path: Text
    content: str | None = None
    copy: Text = ""


@dataclass(frozen=True)
class Turn:
    """What a scripted agent does when it is asked: a `[[turn]]` of its script.

    Args:
        response: What it answers.
        attempt: The attempts that it is for, from 1; one alone may be written as a number.
        reask: How many answers were refused before.
        write: The files that it writes.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    response: Text
    attempt: Positive | Annotated[tuple[Positive, ...], MinLen(1)] = 1
    reask: Annotated[int, Ge(0)] = 0
    write: tuple[Write, ...] = ()

    @property
    def attempts(self) -> tuple[int, ...]:
        """All attempts that it is for."""
        return (self.attempt,) if isinstance(self.attempt, int) else self.attempt


@dataclass(frozen=True)
class Script:
    """All turns of a scripted agent, in the order of the file."""

    turn: Annotated[tuple[Turn, ...], MinLen(1)]


def read_script(path: Path) -> tuple[Turn, ...]:
    """Read the turns of a script.

    Raises:
        AgentConfigError: When the file cannot be read, is no TOML, or breaks the schema.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fix = "Name a TOML file of `[[turn]]` tables."
        raise AgentConfigError(str(path), "script", f"the script cannot be read: {error}", fix) from error
    top = Table(table, str(path), "")
    turns = top.read(Script).turn
    for number, write in enumerate(write for turn in turns for write in turn.write):
        if (write.content is None) == (not write.copy):
            message = f"write {number + 1} of the script, to {write.path}, needs one of `content` and `copy`"
            raise top.error("turn", message, "Give the text with `content`, or the file to copy with `copy`.")
    return turns


class ReplayRunner:
    """A runner that edits files and answers as its script says.

    A build role of a run that holds its files edits under the run's leases; reports below `artifacts` need none.
    Asking twice for the same turn leaves the same files and gives the same text.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turns = read_script(path)

    def __call__(self, ask: Ask, /) -> Answer:
        """Do the writes of the first turn for this ask and return its response, which cost a call and no money.

        Raises:
            RunnerError: When there is no such turn, a file of it cannot be read or written, or somebody else holds it.
        """
        fitting = (each for each in self._turns if ask.attempt in each.attempts and ask.reask == each.reask)
        turn = next(fitting, None)
        if turn is None:
            message = f"{self._path} has no turn for {ask.role}, attempt {ask.attempt}, reask {ask.reask}"
            fix = f"Add a `[[turn]]` with `attempt = {ask.attempt}` and `reask = {ask.reask}`."
            raise RunnerError(message, fix)
        self._edit(turn, ask)
        return Answer(expand(turn.response, ask), Usage(calls=1))

    def _edit(self, turn: Turn, ask: Ask) -> None:
        # Every text is made before the first write, so that a slip leaves no half of a turn.
        texts = {expand(write.path, ask): self._text(write, ask) for write in turn.write}
        holds = bool(ask.agent) and ask.step == "build" and bool(texts)
        with files_of(ask, lambda _path: True) if holds else nullcontext() as files:
            for path, text in texts.items():
                # Nobody holds reports, and the files of a task leave their folder out.
                if files is None or path.startswith("artifacts/"):
                    write_confined(ask.root, path, text.encode("utf-8"))
                    continue
                for row in files.write(path, text)["errors"]:
                    raise RunnerError(f"{row['place']}: {row['code']} {row['message']}", row["fix"])

    def _text(self, write: Write, ask: Ask) -> str:
        if write.content is not None:
            return expand(write.content, ask)
        try:
            # As bytes first: the ends of its lines stay as they are.
            return (self._path.parent / write.copy).read_bytes().decode("utf-8")
        except (OSError, ValueError) as error:
            fix = "Name a text file relative to the script."
            raise RunnerError(f"{write.copy} cannot be copied: {error}", fix) from error


def expand(text: str, ask: Ask) -> str:
    """Put the facts of an ask in the place of each placeholder.

    `{evidence.KEY}` alone on its line becomes one `- path` line per file with the same indentation (no line when there
    is none); within a line it becomes `[a, b]`. `{{` and `}}` are braces.

    Raises:
        RunnerError: A word in braces is no placeholder.
    """
    files: dict[str, tuple[str, ...]] = {key: ask.evidence.get(key, ()) for key in EVIDENCE_KEYS}
    values = {name: str(getattr(ask, name)) for name in PLACEHOLDERS}
    values |= {f"evidence.{key}": f"[{', '.join(paths)}]" for key, paths in files.items()}

    def put(match: re.Match[str]) -> str:
        if key := match["key"]:
            paths = files.get(key, ())
            return "\n".join(f"{match['indent']}- {path}" for path in paths) + (match["end"] if paths else "")
        word = match["word"]
        if word and word not in values:
            fix = f"Write one of {', '.join(values)}, or `{{{{{word}}}}}` for the braces themselves."
            raise RunnerError(f"there is nothing for `{{{word}}}`", fix)
        return values[word] if word else match[0][0]

    return _EXPANSION.sub(put, text)
