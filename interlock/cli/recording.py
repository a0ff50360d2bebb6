"""`--record` and `--replay`: the recording that a run is written to, or replayed from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import Any, Final

import click

from interlock.agents import AgentConfigError, Runner, RunnerError
from interlock.agents.recording import AskObserver, Listing, Recording, exists
from interlock.agents.recording_file import read_recording
from interlock.agents.runners.recorded import RecordedRunner
from interlock.gates.errors import TreeError
from interlock.gates.evidence import PARTS
from interlock.gates.manifest import SUFFIX
from interlock.gates.tree import every_file, in_scope, tree_files
from interlock.graph import Policy, RunPhase, Task, agent_roles, key_variables, view_run
from interlock.redaction import Redactor, redactor_for


def recording_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options `--record` and `--replay`; it is called with them as one `recording`."""

    @click.option("--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                  help="Write every ask, its answer and the files that changed into FILE.")  # fmt: skip
    @click.option("--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
                  help="Take every answer from FILE, which --record wrote; no agent is asked.")  # fmt: skip
    @wraps(command)
    def with_recording(*args: Any, record: Path | None, replay: Path | None, **options: Any) -> None:
        if record is not None and replay is not None:
            raise click.UsageError("--record and --replay exclude each other")
        command(*args, recording=RecordingOptions(record, replay), **options)

    return with_recording


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """The file that a run is recorded into, and the one that it is replayed from."""

    record: Path | None = None
    replay: Path | None = None

    @property
    def words(self) -> str:
        """Return the options as they are typed, to go on in the same way."""
        pairs = (("--record", self.record), ("--replay", self.replay))
        return "".join(f" {name} {quote(str(path))}" for name, path in pairs if path is not None)

    def check(self, folder: Path, task: Task) -> None:
        """Check before a run begins that the file can serve it.

        Raises:
            AgentConfigError: It exists, lies among the files of the task, or is the recording of another task.
        """
        if self.record is not None:
            _check_place(self.record, folder, task)
            if self.record.exists():
                raise exists(self.record)
            if not self.record.parent.is_dir():
                fix = f"Make the folder {self.record.parent}, or name a file in another."
                raise AgentConfigError(str(self.record), "", "its folder does not exist", fix)
        if self.replay is not None and (found := read_recording(self.replay).task_id) != task.task_id:
            message = f"it is the recording of task {found}, not of {task.task_id}"
            raise AgentConfigError(str(self.replay), "line 1", message, "Name a recording of this task.")

    def open(
        self, run_id: str, folder: Path, *, begins: bool
    ) -> tuple[AskObserver | None, Mapping[str, Runner] | None]:
        """Return what records a run that is driven now, and the runners that replay its agents.

        Where the run `begins`, so does the recording; otherwise the one that it has is continued.

        Raises:
            AgentConfigError: The file cannot serve.
        """
        if self.record is None and self.replay is None:
            return None, None
        view = view_run(run_id, root=folder)
        task, policy = view.task, view.policy
        redactor = redactor_for(folder, key_variables(policy))
        listing = listing_of(folder, task, policy, redactor)
        if self.replay is not None:
            runner = RecordedRunner.load(self.replay, listing, redactor)
            return runner, dict.fromkeys(agent_roles(policy), runner)
        assert self.record is not None
        if not begins:
            return Recording.go_on(self.record, run_id=run_id, listing=listing, redactor=redactor), None
        root, name = str(folder), task.task_id
        recorder = Recording.begin(
            self.record, run_id=run_id, root=root, task_id=name, listing=listing, redactor=redactor
        )
        return recorder, None


NOT_RECORDED: Final = RecordingOptions()
"""Neither recorded nor replayed."""


def end_note(recorder: AskObserver | None, recording: RecordingOptions, phase: RunPhase, *, begins: bool) -> str:
    """Return a note for people about the recording of a run that ended or waits; empty when there is none.

    What an earlier command replayed is not known here, so unused answers are reported of a run that this one began.
    """
    if phase == "waiting" and recording.record is not None:
        return f"the answer of an agent is recorded when it is handed in with{recording.words}"
    if begins and phase == "done" and isinstance(recorder, RecordedRunner) and recorder.unused:
        return f"the recording holds answers that this run did not ask for: {', '.join(recorder.unused)}"
    return ""


def listing_of(root: Path, task: Task, policy: Policy, redactor: Redactor) -> Listing:
    """Return what lists the files in scope and in a reports folder, but for what Interlock puts there itself."""
    gates = (policy.protocol.gate(gate_id) for gate_id in task.gates_required)
    made = {f"{gate.id}{end}" for gate in gates if gate.command or gate.grade == "runner" for end in (".log", SUFFIX)}

    def listing(reports_dir: str) -> Mapping[str, str]:
        try:
            files = tree_files(root, task.scope)
            there = reports_dir and (root / reports_dir).is_dir()
            reports = every_file(root, reports_dir, but=(PARTS,)) if there else {}
        except TreeError as error:
            message = redactor.text(f"the files cannot be listed for the recording: {error.message}")
            raise RunnerError(message, redactor.text(error.fix)) from error
        return files | {path: value for path, value in reports.items() if path.rpartition("/")[2] not in made}

    return listing


def _check_place(path: Path, folder: Path, task: Task) -> None:
    """Refuse a recording that would change what it records."""
    try:
        inside = path.resolve().relative_to(folder).as_posix()
        if not inside.startswith("artifacts/") and not in_scope(inside, task.scope):
            return
    except (ValueError, TreeError):
        return  # outside, or a scope that is refused when the task is checked
    message = "the file lies among those of the task, and the recording would change what it records"
    raise AgentConfigError(str(path), "", message, "Name a file outside of the scope and of `artifacts`.")
