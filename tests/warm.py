"""Commands of ours in processes of their own that start warm: forked from one that has imported everything.

A cold start of the command line costs a second of processor time, nearly all of it for imports. Whether a cold start
works is for the tests that start one (`tests/test_packaging.py`, `tests/interlock/test_cli.py` and the servers').
"""

import io
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

_WRITTEN = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["tests.warm_imports"])
_STARTING = threading.Lock()
"""Held to start a process, and to read how one ended: a start also reads the ends of others, and each is there once."""


def interlock(
    folder: Path, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command of ours in a folder, as `python -m interlock` does.

    Args:
        folder: The working folder.
        arguments: What follows `interlock`.
        stdin: What it reads.
        env: Its whole environment; default: the present one.
        timeout: Seconds after which it is killed and `subprocess.TimeoutExpired` raised.
    """
    return _process(["interlock", *arguments], folder, stdin.encode(), env, timeout)


def validate_envelope(
    folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `validate-envelope` in a folder; the arguments are those of `interlock`, standard input is bytes."""
    return _process(["validate-envelope", *arguments], folder, stdin, env, 120)


def script(path: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a script of the tests, as `python PATH` does.

    Args:
        path: The script.
        arguments: What follows it.
        timeout: Seconds after which it is killed and `subprocess.TimeoutExpired` raised.
    """
    return _process([str(path), *arguments], Path.cwd(), b"", None, timeout)


def started(line: list[str], folder: Path, env: Mapping[str, str], log: Path) -> BaseProcess:
    """Start a command of ours in a folder and a session of its own, and return its process; `log` has what it says.

    Args:
        line: The command and its arguments.
        folder: The working folder.
        env: Its whole environment.
        log: A file to append to.
    """
    process = _FORKSERVER.Process(target=_serve, args=(line, str(folder), dict(env), os.fspath(log)))
    with _STARTING:
        process.start()
    return process


def _serve(line: list[str], folder: str, environment: dict[str, str], log: str) -> None:
    os.setsid()
    _become(line, folder, environment, [os.devnull, log, log])


def _process(
    line: list[str], folder: Path, stdin: bytes, env: Mapping[str, str] | None, timeout: float
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="warm-") as name:
        streams = [str(Path(name, stream)) for stream in ("stdin", "stdout", "stderr")]
        Path(streams[0]).write_bytes(stdin)
        environment = dict(os.environ if env is None else env)
        process = _FORKSERVER.Process(target=_become, args=(line, str(folder), environment, streams))
        with _STARTING:
            process.start()
        if not wait([process.sentinel], timeout):
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(line, timeout)
        with _STARTING:
            code = process.exitcode
        assert code is not None
        out, err = (Path(stream).read_bytes().decode() for stream in streams[1:])
        return subprocess.CompletedProcess(line, code, out, err)


def _become(line: list[str], folder: str, environment: dict[str, str], streams: list[str]) -> None:
    """Turn this process into the command or the script."""
    for number, (path, flags) in enumerate(zip(streams, (os.O_RDONLY, _WRITTEN, _WRITTEN), strict=True)):
        handle = os.open(path, flags, 0o600)
        os.dup2(handle, number)
        if handle > 2:
            os.close(handle)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = line
    if line[0] == "interlock":
        from interlock.__main__ import main

        main()
    elif line[0] == "validate-envelope":
        from interlock.validate_envelope import main as validate

        sys.exit(validate())
    else:
        runpy.run_path(line[0], run_name="__main__")
