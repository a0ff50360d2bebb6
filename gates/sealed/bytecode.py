"""Bytecode of dependencies for sealed gates: made by their interpreter from recorded sources, never by tested code.

What the run of the base imported is compiled apart from it, and later runs may only read the result. Its record belongs
to what a run keeps of its base, so that bytecode which something else wrote is not used.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.gates.sealed import keep, sandbox
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.keep import Place
from interlock.gates.sealed.sandbox import Bind, Enclosure, Pipes
from interlock.gates.sealed.store import state_folder

INSIDE: Final = "/tmp/.interlock/bytecode"  # noqa: S108 - in the private folder of the enclosure
_COMPILE: Final = """
import json, py_compile, sys
for source, level in json.load(sys.stdin):
    py_compile.compile(source, quiet=2, optimize=level)
"""
_NAME: Final = re.compile(r"(.+)\.[a-z]+-[0-9]+(?:\.opt-([12]))?\.pyc")
_SECONDS: Final = 300


def compiled(written: str, python: str, places: tuple[str, ...], links: Mapping[str, str]) -> str:
    """Compile the recorded sources of which a run wrote bytecode, and return the digest of the record of the result.

    Of the files in `written` only the names are looked at. The digest is empty where there is nothing to compile, or it
    cannot be compiled.
    """
    seen = (*places, *sandbox.SYSTEM)
    sources = tuple(sorted(row for row in _sources(written) if sandbox.is_below(row[0], seen)))
    key = repr((sources, os.path.realpath(python))).encode("utf-8", "surrogateescape")
    folder = state_folder() / "bytecode" / sha256(key).hexdigest()
    if sources and not folder_of(_known.get(folder, "")):
        binds = tuple(Bind(path, path) for path in places)
        _known[folder] = _compiled(sources, os.path.realpath(python), folder, Enclosure(binds, links=links))
    return _known.get(folder, "")


_known: Final[dict[Path, str]] = {}
"""What this process compiled: folder to digest."""


def _compiled(sources: tuple[tuple[str, int], ...], python: str, folder: Path, seen: Enclosure) -> str:
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = tempfile.mkdtemp(dir=folder.parent, prefix=".part-")
    try:
        enclosure = replace(seen, binds=(*seen.binds, Bind(made, INSIDE, writable=True)), network="none")
        words = [python, "-I", "-S", "-X", f"pycache_prefix={INSIDE}", "-c", _COMPILE]
        ended = sandbox.run(
            words, enclosure, cwd="/", env={"PATH": os.defpath}, timeout_seconds=_SECONDS,
            pipes=Pipes(lambda _: None, stdin=json.dumps(sources).encode()),
        )  # fmt: skip
        if ended.exit_status != 0:
            return ""
        shutil.rmtree(folder, ignore_errors=True)
        Path(made).rename(folder)
        return keep.record(Place(os.fspath(folder)))
    except (OSError, SealError):
        return ""
    finally:
        shutil.rmtree(made, ignore_errors=True)


def folder_of(digest: str) -> str:
    """Return the folder of a record; empty where there is none, or it holds something else now."""
    with suppress(SealError):
        if digest and next(keep.changed({(path := keep.path_of(digest)): digest}), None) is None:
            return path
    return ""


def _sources(written: str) -> Iterator[tuple[str, int]]:
    """Yield the sources that bytecode of these names was compiled from, each with the level of optimisation."""
    for folder, _, names in os.walk(written):
        for name in names:
            if found := _NAME.fullmatch(name):
                yield f"{folder[len(written) :]}/{found[1]}.py", int(found[2] or 0)
