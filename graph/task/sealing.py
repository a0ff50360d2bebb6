"""The seals of a run: what is frozen when it starts, the tests of the base, and the gate that goes by both."""

import json
import os
import posixpath
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from interlock.core.finding import Finding
from interlock.core.text import few
from interlock.envelope.protocol import GateSpec
from interlock.gates.config import FILE
from interlock.gates.errors import CollectorError
from interlock.gates.manifest import Binding, Collection
from interlock.gates.patterns import compile_scope
from interlock.gates.sealed import (
    Base,
    BaseCheck,
    Frozen,
    GateCase,
    Product,
    SealedRun,
    SealError,
    Store,
    Work,
    check_base,
    freeze,
    judge,
    named_files,
    place_of,
    run_sealed_gate,
    top_of,
)
from interlock.graph.task.policy import Policy
from interlock.graph.task.task import Task

Progress = Callable[[str], None]

_PARSED: Final = 'Nothing, or a command that runs pytest, unittest, node --test, vitest or jest, or `junit = "PATH"`.'


class Earlier(NamedTuple):
    """An earlier run: its base, and what its sealed gates judged.

    One without a base stands for what it `left`: files that it changed and no gate judged.
    """

    run_id: str
    base: Base | None
    products: tuple[Product, ...]
    left: tuple[str, ...] = ()


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
    return freeze(root, [(gate, policy.seals[gate.id]) for gate in gates], note=progress)


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
        gate.id: checked_base(
            case_of(root, gate, policy, frozen), task.scope, lambda line, name=gate.id: progress(f"{name}: {line}")
        )
        for gate in sealed_gates(task, policy)
    }


def checked_base(case: GateCase, scope: Sequence[str], progress: Progress = lambda _line: None) -> BaseCheck:
    """Run the tests of the base of one gate, as far as they are not known; a `product` without a file is a fault.

    It is none where the scope has no file but tests either: the work is to make them.
    """
    check = check_base(case, progress=progress)
    product, in_scope = check.product, compile_scope(scope).matches
    if product.globs and not product and any(in_scope(path) and not product.keeps(path) for path in case.files):
        message = f"`product` matches no file of the base: {', '.join(product.globs)}; the scope of the task does."
        fix = f"Write patterns of the files that the work may change, such as product = {json.dumps([*scope])}."
        fault = Finding("SEAL413", "error", "product", message, fix=fix)
        return replace(check, faults=(*check.faults, fault))
    return check


def sealing_error(checks: Mapping[str, BaseCheck]) -> CollectorError | None:
    """Return why a run must not start: something passes bare and fails sealed; None where nothing does."""
    for gate_id, check in checks.items():
        if check.faults:
            row = next(_faults(check))
            message = f"{gate_id} cannot be sealed as it is configured: {row.message}"
            return SealError(row.code, message, f"In [gates.{gate_id}]: {row.fix} `interlock check` tries again.")
    return None


def judged_on_base(
    case: GateCase, scope: Sequence[str], work: Work, progress: Progress = lambda _line: None
) -> tuple[BaseCheck, SealedRun]:
    """Judge work by a gate, outside of a run.

    Raises:
        CollectorError: What the base itself breaks says nothing about the work, so it is an error and no verdict.
    """
    check = checked_base(case, scope, progress)
    if (error := sealing_error({case.gate.id: check})) is not None:
        raise error
    if why := check.tests.run.judge or check.tests.run.problem:
        message = f"The tests of the base cannot be watched: {why}."
        raise SealError("SEAL403", message, f"Remove what causes it; the log is {check.log}.")
    progress("its tests run")
    return check, judge(case, work, check, progress=progress)


def base_faults(
    root: Path,
    task: Task,
    policy: Policy,
    progress: Progress = lambda _line: None,
    *,
    earlier: Iterable[Earlier] = (),
    seen: Callable[[Mapping[str, BaseCheck]], object] = lambda _checks: None,
) -> Iterator[Finding]:
    """Yield what the sealed gates of a task would meet on the tree as it is: the base is frozen, and its tests run.

    `seen` takes what the base of each gate came to.
    """
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
    seen(checks)
    products, base = [check.product for check in checks.values()], _base(frozen)
    if (fault := decided_before(base, earlier, task, products)) is not None:
        yield fault
    for gate_id, check in checks.items():
        case = case_of(root, policy.protocol.gate(gate_id), policy, frozen)
        for row in (*_faults(check), *_warnings(case, check)):
            yield row._replace(field=f"gates.{gate_id}.{row.field}", path=FILE)
    # While a gate cannot judge at all, what it would leave unjudged is no news.
    if products and not any(check.faults for check in checks.values()):
        yield from _unjudged(task, base, products)


