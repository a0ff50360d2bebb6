"""The folder of one run: the frozen task and policy, the answers as they came, and the lock.

Where a run stands is in its checkpoints, what happened in the journal. Here is what neither can hold: what the run
began with, and each answer before it is judged, since it was paid for and a crash must not lose it.
"""

import hashlib
import json
import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

from interlock.agents.ask import AgentConfigError, Answer, RunnerError
from interlock.agents.usage import Usage, total
from interlock.core.database import database_of
from interlock.core.locks import locked
from interlock.gates.sealed import Store, place_of
from interlock.graph.engine import legs
from interlock.graph.engine.folder import RunFolder, is_beside, journal_of, journal_run, restore
from interlock.graph.errors import RunBusyError, RunDamagedError, UnknownRunError
from interlock.graph.task.policy import Policy
from interlock.graph.task.questions import decision_key
from interlock.graph.task.task import Task
from interlock.journal import Entry, Head, JournalError

_STOPPED: Final = "stopped.json"
_FAILED: Final = ".failed"

FORMAT: Final = 4
"""The form of what a run keeps; a run of another one is shown and verified, and does not go on."""
CHECKPOINTS: Final = "checkpoints.sqlite"


def _readable(value: object) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"


def _moved(value: Any, old: str, new: str) -> Any:
    """Return JSON in which every path below one folder is below another."""
    if isinstance(value, dict):
        rows = cast("dict[str, Any]", value)
        return {_moved(key, old, new): _moved(each, old, new) for key, each in rows.items()}
    if isinstance(value, list):
        return [_moved(each, old, new) for each in cast("list[Any]", value)]
    if isinstance(value, str) and (value == old or value.startswith(f"{old}/")):
        return new + value[len(old) :]
    return value


