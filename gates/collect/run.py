"""Making the evidence of a page: staged out of sight, published file by file, the manifest last.

A worker process looks at the page: started in a group of its own, given a time, and gone afterwards.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

from interlock.core.locks import locked
from interlock.core.process import capture
from interlock.envelope.protocol import GATES, EvidenceKey
from interlock.gates.checks import Subject, check_collected
from interlock.gates.collect.browser import find_browser
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.look import Look
from interlock.gates.collect.site import resolve_target
from interlock.gates.evidence import path_finding, write_evidence
from interlock.gates.manifest import Binding, Collection, Collector, collected_file, write_manifest

COLLECTED: Final[dict[str, tuple[EvidenceKey, ...]]] = {
    gate.id: gate.evidence for gate in GATES if gate.check in ("visual", "a11y")
}
"""The gates that ship whose evidence a browser makes, and the EVIDENCE keys of each."""

TIMEOUT_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 5.0
"""The worker keeps the time itself and says what it waited for; this is how much later the whole group is killed."""

_NOISE: Final = (":CONSOLE:", "/dbus/", ":INFO:", ":WARNING:", "devtools_pipe_handler")
"""Lines of Chromium that say nothing about why it failed."""


def collect(
    gate: str,
    *,
    target: str,
    root: str | Path,
    binding: Binding,
    categories: Sequence[EvidenceKey] | None = None,
    out: str | Path | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    look: Look | None = None,
    browser: str | None = None,
) -> Collection:
    """Look at a page with a real browser and leave evidence of it, judged and bound.

    The target is an HTML file relative to `root`, or an http(s) URL; `categories` are the gate's own when it is one of
    those that ship; `out` is the folder that has `artifacts/`, when it is not `root`; the environment may say how long
    the look takes; `browser` is a Chromium to use in place of the one that is found.

    Two collectors for the same place wait for each other. That the content did not pass, which `ok` says, is not an
    error of the collector; that no evidence could be made is.
    """
    keys = tuple(categories or COLLECTED.get(gate, ()))
    if not keys or not set(keys) <= {"screenshots", "console", "a11y"}:
        raise collector_error(
            "COL302",
            f"A browser collects no {', '.join(keys) or 'evidence'} for {gate}.",
            f"Ask for {' or '.join(COLLECTED)}, or name screenshots, console or a11y.",
        )
    home = Path(root).resolve()
    place = Path(out).resolve() if out is not None else home
    page = resolve_target(target, home)
    refused = next((bad for key in keys if (bad := path_finding(f"{binding.folder(key)}/{page.slug}.png"))), None)
    if refused is not None:
        raise collector_error("COL302", refused.message, "Choose a task id of printable ASCII without `/`.")
    if look is not None and look.cookie is not None and page.folder is not None:
        raise collector_error("COL302", f"{page.text} is on disk, where no cookie is sent.", "Name a URL.")
    if not place.is_dir():
        raise collector_error("COL311", f"There is no folder {place}.")
    program = find_browser(browser)
    with _staging(place, gate, binding, keys) as folder:
        job = {"target": asdict(page), "categories": list(keys), "browser": program, "folder": str(folder)}
        job |= {"look": asdict((look or Look()).chosen())}
        answer = run_worker(job, folder, timeout_seconds)
        try:
            files = [
                (key, write_evidence(place, f"{binding.folder(key)}/{name}", (folder / name).read_bytes()))
                for key, name in answer["files"]
            ]
            rows = tuple(collected_file(file, key) for key, file in files)
            made = {key: [Subject(file, owner) for owner, file in files if owner == key] for key in keys}
            findings = tuple(row for key in keys for row in check_collected(gate, key, made[key], in_run=True))
            ok = not any(finding.level == "error" for finding in findings)
            maker = Collector("interlock.collect", answer["made_with"])
            return write_manifest(place, Collection(gate, maker, binding, page.text, rows, ok, findings))
        except OSError as error:
            raise collector_error("COL311", f"The evidence could not be written: {error}.") from error


def run_worker(job: dict[str, Any], folder: Path, timeout_seconds: float) -> dict[str, Any]:
    """Run one job, as `worker.work` takes it, in a worker and return its answer; it puts its files into the folder.

    When this returns or raises, no process of the group is left: the browser's processes all hold the error pipe, and
    its end is awaited. What the worker reported is raised, COL303 when it had to be killed, or COL310 when it failed
    itself.
    """
    # -P: nothing is imported from the current folder, which belongs to the agents.
    command = [sys.executable, "-P", "-m", "interlock.gates.collect.worker"]
    whole = json.dumps({**job, "timeout_seconds": timeout_seconds}).encode() + b"\n"
    seconds = timeout_seconds + GRACE_SECONDS
    ended = capture(command, cwd=folder, env=None, timeout_seconds=seconds, stdin=whole, hold=True, grace_seconds=0.0)
    if ended.timed_out:
        raise collector_error("COL303", f"The collector was still at work {seconds:g} s after its start.")
    try:
        value: object = json.loads(ended.output)
    except ValueError:
        value = None
    tail = _tail(ended.complaints)
    if not isinstance(value, dict):
        raise collector_error("COL310", f"The collector ended with status {ended.status} and no answer.{tail}")
    answer = cast("dict[str, Any]", value)
    if "error" in answer:
        error = answer["error"]
        message = error["message"] + (tail if error["code"] == "COL304" else "")
        raise collector_error(error["code"], message, error["fix"])
    return answer


def _tail(complaints: bytes) -> str:
    """Return the last lines of what the processes printed that say something, for a message."""
    lines = [line for line in complaints.decode(errors="replace").splitlines() if line.strip()]
    useful = [line for line in lines if not any(noise in line for noise in _NOISE)]
    return f" It printed: {' | '.join(useful[-5:])}"[:2000] if useful else ""


def staging_folder(place: Path, gate: str, binding: Binding, keys: Sequence[EvidenceKey]) -> Path:
    """Return where the files of a collection are made; the same for the same place, so that leftovers are found."""
    name = hashlib.sha256(f"{place / binding.folder(keys[0])}\n{gate}".encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"interlock-{os.geteuid()}-{name}"


@contextlib.contextmanager
def _staging(place: Path, gate: str, binding: Binding, keys: tuple[EvidenceKey, ...]) -> Generator[Path]:
    """Yield a private folder for the work, alone for this place; what a killed collector left there goes first."""
    base = staging_folder(place, gate, binding, keys)
    try:
        with _alone(base.with_suffix(".lock")):
            for key in keys:
                _remove_parts(place / binding.folder(key))
            if base.exists():
                shutil.rmtree(base)
            base.mkdir(mode=0o700)
            try:
                yield base
            finally:
                shutil.rmtree(base)
    except OSError as error:
        raise collector_error("COL311", f"The collector has no place to work in: {error}.") from error


@contextlib.contextmanager
def _alone(path: Path) -> Generator[None]:
    """Hold a file's lock, and remove the file at the end; whoever held it before may have removed it meanwhile."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with locked(lock):
                if _is_at(lock, path):
                    try:
                        yield
                    finally:
                        path.unlink(missing_ok=True)
                    return
        finally:
            os.close(lock)


def _is_at(descriptor: int, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _remove_parts(folder: Path) -> None:
    """Remove half-written files whose writer is no more."""
    for part in folder.glob(".*.part"):
        writer = part.name.split(".")[-2]
        if writer.isdigit() and not _is_alive(int(writer)):
            part.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
