"""Command gates: a command that the runner executes, whose exit status decides and whose log is the evidence."""

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from interlock.envelope.protocol import GateSpec
from interlock.gates.checks import Subject, check_gate
from interlock.gates.checks.texts import COMMAND_SCHEMA
from interlock.gates.errors import CollectorError
from interlock.gates.evidence import write_evidence
from interlock.gates.manifest import Binding, Collection, Collector, collected_file, write_manifest

COLLECTOR: Final = Collector("interlock-command", "1")
KEPT_BYTES: Final = 512 * 1024
"""So many bytes of the output are kept from its beginning, and as many from its end."""

_KEPT_ENVIRONMENT: Final = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "VIRTUAL_ENV")
_POLL_SECONDS: Final = 0.05
_DRAIN_SECONDS: Final = 1.0
_READ_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class _Output:
    """The beginning and the end of a stream of unknown length."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total_bytes: int = 0

    def add(self, data: bytes) -> None:
        """Keep what fits."""
        self.total_bytes += len(data)
        room = KEPT_BYTES - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room < len(data) else b""
        if len(self.tail) > 2 * KEPT_BYTES:
            del self.tail[:-KEPT_BYTES]

    def finish(self) -> tuple[bytes, int]:
        """Return what was kept, with a line where something is missing, and how many bytes were left out."""
        tail = bytes(self.tail[-KEPT_BYTES:])
        left_out = self.total_bytes - len(self.head) - len(tail)
        gap = f"\n[{left_out} bytes left out]\n".encode("ascii") if left_out else b""
        return bytes(self.head) + gap + tail, left_out


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a command ended: its exit status (negative for a signal), or None when it was stopped."""

    exit_status: int | None
    timed_out: bool


def run_command_gate(
    gate: GateSpec,
    *,
    root: str | Path,
    binding: Binding,
    environment: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Collection:
    """Run a command gate and store its log and manifest.

    The command runs without a shell in the root, with a small environment, no input, and a process group of its own
    that is ended with it. A command that fails or does not end in time makes a collection that is not `ok`.

    Args:
        gate: A row with a command.
        root: The project's root.
        binding: What the log will be evidence of.
        environment: Variables for the command; None means the few of this process that commands need. They are
            recorded nowhere.
        clock: Seconds from some start, for the time limit.

    Returns:
        The collection, its manifest written.

    Raises:
        CollectorError: `COL201` the gate has no command, `COL202` the command cannot be started, `COL203` the log
            cannot be stored.
    """
    if not gate.command:
        raise CollectorError("COL201", f"{gate.id} has no command.", f"Add `command = […]` to [gates.{gate.id}].")
    if environment is None:
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    output = _Output()
    ending = _run(gate, Path(root), environment, output, clock)
    kept, left_out = output.finish()
    header = {
        "schema": COMMAND_SCHEMA,
        "gate": gate.id,
        "argv": list(gate.command),
        "exit_status": ending.exit_status,
        "timed_out": ending.timed_out,
        "output_bytes": output.total_bytes,
        "left_out_bytes": left_out,
    }
    log = json.dumps(header, ensure_ascii=True).encode("ascii") + b"\n" + kept
    try:
        file = write_evidence(root, f"{binding.folder('reports')}/{gate.id}.log", log)
        findings = tuple(check_gate(gate, [Subject(file, "reports")], in_run=True, tree=binding.tree))
        ok = not any(finding.level == "error" for finding in findings)
        row = collected_file(file, "reports")
        shown = " ".join(gate.command)
        return write_manifest(root, Collection(gate.id, COLLECTOR, binding, shown, (row,), ok, findings))
    except OSError as error:
        raise CollectorError(
            "COL203",
            f"The log of {gate.id} cannot be stored: {error.strerror}.",
            "Make `artifacts/` a real folder that this user can write, with room on its disk.",
        ) from error


def _run(
    gate: GateSpec, root: Path, environment: Mapping[str, str], output: _Output, clock: Callable[[], float]
) -> _Ending:
    """Run the command to its end or its time limit."""
    try:
        process = subprocess.Popen(
            gate.command,
            cwd=root,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CollectorError(
            "COL202",
            f"The command of {gate.id}, `{gate.command[0]}`, cannot be started: {reason}.",
            "Install it, put its folder on PATH, or correct `command` in the configuration.",
        ) from error
    with process:
        try:
            timed_out = _follow(process, output, gate.timeout_seconds, clock)
        finally:
            _end_group(process.pid)
    return _Ending(None if timed_out else process.returncode, timed_out)


def _follow(
    process: "subprocess.Popen[bytes]", output: _Output, timeout_seconds: float, clock: Callable[[], float]
) -> bool:
    """Read the output until the command ends; say whether it had to be stopped.

    A child of the command may hold the pipe open after it: it is given a moment, then ended with the group.
    """
    stream = process.stdout
    assert stream is not None
    os.set_blocking(stream.fileno(), False)
    deadline = clock() + timeout_seconds
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        open_stream = True
        while process.poll() is None:
            if clock() >= deadline:
                return True
            if open_stream:
                open_stream = not selector.select(_POLL_SECONDS) or _read(stream, output)
            else:
                _wait(process, _POLL_SECONDS)
        last_moment = min(deadline, clock() + _DRAIN_SECONDS)
        while open_stream and clock() < last_moment:
            open_stream = not selector.select(_POLL_SECONDS) or _read(stream, output)
    return False


def _read(stream: IO[bytes], output: _Output) -> bool:
    """Read what is there; say whether more may come."""
    data = os.read(stream.fileno(), _READ_BYTES)
    output.add(data)
    return bool(data)


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Wait a moment for a command that closed its output and still runs."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _end_group(group: int) -> None:
    """End whatever is left of the command's process group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
