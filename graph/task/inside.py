"""The process in the tree of a run: it begins the run, or drives it; see `graph.task.apart`."""

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from interlock.core import process
from interlock.core.database import this_leg
from interlock.core.errors import InterlockError
from interlock.core.files import write_atomically
from interlock.envelope.protocol import EVIDENCE_KEYS
from interlock.gates.config import load_config
from interlock.graph.engine.folder import record_of
from interlock.graph.errors import TREE, GraphError
from interlock.graph.sources.ticket import Fetched
from interlock.graph.task.runs import drive, start_run
from interlock.graph.task.sealing import frozen_here
from interlock.graph.task.store import RunStore
from interlock.graph.task.task import Task

_SETUP_SECONDS = 1800.0
_TAIL_BYTES = 2000


class _Said:
    """Writes lines of JSON; several threads may."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def __call__(self, step: Mapping[str, Any]) -> None:
        with self._lock:
            self._out.write(json.dumps(step, default=str).encode() + b"\n")
            self._out.flush()


def main() -> None:
    """Do what the request on standard input asks for."""
    root, say = Path(sys.argv[1]), _Said(sys.stdout.buffer)
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # What is printed by mistake is none of our lines.
    sys.stdout = sys.stderr
    try:
        say({"result": _DOES[request["do"]](root, request, say)})
    except InterlockError as error:
        say({"error": [error.code, error.message, error.fix]})


def _end_with_parent() -> None:
    """End this process when the one that holds its standard input is gone."""
    while os.read(0, 4096):
        pass
    os._exit(1)


def _set_up(root: Path, _request: Mapping[str, Any], say: _Said) -> str:
    for argv in load_config(root).trees.setup:
        said, output = " ".join(argv), bytearray()
        say({"notice": {"kind": "progress", "text": f"setup: {said}"}})
        ended = process.run(argv, cwd=root, env=None, timeout_seconds=_SETUP_SECONDS, output=output.extend)
        if ended.status != 0:
            last = output[-_TAIL_BYTES:].decode("utf-8", "replace").strip()
            message = f"`{said}` under `setup` of [trees] ended with status {ended.status}. It said: {last}"
            raise GraphError(message, "Correct the command, or what it says.", TREE)
    return ""


def _start(root: Path, request: Mapping[str, Any], say: _Said) -> str:
    return start_run(
        root,
        Task.from_json(request["task"]),
        warn=lambda text: say({"notice": {"kind": "warning", "text": text}}),
        progress=lambda text: say({"notice": {"kind": "progress", "text": text}}),
        accept_base=request["accept_base"],
        tree=request["tree"],
        note=request["note"],
        files=request["files"],
        tickets=[Fetched(**row) for row in request["tickets"]],
        run_id=request["run"] or None,
    )


def _drive(root: Path, request: Mapping[str, Any], say: _Said) -> str:
    store = RunStore(root, request["run"])
    if this_leg() is not None and not store.own_frozen.exists():
        # Another machine began the run. Before an agent works here, so that it cannot choose what is accepted.
        task, policy, _ = store.load()
        if policy.sealing:
            write_atomically(store.own_frozen, json.dumps(frozen_here(root, task, policy)).encode())
    drive(
        request["run"],
        root=root,
        answers=request["answers"],
        asks=request["asks"],
        until=request["until"],
        stops=request["stops"],
        notice=lambda step: say({"notice": step}),
    )
    _keep_evidence(root, request["run"])
    return ""


def _keep_evidence(root: Path, run_id: str) -> None:
    """Copy what the run's evidence is to the checkout, where the tree does not lie at its path."""
    if (home := record_of(root)) != root:
        task_id = RunStore(root, run_id).load()[0].task_id
        for key in EVIDENCE_KEYS:
            source = root / "artifacts" / key / task_id
            if source.is_dir():
                shutil.copytree(source, home / "artifacts" / key / task_id, symlinks=True, dirs_exist_ok=True)


_DOES: Mapping[str, Callable[[Path, Mapping[str, Any], _Said], str]] = {
    "setup": _set_up,
    "start": _start,
    "drive": _drive,
}

if __name__ == "__main__":
    main()
