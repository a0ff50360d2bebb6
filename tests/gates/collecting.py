"""What the collector tests share: the fixture pages, one call, and a look at the processes of this machine."""

import json
import os
import select
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from interlock.envelope.protocol import EvidenceKey
from interlock.gates.collect import collect
from interlock.gates.manifest import Binding, Collection

PAGES = Path(__file__).resolve().parent.parent / "fixtures" / "pages"
BINDING = Binding("run-1", "PAGE-UI-001", 1, "sha256:" + "0" * 64)
GATE_OF: dict[str, str] = {"screenshots": "GATE-VISUAL-QA", "console": "GATE-VISUAL-QA", "a11y": "GATE-A11Y-BASELINE"}


def look(
    out: Path,
    page: str,
    *keys: EvidenceKey,
    root: Path = PAGES,
    timeout_seconds: float = 30.0,
) -> Collection:
    """Collect the named categories of one page into `out`."""
    return collect(
        GATE_OF[keys[0]],
        target=page,
        root=root,
        binding=BINDING,
        categories=keys,
        out=out,
        timeout_seconds=timeout_seconds,
    )


def errors(collection: Collection) -> list[str]:
    """Return the codes of the findings that fail the gate."""
    return [finding.code for finding in collection.findings if finding.level == "error"]


def records(out: Path, collection: Collection, width: int = 375) -> list[dict[str, Any]]:
    """Return the console records of one width."""
    path = next(file.path for file in collection.files if file.key == "console")
    lines = [json.loads(line) for line in (out / path).read_text().split("\n") if line]
    return [line for line in lines[1:] if line["width"] == width]


def report(out: Path, collection: Collection) -> dict[str, Any]:
    """Return the accessibility report."""
    return json.loads((out / collection.files[-1].path).read_text())


def everything_in(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder with their bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def processes_naming(text: str) -> dict[int, str]:
    """Return pid and command line of every process with `text` in its command line or folder, and of their descendants.

    A renderer in the browser's own sandbox hides its folder from everybody but root.
    """
    commands: dict[int, str] = {}
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        pid, folder = int(entry.name), ""
        try:
            commands[pid] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parents[pid] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        with suppress(OSError):
            folder = os.readlink(entry / "cwd")  # noqa: PTH115 - the target need not exist
        if text in f"{commands[pid]} {folder}":
            found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: commands[pid] for pid in found if commands[pid]}


def wait_for_end(pids: Iterable[int], seconds: float = 20.0) -> bool:
    """Wait until every process has ended; False when one has not in time."""
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            ready, _, _ = select.select([handle], [], [], seconds)
        finally:
            os.close(handle)
        if not ready:
            return False
    return True
