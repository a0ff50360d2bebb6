"""Making the evidence of a page: staged out of sight, published file by file, the manifest last."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from interlock.core.finding import Finding
from interlock.core.locks import locked
from interlock.envelope.protocol import GATES, EvidenceKey
from interlock.gates.checks import Subject, check_collected
from interlock.gates.collect.browser import find_browser
from interlock.gates.collect.errors import collector_error
from interlock.gates.collect.look import Look
from interlock.gates.collect.process import run_worker
from interlock.gates.collect.site import resolve_target
from interlock.gates.evidence import EvidenceFile, path_finding, write_evidence
from interlock.gates.manifest import Binding, Collection, Collector, collected_file, write_manifest

COLLECTED: Final[dict[str, tuple[EvidenceKey, ...]]] = {
    gate.id: gate.evidence for gate in GATES if gate.check in ("visual", "a11y")
}
"""The gates that ship whose evidence a browser makes, and the EVIDENCE keys of each."""

TIMEOUT_SECONDS: Final = 60.0


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

    Args:
        gate: The gate that the evidence is for.
        target: An HTML file relative to `root`, or an http(s) URL.
        root: The folder of the project.
        binding: Run, task, attempt and tree that the evidence is of.
        categories: EVIDENCE keys to make; the gate's own when it is one of those that ship.
        out: The folder that has `artifacts/`, when it is not `root`.
        timeout_seconds: How long the browser may take.
        look: How the page is looked at; the environment may say how long.
        browser: A Chromium to use in place of the one that is found.

    Returns:
        The collection; `ok` says whether its content passed, which is not an error of the collector.

    Raises:
        CollectorError: No evidence was made. Two collectors for the same place wait for each other.
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
            findings = tuple(finding for key in keys for finding in _judge(gate, key, files))
            ok = not any(finding.level == "error" for finding in findings)
            maker = Collector("interlock.collect", answer["made_with"])
            return write_manifest(place, Collection(gate, maker, binding, page.text, rows, ok, findings))
        except OSError as error:
            raise collector_error("COL311", f"The evidence could not be written: {error}.") from error


def _judge(gate: str, key: EvidenceKey, files: list[tuple[EvidenceKey, EvidenceFile]]) -> list[Finding]:
    """Apply the content check of one category, as strictly as a run does."""
    return check_collected(gate, key, [Subject(file, key) for owner, file in files if owner == key], in_run=True)


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
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
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
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
