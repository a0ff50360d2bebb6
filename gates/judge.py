"""The judgement over evidence: every cited file read once, bound to its work, and held against the gates claimed.

Whether a claimed gate has an entry at all is a rule of the envelope and is not repeated here; `verified` is still
without such a gate.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.core.finding import Finding
from interlock.envelope.protocol import EVIDENCE_KEYS, EvidenceKey, GateSpec, Grade, Protocol
from interlock.gates import rules
from interlock.gates.checks import Subject, check_gate
from interlock.gates.evidence import MAX_EVIDENCE_BYTES, EvidenceFile, outside_evidence, path_finding, read_evidence
from interlock.gates.manifest import Binding, CollectedFile, Collection, collected_file
from interlock.gates.shared import is_shared

if TYPE_CHECKING:
    from interlock.envelope import Envelope, FieldText


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """What became of the evidence of one answer or one collection.

    Args:
        findings: In the order of the entries, then of the gates.
        files: Every file that was read, cited or collected, with the digest that counts from now on.
        grades: Path to established grade.
        verified: The claimed gates whose evidence is complete and passed its check, in the order of the claim.
    """

    findings: tuple[Finding, ...]
    files: tuple[CollectedFile, ...]
    grades: Mapping[str, Grade] = field(default_factory=dict[str, Grade])
    verified: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.level == "error" for finding in self.findings)


@dataclass(slots=True)
class _FileCache:
    """The files read so far; each path is read once, and no more than the limits allow."""

    root: Path
    read: dict[str, EvidenceFile | Finding] = field(default_factory=dict[str, EvidenceFile | Finding])
    left_bytes: int = field(default_factory=lambda: MAX_EVIDENCE_BYTES)
    shared_only: bool = False

    def get(self, path: str) -> EvidenceFile | Finding:
        if path not in self.read:
            if self.shared_only and not is_shared(self.root, path):
                return path_finding(path) or outside_evidence(path)
            if self.left_bytes <= 0:
                message = f"{rules.quote(path)} was not read: the answer cites too much evidence."
                bound = f"{MAX_EVIDENCE_BYTES} bytes"
                return rules.finding("EVD513", message, found=f"more than {bound}", expected=f"at most {bound}")
            file = self.read[path] = read_evidence(self.root, path)
            if isinstance(file, EvidenceFile):
                self.left_bytes -= file.size_bytes
        return self.read[path]


@dataclass(frozen=True, slots=True)
class _Case:
    """One answer under judgement: what was read, and what the run knows of it."""

    cache: _FileCache
    subjects: list[Subject] = field(default_factory=list[Subject])
    grades: dict[str, Grade] = field(default_factory=dict[str, Grade])
    history: tuple[Collection, ...] = ()
    binding: Binding | None = None

    def current(self, gate_id: str | None = None) -> list[CollectedFile]:
        """Return the rows collected for exactly this binding, for one gate or for all."""
        chosen = [c for c in self.history if c.binding == self.binding and gate_id in (None, c.gate)]
        return [row for collection in chosen for row in collection.files]


def places_of(fields: "Mapping[str, FieldText]") -> dict[str, tuple[int, int]]:
    """Return the place of each evidence entry, `EVIDENCE.key[i]` to line and column, from a reading's fields."""
    return {
        f"EVIDENCE.{key}[{i}]": (item.line, item.column)
        for key in EVIDENCE_KEYS
        if f"EVIDENCE.{key}" in fields
        for i, item in enumerate(fields[f"EVIDENCE.{key}"].items)
    }