def _unjudged(task: Task, base: Base, products: Sequence[Product]) -> Iterator[Finding]:
    """Yield the patterns of the scope whose files no gate takes from the work, and none goes by."""
    taken_out = [pattern for pattern in task.scope if pattern.startswith("!")]
    paths = base.below(base.files)

    def is_judged(path: str) -> bool:
        return task.frees(path) or any(each.keeps(path) or each.holds(path) for each in products)

    def is_idle(pattern: str) -> bool:
        matches = compile_scope([pattern, *taken_out]).matches
        rows = [path for path in paths if matches(path)]
        return bool(rows) and not any(map(is_judged, rows))

    if idle := [pattern for pattern in task.scope if not pattern.startswith("!") and is_idle(pattern)]:
        message = f"No gate judges {few(idle)} of the scope: what the work changes there is put back."
        fix = "If the work is to change it, list it in `may_change` of the task, or in `product` of a gate."
        yield Finding("SEAL415", "warning", "scope", message, fix=fix)


def _faults(check: BaseCheck) -> Iterator[Finding]:
    # One line for each thing to do: fifty tests that fail for one missing file need one correction.
    same = Counter((row.code, row.fix) for row in check.faults)
    for row in {(row.code, row.fix): row for row in reversed(check.faults)}.values():
        fix = f"Write {row.fix}; the" if row.code == "SEAL401" else f"{row.fix} The"
        more = same[row.code, row.fix] - 1
        message = f"{row.message} {more} more like this." if more else row.message
        yield row._replace(message=message, fix=f"{fix} log is {check.log}.")
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
    known = {*case.seal.allow_failing, *(check.tests.failing() if case.seal.new_only else ())}
    failing = [row for row in check.tests.failing() if known.isdisjoint({row, *_around(row)})]
    if failing:
        message = f"{len(failing)} of the base's tests fail now, and have to pass in the end."
        allow = check.tests.allow_line
        fix = f"If the task is to fix these, do nothing. Otherwise allow those that it leaves alone: {allow}"
        fix += "; `interlock check --json` lists all of them as `failing`." if allow.endswith(" more]") else ""
        yield Finding("SEAL405", "warning", "allow_failing", message, fix=fix)
    if tests.runner == "exit" and tests.exit_status:
        message = f"The command fails on the base, with status {tests.exit_status}, and has to succeed in the end."
        fix = f"Nothing, if the work is to make it succeed; the log is {check.log}."
        yield Finding("SEAL405", "warning", "command", message, fix=fix)
    if check.product.globs and not check.product and not check.faults:
        message = f"`product` matches no file of the base: {', '.join(check.product.globs)}."
        fix = "Correct it, relative to the project's root, or nothing if the work is to make them."
        yield Finding("SEAL413", "warning", "product", message, fix=fix)
    if named := _named_product(case, check):
        message = (
            f"`product` holds {few(named)}, which the command names: what the work makes of it would judge the work."
        )
        fix = "If it is a test, or starts them, list it in `tests` of the gate; otherwise do nothing."
        yield Finding("SEAL417", "warning", "product", message, fix=fix)
    if check.level == "none":
        message = "This machine has no namespaces, so the sealed command is not isolated."
        if case.seal.heldout:
            message += " The tested code can read the held-out checks."
        yield Finding("SEAL406", "warning", "sealed", message, fix="Install bubblewrap, or allow user namespaces.")


def _named_product(case: GateCase, check: BaseCheck) -> list[str]:
    """Return the files of a product that a person wrote, and not the run showed, which the command runs by name."""
    folder = case.seal.cwd
    named = named_files(" ".join(case.gate.command), case.root / folder) if case.seal.product else ()
    paths = (posixpath.normpath(posixpath.join(folder, name)) for name in named)
    return [path for path in paths if path in check.product.modules and check.product.holds(path)]


