"""Writing what happened: bounded journal lines under keys that make a repeated node harmless, and kept evidence."""

import json
import os
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.gates.config import load_config
from interlock.gates.errors import ConfigError
from interlock.gates.evidence import EvidenceFile, read_evidence, write_evidence
from interlock.gates.manifest import Collection
from interlock.gates.response import input_exists
from interlock.graph.engine.folder import HeadRecord, record_of, restore
from interlock.graph.errors import RunDamagedError
from interlock.graph.task.kept_evidence import OBJECTS
from interlock.graph.task.machine import certifiers
from interlock.graph.task.policy import Policy, grammar_fingerprint
from interlock.graph.task.state import TaskState
from interlock.graph.task.task import Task
from interlock.journal import Entry, Head, Journal

Json: TypeAlias = Any

MAX_BYTES: Final = 160 * 1024
"""No bounded value is longer as JSON, so that it fits into a journal line."""

_STEPS: Final = ((2000, 50), (400, 50), (200, 20), (80, 8), (16, 2))
"""How many characters of a text and how many items of a list are kept: the first row that fits."""

_OPEN: Final = "network, and all that the user can read"
"""What no sandbox of an agent closes: clients need it."""


def bounded(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy that fits into a journal line: texts of at most 2000 characters and lists of at most 50 items.

    Where that is still too much for one line, all texts and lists are cut further.
    """
    cut: dict[str, Any] = {}
    for chars, items in _STEPS:
        cut = cast("dict[str, Any]", _cut(dict(value), chars, items))
        # Measured as it is written: with escapes a character may take twelve bytes.
        if len(json.dumps(cut)) <= MAX_BYTES:
            break
    return cut


def _cut(value: Json, chars: int, count: int) -> Json:
    if isinstance(value, str):
        left = len(value) - chars
        return value if left <= 0 else f"{value[:chars]}… ({left} more characters)"
    if isinstance(value, (list, tuple)):
        items = cast("list[Json] | tuple[Json, ...]", value)
        kept = [_cut(item, chars, count) for item in items[:count]]
        return kept if len(items) <= count else [*kept, f"… ({len(items) - count} more)"]
    if isinstance(value, dict):
        return {key: _cut(item, chars, count) for key, item in cast("dict[str, Json]", value).items()}
    return value


_APPLIED: Final = {"config": "frozen", "grammar": "present"}
"""Which of two differing policies holds for the run: a grammar comes with the installed version."""


def policy_changes(root: Path, frozen: Mapping[str, str]) -> list[dict[str, str]]:
    """Return what is no longer as a run froze it: `config` or `grammar`, both digests, and which of them is applied."""
    try:
        config = load_config(root).fingerprint()
    except ConfigError as error:
        config = f"unreadable: {error.code}"
    return [
        {"what": name, "frozen": frozen[name], "present": present, "applied": _APPLIED[name]}
        for name, present in (("config", config), ("grammar", grammar_fingerprint()))
        if present != frozen[name]
    ]


def _undelivered(journal: Journal, task: Task, run_id: str) -> str:
    """Return the tree that the work on a task began with, where its newest earlier run did not end APPROVED.

    What that run left in the files is work of the task: a new run may deliver it without a further change. A run that
    began with such work itself passes on where that began. Empty when there is none, or its scope was another one.
    """
    newest: Entry | None = None
    moves: list[Mapping[str, Any]] = []
    for entry in journal.entries():
        if entry.run == run_id:
            continue
        if entry.type == "run_started" and entry.data.get("task", {}).get("task_id") == task.task_id:
            # The run that began last is the newest; what older ones still write is not among its moves.
            newest, moves = entry, []
        elif newest is not None and entry.run == newest.run and entry.type == "status":
            moves.append(entry.data)
    if newest is None or not moves or moves[-1]["to"] == "APPROVED":
        return ""
    if newest.data["task"]["scope"] != list(task.scope):
        return ""
    return str(newest.data.get("origin") or moves[0]["tree"])


def set_aside(root: Path, task_id: str, attempt: int, run_id: str) -> None:
    """Rename the evidence folders of an attempt that begins: what lies there already is evidence of other work.

    Raises:
        RunDamagedError: A folder cannot be renamed.
    """
    for key in EVIDENCE_KEYS:
        folder = root / "artifacts" / key / task_id / str(attempt)
        if not os.path.lexists(folder):
            continue
        numbers = count(1)
        aside = folder.with_name(f"{attempt}.before-{run_id}")
        while os.path.lexists(aside):
            aside = folder.with_name(f"{attempt}.before-{run_id}-{next(numbers)}")
        try:
            folder.rename(aside)
        except OSError as error:
            raise RunDamagedError(
                f"the evidence in {folder} is of other work and cannot be put aside: {error.strerror}",
                "Remove that folder, and resume.",
            ) from error


class Recorder:
    """Writes the journal of a root.

    A line under a key is a fact: a node that runs again after a crash takes it over and does not write
    another. Whoever drives a run holds its lock, so a line that appears meanwhile is nobody's fact.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._heads: dict[str, Head | None] = {}

    def watch(self, run_id: str, *, anew: bool = False) -> None:
        """Make sure that nobody else has written lines of this run since this recorder first looked.

        With `anew`, every line of the run is read again, and must still follow the one before it.

        Raises:
            RunDamagedError: Lines were added, taken away or, as far as that is looked at, edited.
            JournalError: A line is not what was written.
        """
        # A journal object remembers the chain of what it read, so that only another one sees an edit further up.
        head = (Journal(self.journal.path, self.journal.upstream) if anew else self.journal).head(run_id)
        # The first look of a recorder is the reference: `_check_records` has held it to the checkpoint before.
        if self._heads.setdefault(run_id, head) != head:
            raise RunDamagedError(
                f"somebody else wrote journal lines of run {run_id} while it was driven", restore("resume")
            )

    def find(self, run_id: str, key: str) -> Entry | None:
        """Return the line of a key, or None."""
        self.watch(run_id)
        return self.journal.find(run_id, key)

    def keep(self, run_id: str, key: str, kind: str, data: dict[str, Any]) -> Entry:
        """Return the line of a key, written now unless there is one; long texts and lists are cut."""
        known = self.find(run_id, key)
        if known is not None:
            return known
        entry = self.journal.append(run_id, key, kind, bounded(data))
        # Our own line moves the reference; one of anybody else does not, and is found at the next look.
        self._heads[run_id] = Head(entry.seq, entry.hash)
        return entry

    def head(self, run_id: str) -> HeadRecord:
        """Return the run's head, which nobody else has moved."""
        self.watch(run_id)
        head = self.journal.head(run_id)
        return HeadRecord(seq=0, hash="") if head is None else HeadRecord(seq=head.seq, hash=head.hash)

    def flush(self, state: TaskState) -> dict[str, Any]:
        """Write every event of the outbox, in roster order, and return the update that empties it.

        Raises:
            RunDamagedError: The journal has another event under the key of one of them.
        """
        waiting = state.get("outbox", {})
        for key, event in sorted(waiting.items(), key=lambda item: (item[1]["order"], item[0])):
            entry = self.keep(state["run_id"], key, event["type"], event["data"])
            # Under this key somebody may have written before the step came to it. Compared as cut, as the line was
            # written.
            if (entry.type, dict(entry.data)) != (event["type"], bounded(event["data"])):
                raise RunDamagedError(
                    f"the journal holds another `{key}` of run {state['run_id']} than the one that happened",
                    restore("resume"),
                )
        return {"outbox": dict.fromkeys(waiting)} if waiting else {}

    def watch_policy(self, root: Path, run_id: str, frozen: Mapping[str, str]) -> None:
        """Write down that configuration or grammar differ from the frozen ones; the configuration's stays in force."""
        for data in policy_changes(root, frozen):
            self.keep(run_id, f"policy_changed/{data['present']}", "policy_changed", dict(data))

    def keep_files(self, root: Path, collection: Collection) -> None:
        """Keep a copy of each collected file under its digest, so that a later run cannot replace it.

        Raises:
            RunDamagedError: The copy cannot be stored.
        """
        home = record_of(root)
        for file in collection.files:
            copy = f"{OBJECTS}/{file.sha256[:2]}/{file.sha256}"
            kept = read_evidence(home, copy)
            if isinstance(kept, EvidenceFile) and kept.sha256 == file.sha256:
                continue
            read = read_evidence(root, file.path)
            if isinstance(read, EvidenceFile) and read.sha256 == file.sha256:
                try:
                    write_evidence(home, copy, read.data)
                except OSError as error:
                    raise RunDamagedError(
                        f"the copy {copy} of an evidence file cannot be stored: {error.strerror}",
                        f"Make {OBJECTS} a real folder that this user can write.",
                    ) from error


def tree_of(policy: Policy) -> dict[str, str]:
    """Return the tree that a run works in, and what its agents' programs are kept in and what stays open to them."""
    return {"name": policy.tree, "sandbox": "namespaces" if policy.sandbox else "none", "open": _OPEN}


def open_journal(
    recorder: Recorder,
    run_id: str,
    root: Path,
    task: Task,
    policy: Policy,
    sealing: Mapping[str, Any],
    tickets: Sequence[Mapping[str, Any]] = (),
) -> Entry:
    """Return the first line of a run, written now unless it is there: its task, its roster, and what it goes by.

    Raises:
        RunDamagedError: The journal says that the run was started with another task.
    """
    data: dict[str, Any] = {
        # Where the task file lay is a path of this machine, and the journal may be shared.
        "task": task.to_json() | {"base": ""},
        "task_sha256": task.fingerprint(),
        "roster": list(policy.protocol.roles),
        "certifiers": certifiers(policy.protocol, task.gates_required),
        "fingerprints": dict(policy.fingerprints),
        "missing_inputs": [path for path in task.inputs if not input_exists(str(root), path)],
    }
    if origin := _undelivered(recorder.journal, task, run_id):
        data["origin"] = origin
    if sealing:
        data["base"] = sealing["frozen"]["base"]
    if policy.tree:
        data["tree"] = tree_of(policy)
    if tickets:
        data["tickets"] = [*tickets]
    entry = recorder.keep(run_id, "run_started", "run_started", data)
    # A journal of another checkout, or an id that was used before, would else be taken for this run.
    if entry.data["task_sha256"] != data["task_sha256"]:
        raise RunDamagedError(
            f"the journal says that run {run_id} was started with another task",
            "Start a new run; `interlock verify` shows what the journal holds.",
        )
    return entry
