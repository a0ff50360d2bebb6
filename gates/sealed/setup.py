"""Dependencies that the gate makes itself: the commands of `setup`, on the base, with network, once for each state.

Answers T2: what no agent made, no agent can have changed. The commands run in an export of the base at the checkout's
path; what they leave there and git does not track (`.venv`, `node_modules`) is kept in the state folder and mounted
read-only from then on. They run again when a file at the project's root, or one of the same name below, is another one:
there manifests and lock files lie.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from interlock.gates.command import Output
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.environment import find_environment
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.sandbox import Bind, Box
from interlock.gates.sealed.settings import Seal
from interlock.gates.sealed.store import Entry, Store, write

_LIMIT_SECONDS: Final = 1800.0
_HOME: Final = "/tmp/home"  # noqa: S108 - of the sandbox
_DONE: Final = "made.json"
_TAIL_BYTES: Final = 600


def made_by_setup(
    store: Store, tree: str, root: str, seal: Seal, path: str, note: Callable[[str], None]
) -> dict[str, str]:
    """Return what `setup` made, place in the checkout to where it lies; the commands run if that is not known yet.

    Raises:
        SealError: `SEAL132` a command fails or hangs, or there are no namespaces to run it in.
    """
    if not seal.setup:
        return {}
    folder = store.folder / "setup" / _key(seal, store.files(tree), root)
    if not (folder / _DONE).exists():
        if sandbox.level() == "none":
            raise _failed(seal.setup[0], "this machine has no namespaces, in which alone `setup` can run", "")
        shutil.rmtree(folder, ignore_errors=True)
        _make(store, tree, root, seal, path, folder, note)
    rows: dict[str, str] = json.loads((folder / _DONE).read_bytes())
    return rows


def _make(store: Store, tree: str, root: str, seal: Seal, path: str, folder: Path, note: Callable[[str], None]) -> None:
    export, home = folder / "tree", store.folder / "setup" / "home"
    export.mkdir(parents=True)
    home.mkdir(exist_ok=True)
    store.export(tree, export)
    around = find_environment(store.top, root, seal, seal.setup, (), store.files(tree), {}, path)
    binds = [Bind(os.fspath(export), os.fspath(store.top), writable=True), Bind(os.fspath(home), _HOME, writable=True)]
    binds += [Bind(place, place) for place in around.places]
    env = {"PATH": around.path, "HOME": _HOME, "LANG": "C.UTF-8", **around.variables, **seal.env}
    env.pop("GOPROXY", None)
    cwd = os.path.normpath(store.top / root / seal.cwd)
    for argv in seal.setup:
        note(f"setup: {' '.join(argv)}")
        output = Output()
        words = [around.programs.get(argv[0], argv[0]), *argv[1:]]
        box = Box(tuple(binds), around.links, "host")
        ended = sandbox.run(words, box, cwd=cwd, env=env, timeout_seconds=_LIMIT_SECONDS, output=output.add)
        if ended.exit_status != 0:
            how = "did not end in time" if ended.timed_out else f"ended with status {ended.exit_status}"
            raise _failed(argv, how, output.finish()[0][-_TAIL_BYTES:].decode("utf-8", "replace"))
    made = {f"{store.top}/{name}": f"{export}/{name}" for name in store.untracked(export)}
    write(folder / _DONE, json.dumps(made).encode())


def _key(seal: Seal, files: Mapping[str, Entry], root: str) -> str:
    base = os.path.normpath(os.path.join(root, seal.cwd)).removeprefix(".")
    own = {os.path.basename(path) for path in files if os.path.dirname(path) == base}
    named = sorted((path, entry) for path, entry in files.items() if os.path.basename(path) in own)
    return sha256(repr((seal.setup, sorted(seal.env.items()), named)).encode()).hexdigest()[:32]


def _failed(argv: tuple[str, ...], why: str, tail: str) -> SealError:
    said = f" It said: {' '.join(tail.split())}" if tail.strip() else ""
    fix = "Correct `setup` in the gate's table; it runs on the base, with network, in a sandbox with a HOME of its own."
    return SealError("SEAL132", f"`{' '.join(argv)}` of `setup`: {why}.{said}", fix)
