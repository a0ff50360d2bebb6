"""Recording what a model answered in the stages of a ticket, and replaying it without one. One JSON line a turn."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from interlock.agents.ask import AgentConfigError, Answer, Ask, Runner, RunnerError
from interlock.agents.files import files_of
from interlock.agents.recording_file import Change, change_at
from interlock.agents.usage import Usage
from interlock.gates.git_files import list_tree
from interlock.gates.tree import left_out, tree_diff
from interlock.graph.ticket.store import TicketStore
from interlock.redaction import Redactor

_FIX: Final = "Record it anew with `interlock resolve TICKET --record FILE`."
_OTHER: Final = "Name another file, move that one away, or go on with the run that it is the recording of."


@dataclass(frozen=True, slots=True)
class Turn:
    """One line of a recording: the answer of one try of one stage of a run, and the files that acting changed."""

    run_id: str
    stage: str
    number: int
    answer: Answer
    files: tuple[Change, ...]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; the payload is the object that the answer holds, or its text."""
        row: dict[str, Any] = {"run": self.run_id, "stage": self.stage, "try": self.number}
        row |= {"payload": _object(self.answer.text)}
        row |= {"usage": self.answer.usage.to_json(), "model": self.answer.model}
        return row | ({"files": [file.to_json() for file in self.files]} if self.files else {})


class RecordingRunner:
    """Asks another runner, and writes each of its answers down: stage, try, payload, usage, and the files that changed.

    Keys are taken out of what is written. A recording of the same run grows; half a line at its end is dropped.
    `run_id` is None where a run is about to begin.

    Raises:
        AgentConfigError: The file is there and no recording of this run, or it cannot be written.
    """

    def __init__(self, runner: Runner, path: Path, root: Path, *, run_id: str | None, redactor: Redactor) -> None:
        self._runner = runner
        self._path = path
        self._redactor = redactor
        inside = os.path.relpath(path.resolve(), root.resolve())
        if not inside.startswith("..") and not left_out(inside):
            message = "it lies among the files of the project, where it would count as a change"
            raise _bad(path, "file", message, "Write it outside of the project, or below artifacts/.")
        try:
            path.touch(mode=0o600)
            size_bytes = _own_bytes(path, run_id)
            if size_bytes is None:
                raise _bad(path, "file", "it is there already, and a recording replaces no file", _OTHER)
            os.truncate(path, size_bytes)
        except OSError as error:
            raise _bad(path, "file", f"it cannot be written: {error.strerror}", "Name another file.") from error

    def __call__(self, ask: Ask, /) -> Answer:
        """Return the answer of the runner, written down."""
        response = self._runner(ask)
        answer = response if isinstance(response, Answer) else Answer(response, Usage(calls=1, usd=None))
        if not answer.stopped:
            files = tuple(self._changes(ask)) if ask.step == "build" else ()
            row = self._redactor.value(Turn(ask.run_id, ask.role, ask.reask + 1, answer, files).to_json())
            try:
                with self._path.open("ab") as file:
                    file.write(json.dumps(row).encode() + b"\n")
            except OSError as error:
                message = f"the recording {self._path} cannot be written: {error.strerror}"
                raise RunnerError(message, "Free some space, or go on without `--record`.") from error
        return answer

    def _changes(self, ask: Ask) -> Iterator[Change]:
        """Yield the files of the plan that are not as they were when the stage began, also before a kill."""
        before, now = TicketStore(Path(ask.root), ask.run_id).tree(ask.tree), list_tree(ask.root)
        diff = tree_diff(before, now)
        for path in sorted((*diff.changed, *diff.added)):
            if ask.in_scope(path):
                yield change_at(ask.root, path, now[path], self._redactor)
        yield from (Change(path, "") for path in sorted(diff.removed) if ask.in_scope(path))


class ReplayRunner:
    """Answers each stage as a recording says, and makes the recorded changes to files, inside the plan alone.

    Raises:
        AgentConfigError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            turns, _ = _read(path)
        except OSError as error:
            raise _bad(path, "file", f"it cannot be read: {error.strerror}", "Name a recording.") from error
        self._turns = {(turn.stage, turn.number): turn for turn in turns}

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
                if file.left_out:
                    message = f"{self._path} does not hold {file.path}: {file.left_out}"
                    raise RunnerError(message, "Go on with a model.")
                done = scoped.delete(file.path) if file.data is None else scoped.write_bytes(file.path, file.data)
                if done["errors"]:
                    refused = done["errors"][0]
                    raise RunnerError(f"{file.path} of {self._path}: {refused['message']}", refused["fix"])


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _own_bytes(path: Path, run_id: str | None) -> int | None:
    """Return the size of the whole lines of a file where it is empty or the recording of a run; else None."""
    try:
        turns, size_bytes = _read(path)
    except AgentConfigError:
        return None
    own = bool(turns) or not path.stat().st_size
    return size_bytes if own and all(turn.run_id == run_id for turn in turns) else None


def _read(path: Path) -> tuple[list[Turn], int]:
    """Return the turns of a recording, and the size of its whole lines in bytes."""
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    turns: list[Turn] = []
    for number, line in enumerate(whole.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            turns.append(_turn(json.loads(line)))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            message = "it is not a turn with a stage, a try and a payload"
            raise _bad(path, f"line {number}", message, _FIX) from error
    return turns, len(whole)


def _bad(path: Path, key: str, message: str, fix: str) -> AgentConfigError:
    return AgentConfigError(str(path), key, message, fix)


def _turn(row: Any) -> Turn:
    """Return one line of a recording."""
    payload = row["payload"] if isinstance(row["payload"], str) else json.dumps(dict(row["payload"]))
    files = tuple(Change.from_json(item) for item in row.get("files", ()))
    usage = Usage() + Usage.from_json(row.get("usage", {}))  # adding takes numbers alone
    answer = Answer(payload, usage, str(row.get("model", "")))
    return Turn(str(row.get("run", "")), str(row["stage"]), int(row["try"]), answer, files)
