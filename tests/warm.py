"""Commands of ours in processes of their own that start warm: forked from one that has imported everything.

A cold start of the command line costs a second of processor time, nearly all of it for imports. Whether a cold start
works is for the tests that start one (`tests/test_packaging.py`, `tests/interlock/test_cli.py` and the servers').
"""

import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["tests.warm_imports"])


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
    with tempfile.TemporaryDirectory(prefix="warm-") as name:
        streams = [str(Path(name, stream)) for stream in ("stdin", "stdout", "stderr")]
        Path(streams[0]).write_text(stdin)
        environment = dict(os.environ if env is None else env)
        process = _FORKSERVER.Process(target=_run, args=(list(arguments), str(folder), environment, streams))
        process.start()
        process.join(timeout)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["interlock", *arguments], timeout)
        assert process.exitcode is not None
        out, err = (Path(stream).read_bytes().decode() for stream in streams[1:])
        return subprocess.CompletedProcess(["interlock", *arguments], process.exitcode, out, err)


def _run(arguments: list[str], folder: str, environment: dict[str, str], streams: list[str]) -> None:
    """Become the command."""
    for number, (path, flags) in enumerate(
        zip(streams, (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT), strict=True)
    ):
        handle = os.open(path, flags, 0o600)
        os.dup2(handle, number)
        if handle > 2:
            os.close(handle)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["interlock", *arguments]

    from interlock.__main__ import main

    main()
