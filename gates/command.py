"""Command gates: a command that the runner executes, whose exit status decides and whose log is the evidence."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from interlock.core import process
from interlock.envelope.protocol import GateSpec
from interlock.gates.checks import Subject, check_gate
from interlock.gates.checks.texts import COMMAND_SCHEMA
from interlock.gates.errors import CollectorError
from interlock.gates.evidence import write_evidence
from interlock.gates.manifest import Binding, Collection, Collector, collected_file, write_manifest

COLLECTOR: Final = Collector("interlock-command", "1")
KEPT_BYTES: Final = 512 * 1024
"""So many bytes of the output are kept from its beginning, and as many from its end."""

KEPT_ENVIRONMENT: Final = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "VIRTUAL_ENV")


@dataclass(slots=True)
class Output:
    """The beginning and the end of a stream of unknown length."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total_bytes: int = 0

    def add(self, data: bytes) -> None:
        """Keep what fits."""
        self.total_bytes += len(data)
        space_left = KEPT_BYTES - len(self.head)
        self.head += data[:space_left]
        self.tail += data[space_left:]
        # Cut only now and then, since each cut copies what is kept.
        if len(self.tail) > 2 * KEPT_BYTES:
            del self.tail[:-KEPT_BYTES]

    def finish(self) -> tuple[bytes, int]:
        """Return what was kept, with a line where something is missing, and how many bytes were left out."""
        tail = bytes(self.tail[-KEPT_BYTES:])
        left_out = self.total_bytes - len(self.head) - len(tail)
        gap = f"\n[{left_out} bytes left out]\n".encode("ascii") if left_out else b""
        return bytes(self.head) + gap + tail, left_out


def run_command_gate(
    gate: GateSpec, *, root: str | Path, binding: Binding, environment: Mapping[str, str] | None = None
) -> Collection:
    """Run a command gate and store its log and manifest.

    The command runs without a shell in the root, with a small environment, no input, and a process group of its own
    that is ended with it. A command that fails or does not end in time makes a collection that is not `ok`. The
    environment, by default the few variables of this process that commands need, is recorded nowhere.

    Raises:
        CollectorError: `COL202` the command cannot be started, `COL203` the log cannot be stored.
    """
    output = Output()
    ended = run_gate_command(gate, root, output, environment=environment)
    return store_log(gate, ended, output, root=root, binding=binding)


def run_gate_command(
    gate: GateSpec, root: str | Path, output: Output, *, environment: Mapping[str, str] | None = None
) -> process.Ended:
    """Run the command of a gate that is not sealed, in the root; `COL202` where it cannot be started.

    Python finds no compiled code there: what a cache holds is bound to no digest, so it looks for that in an empty
    folder, and puts there what it compiles.
    """
    if environment is None:
        environment = process.environment_of(KEPT_ENVIRONMENT)
    try:
        with TemporaryDirectory(prefix="interlock-pycache-") as empty:
            return process.run(
                gate.command,
                cwd=os.fspath(root),
                # An agent can leave compiled code that differs from its source.
                env={**environment, "PYTHONPYCACHEPREFIX": empty},
                timeout_seconds=gate.timeout_seconds,
                output=output.add,
            )
    except (OSError, ValueError) as error:
        raise unstartable(gate, error) from error


def unstartable(gate: GateSpec, error: Exception, program: str = "") -> CollectorError:
    """Return the error for a command of a gate that cannot be started, by its program where that is another one."""
    key = "prepare" if program not in ("", gate.command[0]) else "command"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return CollectorError(
        "COL202",
        f"The {key} of {gate.id}, `{program or gate.command[0]}`, cannot be started: {reason}.",
        f"Install it, put its folder on PATH, or correct `{key}` of [gates.{gate.id}] in interlock.toml.",
    )


def store_log(
    gate: GateSpec,
    ended: process.Ended,
    output: Output,
    *,
    root: str | Path,
    binding: Binding,
    sealed: Mapping[str, Any] | None = None,
    results: bytes | None = None,
) -> Collection:
    """Store the log of a gate's command, judge it, and write the manifest; `COL203` where a file cannot be stored.

    `sealed` is what a sealed gate found, for the header of the log; `results` are the tests with their outcomes, as
    JSON, stored beside the log.
    """
    kept, left_out = output.finish()
    header: dict[str, Any] = {
        "schema": COMMAND_SCHEMA,
        "gate": gate.id,
        "argv": list(gate.command),
        "exit_status": ended.exit_status,
        "timed_out": ended.timed_out,
        "output_bytes": output.total_bytes,
        "left_out_bytes": left_out,
    }
    if sealed is not None:
        header["sealed"] = dict(sealed)
    log = json.dumps(header, ensure_ascii=True).encode("ascii") + b"\n" + kept
    folder = binding.folder("reports")
    try:
        file = write_evidence(root, f"{folder}/{gate.id}.log", log)
        # The stored file is judged, as it will be again: keys are redacted in it.
        findings = tuple(check_gate(gate, [Subject(file, "reports")], in_run=True, tree=binding.tree))
        rows = [collected_file(file, "reports")]
        if results is not None:
            rows.append(collected_file(write_evidence(root, f"{folder}/{gate.id}.tests.json", results), "reports"))
        ok = not any(finding.level == "error" for finding in findings)
        shown = " ".join(gate.command)
        return write_manifest(root, Collection(gate.id, COLLECTOR, binding, shown, tuple(rows), ok, findings))
    except OSError as error:
        raise CollectorError(
            "COL203",
            f"The log of {gate.id} cannot be stored: {error.strerror}.",
            "Make `artifacts/` a real folder that this user can write, on a disk with free space.",
        ) from error
