"""What the round before failed on: the gates that Interlock measured to fail, with their logs."""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from interlock.agents.failures import FailedGate, FailedTest
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.gates.manifest import from_json
from interlock.graph.task.desk import Desk
from interlock.graph.task.state import TaskState

_OUTPUT_BYTES: Final = 8 * 1024
_OWN_MESSAGE: Final = frozenset({"failed", "still_failing", "not_collected"})
"""Faults whose `found` is what the test runner said."""


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
        header, _, output = read.data.partition(b"\n") if is_it and isinstance(read, EvidenceFile) else (b"", b"", b"")
        # Keys go before anything is cut: half of one would not be known.
        text = desk.redactor.data(output)[-_OUTPUT_BYTES:].decode("utf-8", "replace")
        tests, more = _failed_tests(desk, header)
        found[made.gate] = FailedGate(made.gate, log.path if log is not None else "", tests, text, more)
    return tuple(found[gate] for gate in desk.task.gates_required if gate in found)


def _failed_tests(desk: Desk, header: bytes) -> tuple[tuple[FailedTest, ...], int]:
    """Return the tests that a sealed gate found at fault, and how many more its log does not name."""
    if not header:
        return (), 0
    sealed = cast("Mapping[str, Any] | None", json.loads(header).get("sealed"))
    if sealed is None:
        return (), 0
    named = [row for row in sealed["faults"] if row["test"]]
    tests = tuple(FailedTest(row["test"], desk.redactor.text(_said_of(row))) for row in named)
    return tests, int(sealed["more_faults"]) if named else 0


def _said_of(fault: Mapping[str, str]) -> str:
    """Return what is said of a test: its own message where it failed, else what is wrong with it."""
    if fault["kind"] in _OWN_MESSAGE:
        return fault["found"]
    return f"{fault['message']} Found: {fault['found']}"
