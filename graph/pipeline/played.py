"""Recording what a model answered in the stages of a ticket, and playing it again without one. One JSON line a turn."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.agents.answer import Answer
from interlock.agents.ask import AgentConfigError, Ask, Runner, RunnerError
from interlock.agents.confined import read_confined
from interlock.agents.files import files_of
from interlock.agents.recording import MAX_FILE_BYTES, Change
from interlock.agents.secrets import Redactor
from interlock.agents.usage import Usage
from interlock.gates.stages import list_tree
from interlock.gates.tree import left_out, tree_diff

_FIX: Final = "Record it anew with `interlock resolve TICKET --record FILE`."


@dataclass(frozen=True, slots=True)
class Turn:
    """One line of a recording: the answer of one try of one stage, and the files that it changed."""

    stage: str
    number: int
    answer: Answer
    files: tuple[Change, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; the payload is the object that the answer holds, or its text."""
        row = {"stage": self.stage, "try": self.number, "payload": _object(self.answer.text)}
        row |= {"usage": self.answer.usage.to_json(), "model": self.answer.model}
        return row | ({"files": [file.to_json() for file in self.files]} if self.files else {})


class RecordingRunner:
    """Asks another runner, and writes each of its answers down: stage, try, payload, usage, and the files it changed.

    Keys are taken out of what is written.

    Args:
        runner: Who answers.
        path: The recording.
        root: The project's root.
        goes_on: Whether the run was driven before, so that the recording may be there and grows.
        redactor: Takes the keys out.

    Raises:
        AgentConfigError: The file is there, or cannot be written.
    """

    def __init__(self, runner: Runner, path: Path, root: Path, *, goes_on: bool, redactor: Redactor) -> None:
        self._runner = runner
        self._path = path
        self._redactor = redactor
        inside = os.path.relpath(path.resolve(), root.resolve())
        if not inside.startswith("..") and not left_out(inside):
            message = "it lies among the files of the project, where it would count as a change"
            raise _bad(path, "file", message, "Write it outside of the project, or below artifacts/.")
        try:
            path.touch(mode=0o600, exist_ok=goes_on)
        except FileExistsError as error:
            fix = "Name another file, or move that one away."
            raise _bad(path, "file", "it is there already, and a recording replaces no file", fix) from error
        except OSError as error:
            raise _bad(path, "file", f"it cannot be written: {error.strerror}", "Name another file.") from error

    def __call__(self, ask: Ask, /) -> Answer:
        """Return the answer of the runner, written down."""
        before = list_tree(ask.root) if ask.step == "build" else None
        said = self._runner(ask)
        answer = said if isinstance(said, Answer) else Answer(said, Usage(calls=1, usd=None))
        if not answer.stopped:
            files = () if before is None else tuple(_changes(ask, before))
            row = self._redactor.value(Turn(ask.role, ask.reask + 1, answer, files).to_json())
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        return answer


class PlayedRunner:
    """Answers each stage as a recording says, and makes the recorded changes to files, inside the plan alone.

    Args:
        path: The recording.

    Raises:
        AgentConfigError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turns = {(turn.stage, turn.number): turn for turn in _turns(path)}

    @property
    def unused(self) -> list[str]:
        """The turns that nobody asked for."""
        return [f"{stage}, try {number}" for stage, number in self._turns]

    def __call__(self, ask: Ask, /) -> Answer:
        """Return the recorded answer.

        Raises:
            RunnerError: There is none for this stage and try, or a file of it is refused.
        """
        turn = self._turns.pop((ask.role, ask.reask + 1), None)
        if turn is None:
            left = next(iter(self.unused), "nothing")
            raise RunnerError(
                f"{self._path} has no answer for {ask.role}, try {ask.reask + 1}; the next in it is {left}",
                "Replay it on the project as it was when it was recorded, or go on with a model.",
            )
        if turn.files:
            self._put(ask, turn.files)
        return turn.answer

    def _put(self, ask: Ask, files: Sequence[Change]) -> None:
        with files_of(ask, ask.in_scope) as scoped:
            for file in files:
                done = scoped.delete(file.path) if file.data is None else scoped.write_bytes(file.path, file.data)
                if done["errors"]:
                    refused = done["errors"][0]
                    raise RunnerError(f"{file.path} of {self._path}: {refused['message']}", refused["fix"])


def _object(text: str) -> object:
    """Return the object of an answer, or its text where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _changes(ask: Ask, before: Mapping[str, str]) -> Iterator[Change]:
    """Yield the files of the plan that are not as they were."""
    now = list_tree(ask.root)
    diff = tree_diff(before, now)
    for path in sorted((*diff.changed, *diff.added)):
        if ask.in_scope(path):
            yield Change(path, now[path], read_confined(ask.root, path, MAX_FILE_BYTES))
    yield from (Change(path, "") for path in sorted(diff.removed) if ask.in_scope(path))


def _turns(path: Path) -> Iterator[Turn]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _bad(path, "file", f"it cannot be read: {error.strerror}", "Name a recording.") from error
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield _turn(json.loads(line))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            message = "it is no turn with a stage, a try and a payload"
            raise _bad(path, f"line {number}", message, _FIX) from error


def _bad(path: Path, key: str, message: str, fix: str) -> AgentConfigError:
    return AgentConfigError(str(path), key, message, fix)


def _turn(row: Any) -> Turn:
    """Return one line of a recording.

    Raises:
        LookupError, TypeError, ValueError: It is none.
    """
    payload = row["payload"] if isinstance(row["payload"], str) else json.dumps(dict(row["payload"]))
    files = tuple(Change.from_json(item) for item in row.get("files", ()))
    usage = Usage() + Usage.from_json(row.get("usage", {}))  # adding takes numbers alone
    answer = Answer(payload, usage, str(row.get("model", "")))
    return Turn(str(row["stage"]), int(row["try"]), answer, files)
