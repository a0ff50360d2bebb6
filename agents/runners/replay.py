"""The `replay` runner: an agent whose every turn is written down, for demonstrations and tests."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from interlock.agents.ask import Answer, Ask, RunnerError
from interlock.agents.confined import delete_confined, write_confined
from interlock.agents.files import ScopedFiles, files_of
from interlock.agents.runners.script import Script, Turn, Write, expand, read_script
from interlock.agents.usage import Usage


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
    with ExitStack() as stack:
        files: ScopedFiles | None = None
        if ask.agent and ask.step == "build" and (turn.writes or turn.deletes):
            files = stack.enter_context(files_of(ask, lambda _path: True))
        for write in turn.writes:
            path, data = expand(write.path, ask), _bytes(write, ask)
            if files is None or _is_report(path):
                write_confined(ask.root, path, data)
            else:
                _done(files.write_bytes(path, data))
        for each in turn.deletes:
            path = expand(each, ask)
            if files is None or _is_report(path):
                delete_confined(ask.root, path)
            else:
                _done(files.delete(path))


def _is_report(path: str) -> bool:
    return path.startswith("artifacts/")


def _done(answer: dict[str, Any]) -> None:
    for row in answer["errors"]:
        raise RunnerError(f"{row['place']}: {row['code']} {row['message']}", row["fix"])


def _bytes(write: Write, ask: Ask) -> bytes:
    if write.source is None:
        return expand(write.content or "", ask).encode("utf-8")
    try:
        return write.source.read_bytes()
    except OSError as error:
        message = f"{write.source} cannot be read: {error.strerror}"
        raise RunnerError(message, "Put the file back beside the script.") from error