class RunStore(RunFolder):
    """The files of one run below `.interlock/runs/<run_id>/`; see `RunFolder`."""

    kind = "runs"

    def create(self, task: Task, policy: Policy) -> None:
        """Freeze a task and its policy; creating the same run twice changes nothing.

        Raises:
            RunBusyError: The run id is taken by another task, or by the same task under another policy.
        """
        begun: dict[str, Any] = {"format": FORMAT, "task": task.to_json(), "policy": policy.to_json()}
        if database_of(self.root) is not None:
            begun["place"] = self._place()
        data = _readable(begun)
        if not self.exists():
            self.keep_begin(data)
        elif (self.folder / "run.json").read_bytes() != data:
            raise RunBusyError(
                f"run {self.run_id} exists already, with another task or policy",
                "Choose another run id, or resume that run.",
            )

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
            if database_of(self.root) is not None:
                # A run of before the project had a database says it only where something was frozen.
                place = read.get("place") or read["policy"]["sealing"].get("frozen", {}).get("top")
                read = self._from_elsewhere(read, place) if place else read
            task, policy = Task.from_json(read["task"]), Policy.from_json(read["policy"])
            return task, policy, hashlib.sha256(data).hexdigest()
        except (ValueError, KeyError, TypeError) as error:
            raise self.damaged(name, "it holds no task and policy") from error

    def _place(self) -> str:
        return os.fspath(place_of(self.root)[0])

    def _from_elsewhere(self, read: dict[str, Any], place: str) -> dict[str, Any]:
        """Return what a run began with on another machine as it is here: paths, and dependencies of sealed gates."""
        read = _moved(read, place, self._place())
        frozen = read["policy"]["sealing"].get("frozen")
        if frozen is not None and self.own_frozen.exists():
            frozen |= json.loads(self.own_frozen.read_bytes())
        return read

    @property
    def own_frozen(self) -> Path:
        """The file with what sealed gates find on this machine beside the export, where several drive a run."""
        return Store(place_of(self.root)[0]).folder / "frozen" / f"{self.run_id}.json"

    def is_of_another_version(self) -> bool:
        """Return whether another version began the run: what it waits for, and its files, have another form."""
        return json.loads((self.folder / "run.json").read_bytes()).get("format") != FORMAT

    def check_format(self) -> None:
        """Refuse to go on with a run of another version.

        Raises:
            RunDamagedError: It is one.
        """
        if self.is_of_another_version():
            raise RunDamagedError(
                f"run {self.run_id} was begun by another version of Interlock, and this one only reads it",
                f"Free its files: interlock abandon {self.run_id}. Then start a new run of the task; what is in the "
                "files counts as its beginning.",
            )

    def decision(self, number: int) -> Mapping[str, Any] | None:
        """Return the answer of a person to a question, as the journal line has it; None when there is none yet.

        In a journal that is damaged there is none: who drives the run, or verifies it, is told of the damage.
        """
        with suppress(JournalError):
            entry = journal_of(self.root).find(self.run_id, decision_key(number))
            return None if entry is None else entry.data
        return None

    def _stored(self, key: str) -> dict[str, Any]:
        path = self.folder / "answers" / f"{key}.json"
        try:
            row: Any = json.loads(path.read_bytes())
            return dict(row) if isinstance(row["text"], str) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def answer(self, key: str) -> str | None:
        """Return the answer stored under a key, or None when there is none that could have been stored."""
        return self._stored(key).get("text")

    def cost(self, key: str) -> dict[str, Any]:
        """Return what is known of the answer under a key beside its text; empty for one that came from outside."""
        return self._stored(key).get("cost") or {}

    def answer_of(self, role: str, sha256: str) -> str | None:
        """Return the stored answer of a role that has this digest, or None."""
        # The name of a role may be the end of another one's; the digest decides.
        for path in sorted((self.folder / "answers").glob(f"*-{role}-*.json")):
            text = self.answer(path.stem)
            if text is not None and hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == sha256:
                return text
        return None

    def keep_answer(self, key: str, answer: Answer, *, costs: bool, files: str = "") -> None:
        """Store an answer under its key before anything is done with it; what it `costs` unless it is from outside.

        `files` is the commit with the files as the agent left them, where another machine may have to go on.

        Raises:
            RunDamagedError: It cannot be stored.
        """
        row: dict[str, Any] = {"text": answer.text}
        if costs:
            cost = {"usage": answer.usage.to_json(), "model": answer.model, "tool_calls": answer.tool_calls}
            cost |= {"stopped": answer.stopped, "told": answer.cost_reported}
            row["cost"] = cost | {"opened": None if answer.opened is None else list(answer.opened)}
        path = self.folder / "answers" / f"{key}.json"
        try:
            self.keep(f"answers/{key}.json", _readable(row), saved=files)
        except OSError as error:
            raise RunDamagedError(
                f"the answer {path} cannot be stored: {error.strerror}",
                f"Make {path.parent} a real folder that this user can write, and resume.",
            ) from error

    def keep_failure(self, key: str, role: str, spent: Usage) -> None:
        """Add what was spent on an ask before its runner failed."""
        rows = [*self._failures(key), {"key": key, "role": role, "usage": spent.to_json()}]
        self.keep(f"answers/{key}{_FAILED}", _readable(rows))

    def spent_on_failures(self, key: str) -> Usage:
        """Return what was spent on an ask by runners that failed."""
        return total(Usage.from_json(row["usage"]) for row in self._failures(key))

    def failures(self) -> list[tuple[str, dict[str, Any]]]:
        """Return every time that a runner failed after it had spent something: a journal key, and what is known."""
        found: list[tuple[str, dict[str, Any]]] = []
        for path in sorted((self.folder / "answers").glob(f"*{_FAILED}")):
            key = path.name.removesuffix(_FAILED)
            found += [(f"{key}/failed/{number}", row) for number, row in enumerate(self._failures(key), 1)]
        return found

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
            AgentConfigError, RunnerError: The one that came, after it was kept.
        """
        # Whoever drives it again tries again, so that the old reason is none any more.
        self.drop(_STOPPED)
        try:
            yield
        except (AgentConfigError, RunnerError) as error:
            row = {"code": error.code, "message": error.message, "fix": error.fix}
            self.keep(_STOPPED, _readable(row))
            raise

    def stopped(self) -> dict[str, str] | None:
        """Return code, message and fix of what ended the last drive too early; None when nothing did."""
        try:
            read = json.loads((self.folder / _STOPPED).read_bytes())
            return {name: str(read[name]) for name in ("code", "message", "fix")}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def lines(self, head: Head | None) -> list[Entry]:
        """Return the lines of the run in the journal, which has to hold the last one that its checkpoint knows.

        Raises:
            RunDamagedError: It does not: it was changed, or another branch has brought its own journal.
        """
        entries = list(journal_of(self.root).entries(self.run_id))
        if head is not None and len(entries) < head.seq:
            name = "artifacts/interlock/events.jsonl"
            raise RunDamagedError(
                f"the journal of this checkout has {len(entries)} of the {head.seq} lines of run {self.run_id}",
                f"Where commits have the journal (`git log --all -- {name}`), switch to the branch with these lines, "
                "or restore the file from there; else restore it from a copy. Then try again.",
            )
        if head is not None and entries[head.seq - 1].hash != head.hash:
            message = f"the journal no longer holds line {head.seq} of run {self.run_id} as it was written"
            raise RunDamagedError(message, restore("try again"))
        return entries

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
        """Return whether some process drives this run at this moment, or a worker is going to."""
        database = database_of(self.root)
        return self.held("lock") if database is None else legs.driven(database, self.run_id)


def no_task_run(root: Path, name: str, ticket_run: str | None = None) -> UnknownRunError:
    """Return the error for a name that no task run has; a ticket run of that name is pointed to."""
    if ticket_run is None and (root / ".interlock" / "tickets" / name / "run.json").exists():
        ticket_run = name
    if ticket_run is not None:
        return UnknownRunError(
            f"`{name}` is a ticket, not a task: its agent takes ticket run {ticket_run} on, over MCP",
            f"`interlock explain {ticket_run}` shows its state; its agent goes on with interlock_submit_ticket.",
        )
    if (database := database_of(root)) is not None:
        if legs.driven(database, name):
            where = legs.waiting(database).get(name, "is over by now")
            fix = "`interlock workers` shows what waits for whom; ask again then."
            return UnknownRunError(f"run {name} {where}", fix)
        for run, why, fix in legs.failed(database):
            if run == name and not why.startswith("CANCELLED"):
                return UnknownRunError(f"run {name} could not begin: {why}", f"{fix} Then submit the task again.")
    with suppress(JournalError):
        for run in reversed(journal_of(root).runs()):
            known = run.removeprefix(journal_run(""))
            if not is_beside(run) and name in (run, known, known.rpartition(".")[0]):
                return journal_alone(known)
    return UnknownRunError(f"there is no run or task `{name}` below {root}", "`interlock status` lists the runs.")


def journal_alone(run_id: str) -> UnknownRunError:
    """Return the error for a run of which a checkout has the lines of the journal, and no folder."""
    return UnknownRunError(
        f"the state of run {run_id} is not in this checkout, which has its journal alone",
        f"`interlock explain {run_id}` says how it stands. Go on where it was begun, or begin a new run.",
    )


def create_next(root: Path, task: Task, policy: Policy) -> str:
    """Freeze a task under the next free id `<TASK_ID>.<n>` and return it.

    An id that the journal knows is not free, even where the folder of its run is gone. One that a killed process took
    and did not fill is.
    """
    journal = journal_of(root)
    for number in count(1):
        run_id = f"{task.task_id}.{number}"
        store = RunStore(root, run_id)
        if store.exists() or journal.head(run_id) is not None:
            continue
        try:
            # Two processes may come to the same number; the one without the lock takes the next.
            with store.locked():
                if not store.exists():
                    store.create(task, policy)
                    return run_id
        except RunBusyError:
            continue
    raise AssertionError("numbers do not end")