def decided_before(base: Base, earlier: Iterable[Earlier], task: Task, products: Iterable[Product]) -> Finding | None:
    """Return a fault for what decides a gate and an earlier run may have changed: it would be the `base` now.

    `earlier` are the runs of the task since one was approved, newest first, and what the last run of any task left.
    What is as in the last commit is right.
    """
    rows = list(earlier)
    # The oldest of the unapproved runs began with the right files; those after it may have begun with what it left.
    for run_id, first, before, left in [*[row for row in rows if row.left], *[row for row in rows if row.base][-1:]]:
        judging = (*products, *before)
        changed = left if first is None else sorted(base.below(first.store.differing(first.tree, base.tree)))
        found = [path for path in changed if any(product.keeps(path) for product in judging) and not task.frees(path)]
        # Asked only then: to read HEAD costs a process of git.
        committed = _committed(base) if found else None
        if committed is not None:
            differing = base.store.differing(committed, base.tree)
            found = [path for path in found if base.inside(path) in differing]
        if found:
            how = f"are not as they were when {run_id} of this task began"
            if first is None:
                how = f"were changed in {run_id}, where no gate judged them"
            restore = f"interlock restore {run_id} {shlex.join(found)}"
            return Finding(
                "SEAL407",
                "error",
                "scope",
                f"Tests, or files that decide a gate, {how}, and become the base: {few(found)}.",
                fix=f"See what changed with `{restore} --show`, and put it back with `{restore}`; or commit it, or "
                "begin once with `--accept-base`, if it is right as it is now.",
            )
    return None


def _committed(base: Base) -> str | None:
    """Return the tree of the last commit; None where there is none."""
    if os.path.lexists(base.top / ".git"):
        with suppress(SealError):
            return base.store.commit("HEAD").tree
    return None


def _around(test: str) -> tuple[str, str]:
    """Return the function and the file of a test, by which it can be allowed to fail too."""
    return test.partition("[")[0], test.partition("::")[0]


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
    return {
        "frozen": asdict(frozen),
        "tests": {gate_id: check.digest for gate_id, check in checks.items()},
        "products": {gate_id: asdict(check.product) for gate_id, check in checks.items()},
    }


def frozen_here(root: Path, task: Task, policy: Policy) -> dict[str, Any]:
    """Return what differs from machine to machine of what a run froze: its dependencies, and the records of them.

    Raises:
        CollectorError: A dependency is not there, or not as it was accepted here.
    """
    gates = [(gate, policy.seals[gate.id]) for gate in sealed_gates(task, policy)]
    frozen = asdict(freeze(root, gates, base=policy.sealing["frozen"]["base"]))
    return {name: frozen[name] for name in ("environments", "records")}


def accepted(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a run whose base a person accepted, whatever earlier runs left in it."""
    return {**record, "accepted": True} if record else {}


def is_accepted(record: Mapping[str, Any]) -> bool:
    """Return whether a person accepted the base of a run."""
    return bool(record.get("accepted"))


def frozen_of(record: Mapping[str, Any]) -> Frozen | None:
    """Return what was frozen, from the record of a run.

    Raises:
        SealError: `SEAL402` an earlier version froze it.
    """
    try:
        return Frozen(**record["frozen"]) if record else None
    except TypeError as error:
        message = "This run was begun by an earlier version of Interlock, whose base this one cannot read."
        raise SealError("SEAL402", message, "Start a new run: `interlock run TASK.toml`.") from error


def products_of(record: Mapping[str, Any]) -> dict[str, Product]:
    """Return the product of each sealed gate, from the record of a run."""
    return {gate_id: Product(**row) for gate_id, row in record.get("products", {}).items()}


def base_of(record: Mapping[str, Any]) -> Base | None:
    """Return the base of a run, from its record; None where it froze none, or the store does not hold it any more."""
    with suppress(SealError):
        frozen = frozen_of(record)
        if frozen is not None:
            base = _base(frozen)
            base.store.files(base.tree)
            return base
    return None


def _base(frozen: Frozen) -> Base:
    return Base(Store(Path(frozen.top)), frozen.base, frozen.root)


def place_in(root: Path, record: Mapping[str, Any]) -> tuple[Path, str]:
    """Return the checkout of a run and the root relative to it, as the run kept it where it froze something."""
    with suppress(SealError):
        frozen = frozen_of(record)
        if frozen is not None and frozen.top:
            return Path(frozen.top), frozen.root
    return place_of(root)


def gate_notes(task: Task, policy: Policy) -> dict[str, str]:
    """Return how the sealed gates of a task judge, one line for an assignment, by gate id."""
    free = f", those of {', '.join(task.may_change)} excepted" if task.may_change else ""
    note = (
        "it runs on a copy of the tree as it was when the run began, with your changes of the product laid over it; "
        f"tests, their data, settings and all else keep the content they had then, and are put back{free}; "
        "new tests go into files of their own"
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
    check = check_base(case, progress=progress)
    if check.digest != record["tests"].get(gate.id) and check.cached:
        check = check_base(case, progress=progress, known=False)
    check = replace(check, product=products_of(record)[gate.id])
    work = Work(task.scope, task.may_change, outside, present)
    return run_sealed_gate(case, work, check, binding=binding, progress=progress)
