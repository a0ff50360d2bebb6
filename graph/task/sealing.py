"""The seals of a run: what is frozen when it starts, the tests of the base, and the gate that goes by both."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from interlock.core.finding import Finding
from interlock.envelope.protocol import GateSpec
from interlock.gates.config import FILE
from interlock.gates.errors import CollectorError
from interlock.gates.manifest import Binding, Collection
from interlock.gates.sealed import (
    DEFAULT_KEEP,
    Base,
    BaseCheck,
    Frozen,
    GateCase,
    SealError,
    Work,
    check_base,
    freeze,
    is_below,
    kind_of,
    place_of,
    protection,
    run_sealed_gate,
    top_of,
    unknown_function,
)
from interlock.gates.sealed import load_base as load
from interlock.graph.task.policy import Policy
from interlock.graph.task.task import Task

Progress = Callable[[str], None]

_MAX_NAMED: Final = 10
_PARSED: Final = 'Nothing, or the plain command of the test runner, or `tests = "junit"`, so that each test is known.'


def sealed_gates(task: Task, policy: Policy) -> tuple[GateSpec, ...]:
    """Return the required gates that are sealed, in the order of the task."""
    return tuple(policy.protocol.gate(name) for name in dict.fromkeys(task.gates_required) if name in policy.seals)


def freeze_run(root: Path, task: Task, policy: Policy, progress: Progress = lambda _line: None) -> Frozen | None:
    """Freeze what the sealed gates of a run go by; None where there are none and the project is not a git checkout.

    Raises:
        CollectorError: The tree cannot be frozen, or held-out checks cannot be used.
    """
    gates = sealed_gates(task, policy)
    if not gates and top_of(Path(os.path.realpath(root))) is None:
        return None

    def report(done: int, whole: int) -> None:
        progress(f"freezing the tree: {done} of {whole} files")

    return freeze(root, [(gate, policy.seals[gate.id]) for gate in gates], progress=report, note=progress)


def in_git(root: Path) -> bool:
    """Return whether a project's root is, or belongs to, a git checkout; one that its checkout ignores does not."""
    top, _ = place_of(root)
    return os.path.lexists(top / ".git")


def case_of(root: Path, gate: GateSpec, policy: Policy, frozen: Frozen) -> GateCase:
    """Return a sealed gate with what the run froze."""
    return GateCase(gate, policy.seals[gate.id], frozen, Path(os.path.realpath(root)))


def check_bases(
    root: Path, task: Task, policy: Policy, frozen: Frozen, progress: Progress = lambda _line: None
) -> dict[str, BaseCheck]:
    """Run the tests of the base of every sealed gate, as far as they are not known, while the tree is still the base.

    Raises:
        CollectorError: A command cannot be started, or the base cannot be exported.
    """
    return {
        gate.id: check_base(
            case_of(root, gate, policy, frozen), progress=lambda line, name=gate.id: progress(f"{name}: {line}")
        )
        for gate in sealed_gates(task, policy)
    }


def _keeping_nothing(case: GateCase) -> list[str]:
    """Return the names under `keep`, but for those of every project, that keep nothing."""
    kept = case.frozen.kept

    def keeps(name: str) -> bool:
        plain = os.path.normpath(Path(name).expanduser())
        places = (os.path.realpath(folder / plain) for folder in (case.root, case.base.top))
        below = any(os.path.lexists(place) and is_below(place, kept) for place in places)
        return below or any(path.endswith(f"/{plain}") for path in kept)

    return [name for name in case.seal.keep if name not in DEFAULT_KEEP and not keeps(name)]


def sealing_error(checks: Mapping[str, BaseCheck]) -> CollectorError | None:
    """Return why a run must not start: something passes bare and fails sealed; None where nothing does."""
    for gate_id, check in checks.items():
        if not check.faults:
            continue
        row, *others = check.faults
        if row.code != "SEAL401":
            return CollectorError(row.code, f"{gate_id} cannot judge: {row.message}", row.fix)
        return CollectorError(
            row.code,
            f"{gate_id} cannot be sealed as it is configured: {row.message}{f' {len(others)} more.' if others else ''}",
            f"Write into [gates.{gate_id}] {row.fix}; the log of the sealed run is {check.log}. "
            "`interlock check TASK.toml` tries again and spends nothing.",
        )
    return None


