"""What Interlock's collectors made, in the shape that the tool `collect_evidence` answers."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from interlock import graph
from interlock.gates.manifest import from_json

if TYPE_CHECKING:
    from interlock.gates import Collection


class EvidenceRow(TypedDict):
    """One evidence file: `key` is its EVIDENCE key, `sha256` the digest of its content."""

    key: str
    path: str
    sha256: str
    size_bytes: int


class Made(TypedDict):
    """What was made for one gate: `tree` is the digest of the files that it shows, `error` why there is none."""

    gate: str
    ok: bool
    attempt: int
    tree: str
    manifest: str
    files: list[EvidenceRow]
    findings: list[dict[str, Any]]
    error: str
    fix: str


class Collected(TypedDict):
    """What `collect_evidence` answers: `ok` when every collection was made and shows no fault."""

    ok: bool
    collections: list[Made]


def collected(rows: Iterable[Made]) -> Collected:
    """Return several collections as one answer; none at all is not ok."""
    made = list(rows)
    return Collected(ok=bool(made) and all(row["ok"] for row in made), collections=made)


def made_by_hand(collection: "Collection") -> Made:
    """Return one collection."""
    return Made(
        gate=collection.gate,
        ok=collection.ok,
        attempt=collection.binding.attempt,
        tree=collection.binding.tree,
        manifest=collection.manifest,
        files=[
            EvidenceRow(key=file.key, path=file.path, sha256=file.sha256, size_bytes=file.size_bytes)
            for file in collection.files
        ],
        findings=[finding.to_json() for finding in collection.findings],
        error="",
        fix="",
    )


def made_by_a_run(collected: "Mapping[str, graph.CollectedEvidence]", attempt: int) -> list[Made]:
    """Return what a run's collectors made in one attempt, in the order of the run's roles and gates."""
    found: list[Made] = []
    for row in collected.values():
        if row["attempt"] != attempt:
            continue
        if row["collection"] is not None:
            found.append(made_by_hand(from_json(row["collection"])))
            continue
        found.append(
            Made(
                gate="", ok=False, attempt=attempt, tree=row["tree"], manifest="", files=[], findings=[],
                error=row["error"], fix=row["fix"],
            )
        )  # fmt: skip
    return found
