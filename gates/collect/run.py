"""Making the evidence of a page: staged out of sight, published file by file, the manifest last.

A worker process looks at the page: started in a group of its own, given a time, and gone afterwards.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

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
) -> Collection:
    """Look at a page with a real browser and leave evidence of it, judged and bound.

    The target is an HTML file relative to `root`, or an http(s) URL; `categories` are the gate's own when it is one of
    those that ship; `out` is the folder that has `artifacts/`, when it is not `root`; the environment may say how long
    the look takes.

    That the content did not pass, which `ok` says, is not an error of the collector; that no evidence could be made is.
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
    # A page from disk is served without any server that could ask for a session.
    if look is not None and look.cookie is not None and page.folder is not None:
        raise collector_error("COL302", f"{page.text} is on disk, where no cookie is sent.", "Name a URL.")
    if not place.is_dir():
        raise collector_error("COL311", f"There is no folder {place}.")
    program = find_browser()
    try:
        with tempfile.TemporaryDirectory(prefix="interlock-", ignore_cleanup_errors=True) as folder:
            job = {"target": asdict(page), "categories": list(keys), "browser": program, "folder": folder}
            job |= {"look": asdict((look or Look()).chosen())}
            answer = run_worker(job, Path(folder), timeout_seconds)
            made: dict[EvidenceKey, list[Subject]] = {key: [] for key in keys}
            for key, name in answer["files"]:
                data = Path(folder, name).read_bytes()
                made[key].append(Subject(write_evidence(place, f"{binding.folder(key)}/{name}", data), key))
        rows = tuple(collected_file(subject.file, key) for key in keys for subject in made[key])
        # As in a run also when collected by hand: the file is the collector's own, so prose is no excuse.
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
    """Return the last lines of what the processes printed, for a message."""
    lines = [line for line in complaints.decode(errors="replace").splitlines() if line.strip()]
    return f" It printed: {' | '.join(lines[-5:])}"[:2000] if lines else ""