def base_faults(
    root: Path,
    task: Task,
    policy: Policy,
    progress: Progress = lambda _line: None,
    *,
    earlier: Iterable[tuple[str, Base]] = (),
    left: Finding | None = None,
) -> Iterator[Finding]:
    """Yield what the sealed gates of a task would meet on the tree as it is: the base is frozen, and its tests run."""
    try:
        frozen = freeze_run(root, task, policy, progress)
        checks = {} if frozen is None else check_bases(root, task, policy, frozen, progress)
    except CollectorError as error:
        hidden = [f"gates.{gate.id}.heldout" for gate in sealed_gates(task, policy) if policy.seals[gate.id].heldout]
        key = hidden[0] if error.code.startswith("HELD") and hidden else "gates"
        yield Finding(error.code, "error", key, error.message, fix=error.fix, path=FILE)
        return
    if frozen is None:
        return
    if (warning := decided_before(load(root, frozen.base, frozen.top), earlier, task) or left) is not None:
        yield warning
    for gate_id, check in checks.items():
        case = case_of(root, policy.protocol.gate(gate_id), policy, frozen)
        for row in (*_faults(check), *_warnings(case, check)):
            yield row._replace(field=f"gates.{gate_id}.{row.field}", path=FILE)


def _faults(check: BaseCheck) -> Iterator[Finding]:
    for row in check.faults:
        fix = f"Write {row.fix}; the" if row.code == "SEAL401" else f"{row.fix} The"
        yield row._replace(fix=f"{fix} log is {check.log}.")
    if not check.faults and (why := check.tests.run.judge or check.tests.run.problem):
        message = f"The tests of the base cannot be watched: {why}."
        yield Finding("SEAL403", "error", "command", message, fix=f"Remove what causes it; the log is {check.log}.")


def _warnings(case: GateCase, check: BaseCheck) -> Iterator[Finding]:
    tests = check.tests.run
    if check.note:
        fix = "Nothing: its tests are parsed, and cannot be watched from inside." if tests.parsed else _PARSED
        yield Finding("SEAL404", "warning", "command", check.note, fix=fix)
    if not tests.complete and tests.exit_status is None:
        message = f"The tests of the base did not end: {len(tests.cases)} of {len(tests.collected)} came to an outcome."
        fix = f"Raise `timeout_seconds`, or nothing if ending is what the task is about; the log is {check.log}."
        yield Finding("SEAL409", "warning", "timeout_seconds", message, fix=fix)
    known = {*case.seal.allow_failing}
    failing = [row for row in check.tests.failing() if known.isdisjoint({row, *_around(row)})]
    if failing:
        message = f"{len(failing)} of the base's tests fail now, and have to pass in the end."
        allow = check.tests.allow_line
        fix = f"If the task is to fix these, do nothing. Otherwise allow those that it leaves alone: {allow}"
        yield Finding("SEAL405", "warning", "allow_failing", message, fix=fix)
    if check.level == "none":
        message = "This machine has no namespaces, so the sealed command is not isolated."
        if case.seal.heldout:
            message += " The tested code can read the held-out checks."
        yield Finding("SEAL406", "warning", "sealed", message, fix="Install bubblewrap, or allow user namespaces.")
    if idle := _keeping_nothing(case):
        message = f"`keep` names what is not there, or belongs to the base as it is: {', '.join(idle)}."
        yield Finding("SEAL411", "warning", "keep", message, fix="Correct the name, or take it out of `keep`.")
    if missing := unknown_function(case):
        fix = "Correct `function` of the held-out table, or nothing if the work is to make it."
        yield Finding("HELD109", "warning", "heldout", f"In the checkout, {missing}.", fix=fix)


def decided_before(base: Base, earlier: Iterable[tuple[str, Base]], task: Task) -> Finding | None:
    """Return a fault for what decides a gate and is not as it was when this work began; None where all of it is.

    An agent of an earlier run may have changed it, and what it changed becomes the `base` now. `earlier` are the runs
    of the task since one was approved, newest first, each with its base.
    """
    rows = list(earlier)
    if not rows or rows[-1][1].digest == base.digest:
        return None
    run_id, first = rows[-1]
    names = first.files.keys() | base.files.keys()
    differing = {name for name in names if first.files.get(name) != base.files.get(name)}
    inside = tuple(path for name in sorted(differing) if (path := base.outside(name)) is not None)
    return _becomes_base(f"are not as they were when {run_id} of this task began", inside, task)


def left_over(run_id: str, paths: Iterable[str], task: Task) -> Finding | None:
    """Return a fault for what decides a gate, was changed in an earlier run, and was not judged; None for nothing."""
    return _becomes_base(f"were changed in {run_id}, where no gate judged them", paths, task)


