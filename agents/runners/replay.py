"""The `replay` runner: an agent whose every turn is written down, for demonstrations and tests."""

from pathlib import Path

from interlock.agents.ask import Ask, RunnerError
from interlock.agents.confined import delete_confined, write_confined
from interlock.agents.runners.script import Script, Turn, Write, expand, read_script


class ReplayRunner:
    """A runner that edits files and answers as its script says.

    Asking twice for the same turn leaves the same files and gives the same text.

    Args:
        script: The turns.
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

    def __call__(self, ask: Ask, /) -> str:
        """Do the writes and deletes of the turn for this ask and return its response.

        Raises:
            RunnerError: When there is no such turn, or a file of it cannot be read or written.
        """
        turn = self._script.turn(ask)
        _edit(turn, ask)
        return expand(turn.response, ask)


def _edit(turn: Turn, ask: Ask) -> None:
    for write in turn.writes:
        write_confined(ask.root, expand(write.path, ask), _bytes(write, ask))
    for path in turn.deletes:
        delete_confined(ask.root, expand(path, ask))


def _bytes(write: Write, ask: Ask) -> bytes:
    if write.source is None:
        return expand(write.content or "", ask).encode("utf-8")
    try:
        return write.source.read_bytes()
    except OSError as error:
        message = f"{write.source} cannot be read: {error.strerror}"
        raise RunnerError(message, "Put the file back beside the script.") from error
