"""The folder of one run: the frozen task and policy, the answers as they came, and the lock."""

import hashlib
import json
import os
import re
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from interlock.agents.ask import AgentsError, Answer
from interlock.agents.usage import Usage, total
from interlock.core.files import write_atomically
from interlock.core.locks import locked
from interlock.graph.engine.folder import RunFolder, journal_path, state_dir
from interlock.graph.errors import RunBusyError, RunDamagedError, UnknownRunError
from interlock.graph.task.policy import Policy
from interlock.graph.task.task import Task
from interlock.journal import Head, Journal

_MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""No stored answer is longer: what is kept of one is cut by characters."""

_STOPPED = "stopped.json"
_FAILED = ".failed.json"
_MAX_STOP_CHARS = 2000

CHECKPOINTS: Final = "checkpoints.sqlite"
_OWNER: Final = "owner"
_DECISION: Final = re.compile(r"question\.(\d{1,9})\.[0-9a-f]{16}", re.ASCII)
"""The file with the caller that began the run."""
_PRUNED: Final = "pruned"
"""The file in `.interlock` with the runs whose folders a person had removed, and where each ended in the journal."""


def note_pruned(root: Path, run_id: str) -> None:
    """Note that a person had the folder of a run removed, and where the journal's lines of it end."""
    end = Journal(journal_path(root)).head(run_id)
    rows = {**pruned_runs(root), run_id: end}
    lines = (f"{name}:{head.seq}:{head.hash}\n" if head is not None else f"{name}\n" for name, head in rows.items())
    write_atomically(state_dir(root) / _PRUNED, "".join(lines).encode())


def pruned_runs(root: Path) -> dict[str, Head | None]:
    """Return the runs whose folders a person had removed, each with its end in the journal as it was then, if known."""
    try:
        rows = [line.split(":") for line in (root / ".interlock" / _PRUNED).read_text("utf-8").split()]
        return {row[0]: Head(int(row[1]), row[2]) if len(row) > 1 else None for row in rows}
    except (OSError, ValueError, IndexError):
        return {}


def _readable(value: object) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