def _becomes_base(how: str, paths: Iterable[str], task: Task) -> Finding | None:
    free = protection((), task.may_change).free
    found = [path for path in paths if kind_of(path) and not free.matches(path)]
    if not found:
        return None
    more = f", and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    message = f"Tests, or files that decide a gate, {how}, and become the base: {', '.join(found[:_MAX_NAMED])}{more}."
    fix = (
        "Look at them (`git diff`, or `git log -p` where they are committed), and undo what an agent did and you do "
        "not want: `git restore` a changed file, delete an added one. If the rest is right, accept it once: "
        "`interlock run TASK.toml --accept-base`."
    )
    return Finding("SEAL407", "error", "scope", message, fix=fix)


def _around(test: str) -> tuple[str, str]:
    """Return the function and the file of a test, by which it can be allowed to fail too."""
    return test.partition("[")[0], test.partition("::")[0]


def tests_digest(check: BaseCheck) -> str:
    """Return the digest of what a base came to, which the run keeps."""
    return sha256(repr(check.to_json()).encode()).hexdigest()


def seal_run(root: Path, task: Task, policy: Policy, progress: Progress = lambda _line: None) -> dict[str, Any]:
    """Freeze what the sealed gates of a run go by, and return what it keeps of that; empty where nothing is frozen.

    Raises:
        CollectorError: The tree cannot be frozen, or something passes bare and fails sealed.
    """
    frozen = freeze_run(root, task, policy, progress)
    if frozen is None:
        return {}
    checks = check_bases(root, task, policy, frozen, progress)
    if (error := sealing_error(checks)) is not None:
        raise error
    return {"frozen": asdict(frozen), "tests": {gate_id: tests_digest(check) for gate_id, check in checks.items()}}


def accepted(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a run whose base a person accepted, whatever earlier runs left in it."""
    return {**record, "accepted": True} if record else {}


def is_accepted(record: Mapping[str, Any]) -> bool:
    """Return whether a person accepted the base of a run."""
    return bool(record.get("accepted"))


def frozen_of(record: Mapping[str, Any]) -> Frozen | None:
    """Return what was frozen, from the record of a run."""
    return Frozen(**record["frozen"]) if record else None


def base_of(root: Path, record: Mapping[str, Any]) -> Base | None:
    """Return the base of a run, from its record; None where it froze none, or the store does not hold it any more."""
    frozen = frozen_of(record)
    if frozen is not None:
        with suppress(SealError):
            return load(root, frozen.base, frozen.top)
    return None


def place_in(root: Path, record: Mapping[str, Any]) -> tuple[Path, str]:
    """Return the checkout of a run and the root relative to it, as the run kept it where it froze something.

    Raises:
        SealError: `SEAL101` it is not kept, and cannot be found out now.
    """
    frozen = frozen_of(record)
    if frozen is None or not frozen.top:
        return place_of(root)
    relative = os.path.relpath(os.path.realpath(root), frozen.top)
    return Path(frozen.top), "" if relative == "." else relative


def gate_notes(task: Task, policy: Policy) -> dict[str, str]:
    """Return how the sealed gates of a task judge, one line for an assignment, by gate id."""
    free = f", those of {', '.join(task.may_change)} excepted" if task.may_change else ""
    note = (
        "it runs on a copy of the tree as it was when the run began, with the files in scope laid over it; tests, "
        f"their data and the settings of the test runner keep the content they had then{free}"
    )
    return {gate.id: note for gate in sealed_gates(task, policy)}


def collect_sealed(
    root: Path,
    task: Task,
    policy: Policy,
    gate: GateSpec,
    record: Mapping[str, Any],
    *,
    binding: Binding,
    present: Callable[[], Mapping[str, str]],
    outside: tuple[str, ...] = (),
    progress: Progress = lambda _line: None,
) -> Collection:
    """Run a sealed gate in a run.

    `outside` has what changed outside the scope since the work was assigned; `present` lists the scope as it is now.

    Raises:
        CollectorError: The gate could not be judged.
    """
    frozen = frozen_of(record)
    if frozen is None:
        message = f"The run froze no tree for {gate.id}, so there is nothing to seal it by."
        raise CollectorError("SEAL402", message, "Start a new run.")
    case = case_of(root, gate, policy, frozen)
    check = check_base(case, progress=progress, bare=False)
    if tests_digest(check) != record["tests"].get(gate.id) and check.cached:
        check = check_base(case, progress=progress, bare=False, known=False)
    work = Work(task.scope, task.may_change, outside, present)
    case = replace(case, bytecode=check.bytecode)
    return run_sealed_gate(case, work, check.tests, binding=binding, progress=progress)
