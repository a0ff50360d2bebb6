"""What the round before failed on: the gates that Interlock measured to fail, with their logs."""

from typing import Final

from interlock.agents.failures import FailedGate
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.gates.manifest import from_json
from interlock.graph.desk import Desk
from interlock.graph.state import TaskState

_OUTPUT_BYTES: Final = 8 * 1024


def failed_before(desk: Desk, state: TaskState) -> tuple[FailedGate, ...]:
    """Return the command gates that failed in the round before this one, in the order of the task.

    A log that is not the one that was judged is named, and not quoted.
    """
    found: dict[str, FailedGate] = {}
    for row in state.get("collected", {}).values():
        if row["attempt"] != state["attempt"] - 1 or row["collection"] is None:
            continue
        made = from_json(row["collection"])
        if made.ok or not desk.policy.protocol.gate(made.gate).command:
            continue
        log = next((file for file in made.files if file.path.endswith(".log")), None)
        read = None if log is None else read_evidence(desk.root, log.path)
        is_it = log is not None and isinstance(read, EvidenceFile) and read.sha256 == log.sha256
        output = read.data.partition(b"\n")[2] if is_it and isinstance(read, EvidenceFile) else b""
        text = desk.redactor.text(output[-_OUTPUT_BYTES:].decode("utf-8", "replace"))
        found[made.gate] = FailedGate(made.gate, log.path if log is not None else "", output=text)
    return tuple(found[gate] for gate in desk.task.gates_required if gate in found)