def judge_evidence(
    envelope: "Envelope",
    *,
    root: str | Path,
    protocol: Protocol,
    places: Mapping[str, tuple[int, int]] | None = None,
    collected: Iterable[Collection] | None = None,
    binding: Binding | None = None,
    shared_only: bool = False,
) -> EvidenceReport:
    """Judge the evidence that one envelope cites and the gates that it claims with it.

    Args:
        envelope: The answer, well-formed.
        root: The project's root.
        protocol: The tables of the project.
        places: `EVIDENCE.key[i]` to 1-based line and column; see `places_of`.
        collected: What the run's own collectors made, from its journal: of this binding and, so that stale evidence
            can be named, of earlier ones. None means outside a run.
        binding: What the evidence must be evidence of; needed in a run.
        shared_only: Whether only shared files are read; see `gates.shared`.

    Returns:
        Findings with the codes of `gates.rules`, files, grades and verified gates.

    Raises:
        ValueError: `collected` without `binding`.
        OSError: The root cannot be opened.
    """
    # With one of the two alone, evidence of a run would be judged as if anybody had written it.
    if (collected is None) != (binding is None):
        raise ValueError("a run is judged with both its collections and its binding, anything else with neither")
    case = _Case(_FileCache(Path(root), shared_only=shared_only), history=tuple(collected or ()), binding=binding)
    findings: list[Finding] = []
    refused: set[EvidenceKey] = set()
    for key, path, (line, column) in _entries(envelope, places or {}):
        file = case.cache.get(path)
        if isinstance(file, Finding):
            findings.append(file._replace(field=f"EVIDENCE.{key}", line=line, column=column))
            refused.add(key)
            continue
        subject = Subject(file, key, line, column)
        case.subjects.append(subject)
        if binding is not None:
            case.grades[path], stale = _run_grade(subject, case.history, binding)
            if stale is not None:
                findings.append(stale)
                refused.add(key)
    if binding is None:
        case.grades.update(dict.fromkeys((subject.file.path for subject in case.subjects), "written"))
    # A gate that nobody defined has a common specification, which takes the name that the answer gives it.
    claimed = [replace(protocol.gate(gate), id=gate) for gate in dict.fromkeys(envelope.gates_passed)]
    findings.extend(_misnamed_images(case.subjects, claimed))
    verified: list[str] = []
    for gate in claimed:
        found = _judge_gate(gate, case)
        # One refused file spoils every gate that may rest on its key: nobody says which file is for which gate.
        if not refused.intersection(_keys(gate)) and not any(f.level == "error" for f in found):
            verified.append(gate.id)
        findings.extend(f for f in found if f.code != "EVD520" or _has_usable(envelope, f.field, refused))
    if binding is None:
        findings.extend(_grade_note(claimed, case))
    files = [collected_file(subject.file, subject.key) for subject in case.subjects]
    # What was collected and not cited counted as well, so its digest is checked again before the approval.
    files.extend(row for row in case.current() if row.path in case.cache.read)
    # Two gates that read one file find the same.
    distinct = tuple(dict.fromkeys(findings))
    return EvidenceReport(distinct, tuple(dict.fromkeys(files)), case.grades, tuple(verified))


def judge_collection(
    collection: Collection, *, root: str | Path, protocol: Protocol, binding: Binding
) -> EvidenceReport:
    """Judge what a run has just collected for one gate, before any agent speaks of it."""
    case = _Case(_FileCache(Path(root)), history=(collection,), binding=binding)
    subjects, findings = _taken(case, collection.files, binding)
    spec = replace(protocol.gate(collection.gate), id=collection.gate)
    findings.extend(check_gate(spec, subjects, in_run=True, tree=binding.tree))
    ok = not any(finding.level == "error" for finding in findings)
    return EvidenceReport(
        tuple(dict.fromkeys(findings)),
        tuple(collected_file(subject.file, subject.key) for subject in subjects),
        dict.fromkeys((subject.file.path for subject in subjects), "runner"),
        (collection.gate,) if ok else (),
    )


def verify_again(files: Iterable[CollectedFile], root: str | Path) -> tuple[Finding, ...]:
    """Read every file again; return a finding for each that is not the one that was judged (Strict Envelope §5)."""
    findings: list[Finding] = []
    for row in dict.fromkeys(files):
        file = read_evidence(root, row.path)
        if isinstance(file, Finding):
            findings.append(file._replace(field=f"EVIDENCE.{row.key}"))
        elif file.sha256 != row.sha256:
            message = f"The evidence file {rules.quote(row.path)} is not the one that was judged."
            digests = {"found": f"sha256 {file.sha256}", "expected": f"sha256 {row.sha256}"}
            findings.append(rules.finding("EVD561", message, **digests, field=f"EVIDENCE.{row.key}"))
    return tuple(findings)


def _entries(
    envelope: "Envelope", places: Mapping[str, tuple[int, int]]
) -> Iterable[tuple[EvidenceKey, str, tuple[int, int]]]:
    for key in EVIDENCE_KEYS:
        for i, path in enumerate(envelope.evidence.get(key, ())):
            yield key, path, places.get(f"EVIDENCE.{key}[{i}]", (0, 0))


def _keys(gate: GateSpec) -> tuple[EvidenceKey, ...]:
    """Return the keys under which a gate's evidence is cited."""
    return EVIDENCE_KEYS if gate.any_evidence else gate.evidence


def _judge_gate(gate: GateSpec, case: _Case) -> list[Finding]:
    """Judge one claimed gate on what is cited for it and, in a run, on what was collected for it."""
    if case.binding is None:
        return check_gate(gate, case.subjects, in_run=False)
    findings: list[Finding] = []
    chosen = [s for s in case.subjects if s.key in _keys(gate)]
    # A log that a command left is no review, although it lies under the same key.
    if gate.check == "report":
        chosen = [s for s in chosen if case.grades[s.file.path] == "written"]
    elif gate.grade == "runner":
        # The key of a command's log is that of reviews too, so other files there are somebody else's.
        if gate.check != "command":
            findings.extend(_not_collected(gate, s) for s in chosen if case.grades[s.file.path] != "runner")
        chosen = [s for s in chosen if case.grades[s.file.path] == "runner"]
        # What was collected and is not cited counts too, since leaving out the bad half must not help.
        cited = {subject.file.path for subject in case.subjects}
        rows = (row for row in case.current(gate.id) if row.path not in cited and row.key in _keys(gate))
        uncited, refusals = _taken(case, rows, case.binding)
        chosen.extend(uncited)
        findings.extend(refusals)
    return findings + check_gate(gate, chosen, in_run=True, tree=case.binding.tree)


