"""Writing what happened: journal lines under keys that make a repeated node harmless, and kept evidence."""

from pathlib import Path
from typing import Any

from interlock.gates.config import load_config
from interlock.gates.errors import ConfigError
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.gates.manifest import Collection
from interlock.graph.state import HeadRecord, TaskState
from interlock.graph.store import write_atomically
from interlock.journal import Entry, Journal


class Recorder:
    """Writes the journal of a root.

    A line that stands under its key is a fact: a node that runs again after a crash takes it over and does not
    write another.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def find(self, run_id: str, key: str) -> Entry | None:
        """Return the line of a key, or None."""
        return self.journal.find(run_id, key)

    def keep(self, run_id: str, key: str, kind: str, data: dict[str, Any]) -> Entry:
        """Return the line of a key, written now unless it stands already."""
        return self.journal.find(run_id, key) or self.journal.append(run_id, key, kind, data)

    def write(self, run_id: str, key: str, kind: str, data: dict[str, Any]) -> HeadRecord:
        """Keep a line and return the head after it."""
        self.keep(run_id, key, kind, data)
        return self.head(run_id)

    def head(self, run_id: str) -> HeadRecord:
        """Return the run's head."""
        head = self.journal.head(run_id)
        return HeadRecord(seq=0, hash="") if head is None else HeadRecord(seq=head.seq, hash=head.hash)

    def flush(self, state: TaskState) -> dict[str, Any]:
        """Write every event of the outbox, in roster order, and return the update that empties it."""
        waiting = state.get("outbox", {})
        for key, event in sorted(waiting.items(), key=lambda item: (item[1]["order"], item[0])):
            self.keep(state["run_id"], key, event["type"], event["data"])
        return {"outbox": dict.fromkeys(waiting)} if waiting else {}

    def watch_policy(self, root: Path, run_id: str, frozen: str) -> None:
        """Write down that the configuration differs from the frozen one, which stays in force for the run."""
        try:
            present = load_config(root).fingerprint()
        except ConfigError as error:
            present = f"unreadable: {error.code}"
        if present != frozen:
            data = {"frozen": frozen, "present": present, "applied": "frozen"}
            self.keep(run_id, f"policy_changed/{present}", "policy_changed", data)

    def keep_files(self, root: Path, collection: Collection) -> None:
        """Keep a copy of each collected file under its digest, so that a later run cannot replace it."""
        for file in collection.files:
            copy = root / "artifacts" / "interlock" / "objects" / file.sha256[:2] / file.sha256
            if copy.exists():
                continue
            read = read_evidence(root, file.path)
            if isinstance(read, EvidenceFile) and read.sha256 == file.sha256:
                write_atomically(copy, read.data)