class RunStore(RunFolder):
    """The files of one run below `.interlock/runs/<run_id>/`; see `RunFolder`."""

    kind = "runs"

    def create(self, task: Task, policy: Policy) -> None:
        """Freeze a task and its policy; creating the same run twice changes nothing.

        Raises:
            RunBusyError: The run id is taken by another task, or by the same task under another policy.
        """
        data = _readable({"task": task.to_json(), "policy": policy.to_json()})
        if not self.exists():
            self.keep_begin(data)
        elif (self.folder / "run.json").read_bytes() != data:
            raise RunBusyError(
                f"run {self.run_id} exists already, with another task or policy",
                "Choose another run id, or resume that run.",
            )

    def keep_owner(self, caller: str) -> None:
        """Keep who began the run: a caller with a token, or nobody in particular; the first one stays."""
        if not (self.folder / _OWNER).exists():
            write_atomically(self.folder / _OWNER, caller.encode())

    def owner(self) -> str:
        """Return the caller with a token that began the run; empty for one that was begun without."""
        try:
            return (self.folder / _OWNER).read_text("utf-8")
        except OSError:
            return ""

    def load(self) -> tuple[Task, Policy, str]:
        """Return the frozen task and policy, and the digest of the file that holds them.

        A person may have corrected the task since: `view_run` has it as it is now.

        Raises:
            UnknownRunError: There is no such run.
            RunDamagedError: The file cannot be read back.
        """
        name = "run.json"
        try:
            data = (self.folder / name).read_bytes()
        except FileNotFoundError as error:
            raise no_task_run(self.root, self.run_id) from error
        except OSError as error:
            raise self.damaged(name, error.strerror or "the system gives no reason") from error
        try:
            read = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self.damaged(name, f"it is not JSON: {error}") from error
        try:
            task, policy = Task.from_json(read["task"]), Policy.from_json(read["policy"])
            return task, policy, hashlib.sha256(data).hexdigest()
        except (ValueError, KeyError, TypeError) as error:
            raise self.damaged(name, "it holds no task and policy") from error

    def decisions(self) -> list[tuple[int, str]]:
        """Return what lies there under names of answers of a person: the number of the question, and the key."""
        found = (_DECISION.fullmatch(path.stem) for path in (self.folder / "answers").glob("question.*.txt"))
        return sorted((int(name[1]), name[0]) for name in found if name is not None)

    def answer(self, key: str) -> str | None:
        """Return the answer stored under a key, or None when there is none that could have been stored."""
        path = self.folder / "answers" / f"{key}.txt"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(_MAX_ANSWER_BYTES).decode("utf-8", "surrogatepass")
        except (OSError, UnicodeDecodeError):
            return None

    def answer_of(self, role: str, sha256: str) -> str | None:
        """Return the stored answer of a role that has this digest, or None."""
        names = sorted(path.stem for path in (self.folder / "answers").glob(f"*-{role}-*.txt"))
        for name in names:
            text = self.answer(name)
            if text is not None and hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == sha256:
                return text
        return None

    def keep_answer(self, key: str, text: str) -> None:
        """Store an answer under its key before anything is done with it.

        Raises:
            RunDamagedError: It cannot be stored.
        """
        path = self.folder / "answers" / f"{key}.txt"
        try:
            write_atomically(path, text.encode("utf-8", "surrogatepass"))
        except OSError as error:
            raise RunDamagedError(
                f"the answer {path} cannot be stored: {error.strerror}",
                f"Make {path.parent} a real folder that this user can write, and resume.",
            ) from error

    def keep_first(self, key: str, text: str) -> str:
        """Store an answer under its key unless one is there, and return the one that is there now.

        Raises:
            RunDamagedError: It cannot be stored.
        """
        with (self.folder / "answers.lock").open("ab") as file, locked(file):
            if (before := self.answer(key)) is not None:
                return before
            self.keep_answer(key, text)
            return text

    def cost(self, key: str) -> dict[str, Any]:
        """Return what is known of the answer under a key beside its text, as `keep_cost` stored it."""
        try:
            row: Any = json.loads((self.folder / "answers" / f"{key}.json").read_bytes())
            return dict(row) if isinstance(row["usage"], dict) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def keep_cost(self, key: str, answer: Answer) -> None:
        """Store what is known of an answer beside its text, before that."""
        row = {"usage": answer.usage.to_json(), "model": answer.model, "tool_calls": answer.tool_calls}
        row |= {"stopped": answer.stopped, "told": answer.cost_reported}
        row |= {"opened": None if answer.opened is None else list(answer.opened)}
        write_atomically(self.folder / "answers" / f"{key}.json", _readable(row))

    def keep_failure(self, key: str, role: str, spent: Usage) -> None:
        """Add what was spent on an ask before its runner failed."""
        rows = [*self._failures(key), {"key": key, "role": role, "usage": spent.to_json()}]
        write_atomically(self.folder / "answers" / f"{key}{_FAILED}", _readable(rows))

    def spent_on_failures(self, key: str) -> Usage:
        """Return what was spent on an ask by runners that failed."""
        return total(Usage.from_json(row["usage"]) for row in self._failures(key))

    def failures(self) -> list[tuple[str, dict[str, Any]]]:
        """Return every time that a runner failed after it had spent something: a journal key, and what is known."""
        paths = sorted((self.folder / "answers").glob(f"*{_FAILED}"))
        found = [(path.name.removesuffix(_FAILED), self._failures(path.name.removesuffix(_FAILED))) for path in paths]
        return [(f"{key}/failed/{number}", row) for key, rows in found for number, row in enumerate(rows, 1)]

    def _failures(self, key: str) -> list[dict[str, Any]]:
        try:
            return list(json.loads((self.folder / "answers" / f"{key}{_FAILED}").read_bytes()))
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise self.damaged(f"answers/{key}{_FAILED}", str(error)) from error

    @contextmanager
    def stops_noted(self) -> Generator[None]:
        """Keep why an agent ended the drive that happens within, and forget why an earlier one ended.

        Raises:
            AgentsError: The one that came, after it was kept.
        """
        (self.folder / _STOPPED).unlink(missing_ok=True)
        try:
            yield
        except AgentsError as error:
            row = {"code": error.code, "message": error.message[:_MAX_STOP_CHARS], "fix": error.fix[:_MAX_STOP_CHARS]}
            write_atomically(self.folder / _STOPPED, _readable(row))
            raise

    def stopped(self) -> dict[str, str] | None:
        """Return code, message and fix of what ended the last drive too early; None when nothing did."""
        try:
            read = json.loads((self.folder / _STOPPED).read_bytes())
            return {name: str(read[name]) for name in ("code", "message", "fix")}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep_tree(self, attempt: int, files: Mapping[str, str]) -> None:
        """Store the files in scope as they were handed over, so that a later change can be named."""
        write_atomically(self.folder / "trees" / f"{attempt}.json", _readable(dict(files)))

    def handed_over(self, attempt: int) -> dict[str, str]:
        """Return the files as they were handed over; empty when that is not known any more."""
        try:
            return dict(json.loads((self.folder / "trees" / f"{attempt}.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return {}

    def locked(self, *, wait: bool = False) -> AbstractContextManager[None]:
        """Hold the run alone.

        Raises:
            RunBusyError: Another process holds it and `wait` is false.
        """
        message = f"run {self.run_id} is being driven by another process"
        return self.holding("lock", None if wait else 0, (message, "Wait for it, or watch it with `interlock status`."))

    @contextmanager
    def undriven(self) -> Generator[bool]:
        """Keep every process from driving the run for an instant, which waits; False when one drives it already."""
        with (self.folder / "lock").open("ab") as file, locked(file, shared=True, seconds=0) as free:
            yield free

    def driven(self) -> bool:
        """Return whether some process drives this run at this moment."""
        return self.held("lock")


def decision_key(number: int, mark: str) -> str:
    """Return the key under which the answer of a person to a question is kept; `mark` is known once it is asked."""
    return f"question.{number}.{mark}"


def no_task_run(root: Path, name: str, ticket_run: str | None = None) -> UnknownRunError:
    """Return the error for a name that no task run has; a ticket run of that name is pointed to."""
    if ticket_run is None and (root / ".interlock" / "tickets" / name / "run.json").exists():
        ticket_run = name
    if ticket_run is not None:
        return UnknownRunError(
            f"`{name}` is a ticket, not a task: its agent takes ticket run {ticket_run} on, over MCP",
            f"`interlock explain {ticket_run}` shows its state; its agent goes on with interlock_submit_ticket.",
        )
    return UnknownRunError(f"there is no run or task `{name}` below {root}", "`interlock status` lists the runs.")


def create_next(root: Path, task: Task, policy: Policy) -> str:
    """Freeze a task under the next free id `<TASK_ID>.<n>` and return it.

    An id that the journal knows is not free, even where the folder of its run is gone. One that a killed process took
    and did not fill is.
    """
    journal = Journal(journal_path(root))
    for number in count(1):
        run_id = f"{task.task_id}.{number}"
        store = RunStore(root, run_id)
        if store.exists() or journal.head(run_id) is not None:
            continue
        try:
            with store.locked():
                if not store.exists():
                    store.create(task, policy)
                    return run_id
        except RunBusyError:
            continue
    raise AssertionError("numbers do not end")