def _taken(case: _Case, rows: Iterable[CollectedFile], binding: Binding) -> tuple[list[Subject], list[Finding]]:
    """Read collected files; return them, and what is wrong with those that were swapped or cannot be read."""
    subjects: list[Subject] = []
    findings: list[Finding] = []
    for row in rows:
        file = case.cache.get(row.path)
        if isinstance(file, Finding):
            findings.append(file._replace(field=f"EVIDENCE.{row.key}"))
            continue
        subject = Subject(file, row.key)
        case.grades[row.path], swapped = _run_grade(subject, case.history, binding)
        subjects.append(subject)
        findings.extend(() if swapped is None else (swapped,))
    return subjects, findings


def _not_collected(gate: GateSpec, subject: Subject) -> Finding:
    """Refuse a file that nobody but its author vouches for."""
    message = f"{subject.shown} was not made by Interlock's collector in this run."
    fix = "Cite the evidence files that the assignment lists, and only those, under this key."
    expected = "grade runner: a file that this run collected"
    return subject.finding("EVD565", gate.id, message, found="grade written", expected=expected, fix=fix)


def _misnamed_images(subjects: Sequence[Subject], claimed: Sequence[GateSpec]) -> list[Finding]:
    """Look at screenshots that no claimed gate judges: they need not be good, but they must be images."""
    judged = {key for gate in claimed if gate.check == "visual" for key in gate.evidence}
    unjudged = [s for s in subjects if s.key == "screenshots" and "screenshots" not in judged]
    if not unjudged:
        return []
    from interlock.gates.checks.images import not_an_image  # noqa: PLC0415 - only where images are cited

    return [finding for subject in unjudged if (finding := not_an_image(subject))]


def _has_usable(envelope: "Envelope", name: str, refused: set[EvidenceKey]) -> bool:
    """Return whether a gate's lack of evidence is news: there are entries, and none of them was refused."""
    keys = [key for key in EVIDENCE_KEYS if name in ("EVIDENCE", f"EVIDENCE.{key}")]
    return any(envelope.evidence.get(key) for key in keys) and not refused.intersection(keys)


def _grade_note(claimed: Sequence[GateSpec], case: _Case) -> list[Finding]:
    """Say once, outside a run, that nobody vouches for evidence which a run would have made itself."""
    gates = [gate for gate in claimed if gate.grade == "runner"]
    files = [subject for subject in case.subjects if any(subject.key in _keys(gate) for gate in gates)]
    if not files:
        return []
    message = f"Nobody vouches for the {len(files)} files cited for {', '.join(gate.id for gate in gates)}."
    fix = "Run the task with `interlock run`, where the runner collects this evidence itself."
    return [files[0].finding("EVD566", "", message, found="grade written", fix=fix)]


def _run_grade(subject: Subject, history: Sequence[Collection], binding: Binding) -> tuple[Grade, Finding | None]:
    """Return the grade of one file in a run, and a finding (`EVD561`, `EVD562`) where it is not this work's evidence.

    The digest decides: a file with the bytes of a row collected for this binding is the runner's, wherever it lies.
    A path of this binding with other bytes was swapped; bytes or a path of another binding are stale; anything else
    was written by an agent and must lie in the folder of this task and attempt.
    """
    file = subject.file
    current = [row for c in history if c.binding == binding for row in c.files]
    # Agents may copy evidence and cite the copy: the bytes are what was collected.
    if any(row.sha256 == file.sha256 for row in current):
        return "runner", None
    for row in current:
        if row.path == file.path:
            message, found = f"{subject.shown} is not the file that was collected.", f"sha256 {file.sha256}"
            expected = f"sha256 {row.sha256}, as the collector recorded it"
            return "written", subject.finding("EVD561", "", message, found=found, expected=expected)
    # The newest first: it is the one that an agent most likely means.
    for collection in reversed(history):
        if collection.binding != binding and any(
            row.sha256 == file.sha256 or row.path == file.path for row in collection.files
        ):
            return "written", _stale(subject, collection.binding, binding)
    parts = file.path.split("/")
    # artifacts/<key>/<TASK_ID>/<attempt>/<name>
    if len(parts) < 5 or parts[2:4] != [binding.task_id, str(binding.attempt)]:
        folder = binding.folder(subject.key)
        message, fix = f"{subject.shown} does not lie in `{folder}/`.", f"Write it to `{folder}/` and cite it there."
        expected = f"a file below `{folder}/`"
        return "written", subject.finding("EVD562", "", message, found=subject.shown, expected=expected, fix=fix)
    return "written", None


def _stale(subject: Subject, made_for: Binding, now: Binding) -> Finding:
    """Name the other work of which a file is the evidence."""
    rows = [
        (f"task {each.task_id} of run {each.run_id}", f"attempt {each.attempt}", f"tree {each.tree}")
        for each in (made_for, now)
    ]
    found, expected = next(pair for pair in zip(*rows, strict=True) if pair[0] != pair[1])
    message = f"{subject.shown} is stale: it was collected from {found}."
    return subject.finding("EVD562", "", message, found=found, expected=expected)
