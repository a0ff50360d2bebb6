"""What a run leaves behind: files that were changed and had no say in its gates, and files that changed after it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from interlock.gates.errors import TreeError
from interlock.gates.evidence import EvidenceFile, read_evidence
from interlock.gates.manifest import from_json
from interlock.gates.sealed import Base, SealError, read_entry
from interlock.gates.shared import shared
from interlock.gates.tree import tree_diff, tree_files
from interlock.graph.task.sealing import base_of
from interlock.graph.task.state import CollectedEvidence
from interlock.graph.task.store import RunStore

if TYPE_CHECKING:
    from interlock.graph.task.view import RunView


def left_changed(root: Path, values: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that are not as they were when a run began, and that none of its sealed gates judged.

    These are files outside the scope, and files in scope that kept the content of the base. Files that other agents
    hold are theirs.
    """
    held = {row["path"] for row in values.get("outside", []) if row["holder"]}
    named = {row["path"] for row in values.get("outside", [])} | set(_held_back(root, values))
    base = base_of(root, record)
    return tuple(sorted(path for path in named - held if base is None or _differs(base, path)))


def tree_after(view: "RunView", root: Path, *, shared_only: bool = False) -> dict[str, list[str]]:
    """Return what of the tree is not as an ended run judged it, as JSON values; nothing of one that is not over.

    `not_judged` is as for `left_changed`. `changed_since` are the files in scope that are not as they were APPROVED.
    With `shared_only` these are the files that a caller with a token is told of.
    """
    if view.phase != "done":
        return {"not_judged": [], "changed_since": []}
    since: list[str] = []
    approved = RunStore(root, view.run_id).handed_over(view.values["attempt"]) if view.status == "APPROVED" else {}
    with suppress(TreeError):
        diff = tree_diff(approved, tree_files(root, view.task.scope)) if approved else ()
        since = sorted((*diff.added, *diff.changed, *diff.removed)) if diff else []
    left = left_changed(root, view.values, view.policy.sealing)
    told = shared(root, (*left, *since)) if shared_only else {*left, *since}
    return {
        "not_judged": [path for path in left if path in told],
        "changed_since": [path for path in since if path in told],
    }


def _held_back(root: Path, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files in scope whose content of the base the sealed gates of the last attempt judged."""
    for row in cast("dict[str, CollectedEvidence]", values.get("collected", {})).values():
        if row["attempt"] != values.get("attempt") or row["collection"] is None:
            continue
        for file in from_json(row["collection"]).files:
            read = read_evidence(root, file.path) if file.path.endswith(".log") else None
            if isinstance(read, EvidenceFile) and read.sha256 == file.sha256:
                sealed: Mapping[str, Any] | None = json.loads(read.data.partition(b"\n")[0]).get("sealed")
                yield from () if sealed is None else map(str, sealed["held_back"])


def _differs(base: Base, path: str) -> bool:
    inside = base.inside(path)
    try:
        return read_entry(base.top, inside)[0] != base.files.get(inside)
    except SealError:
        return inside in base.files
