"""`interlock gate` and `interlock check`: one gate on the present tree, and whether a task can start; no run begins."""

import os
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import click
from rich.console import Console

from interlock import graph
from interlock.agents.model_spec import OPTION
from interlock.cli.context import (
    EXISTING_FILE,
    NEW_FILE,
    accept_option,
    asked,
    form_option,
    json_option,
    report,
    resolve_root,
    root_option,
    show_finding,
    talk,
)
from interlock.cli.screen import Sparse
from interlock.core.errors import Exit
from interlock.core.finding import Finding
from interlock.core.process import Ended
from interlock.core.render import Form
from interlock.core.text import count, few, money_text, shown
from interlock.envelope.protocol import GateSpec
from interlock.gates import in_scope
from interlock.gates.checks.sealed import FAULTS, fault_of, located
from interlock.gates.command import Output, run_gate_command
from interlock.gates.config import FILE, PYPROJECT, Config, load_config
from interlock.gates.sealed import (
    Base,
    BaseCheck,
    SealedRun,
    Store,
    Work,
    freeze,
    place_of,
    summary,
    write,
)

_SHOWN = 10
_VACANT = "RUN620"
"""Nobody runs a role: its gates can be checked all the same."""


@click.command("gate")
@click.argument("gate_id", metavar="GATE")
@click.option(
    "--task",
    "task_file",
    type=NEW_FILE,
    help="The task file, for its scope and `may_change`; by default task.toml in the root.",
)
@click.option(
    "--base",
    "revision",
    metavar="REV|start",
    default="HEAD",
    show_default=True,
    help="What the work is compared with: a commit, or the start of the task's newest run.",
)
@root_option
@json_option
@form_option
def gate_command(
    gate_id: str,
    task_file: Path | None,
    revision: str,
    root: Path | None,
    as_json: bool,
    form: str | None,
) -> None:
    """Run the command gate GATE on the present tree, sealed as its table says.

    The configuration and the task file are read out of the base, which no agent can change.

    Exit 0 when it is passed, 1 when it is not, 2 for wrong usage and for what cannot be judged.
    """
    folder, wanted = resolve_root(root), asked(form, as_json=as_json)
    console = talk()
    base, about = _base(folder, task_file, revision)
    with settings_of(folder, base, task_file) as place:
        task = graph.load_task(_task_in(place, folder, task_file))
        policy = graph.make_policy(task, load_config(place), folder)
    gate = policy.protocol.gates.get(gate_id)
    if gate is None or not gate.command:
        known = ", ".join(row.id for row in policy.protocol.gates.values() if row.command) or "none"
        raise click.UsageError(f"{gate_id} is not a gate with a command; those of this project: {known}")
    if gate_id not in task.gates_required:
        raise click.UsageError(f"the task {task.task_id} does not require {gate_id}; add it to `gates_required`")
    if gate_id not in policy.seals:
        _unsealed(gate, folder, wanted)
    if wanted == "text":
        console.print(f"compared with {about}", style="dim", markup=False)
    done, said = _sealed(gate, folder, task, policy, base, console)
    data = {"schema": "interlock.gate/1", "gate": gate_id, "task_id": task.task_id, "ok": done.ok, **said}
    code = Exit.GOOD if done.ok else Exit.REFUSED
    faults = [_finding(fault, folder) for fault in done.faults]
    report(faults, wanted, folder, data, lambda: _show(gate, done, faults, said), code=code)


def _base(folder: Path, task_file: Path | None, revision: str) -> tuple[Base, str]:
    """Return the base, and what it is in words."""
    top, relative = place_of(folder)
    store = Store(top)
    # The newest run that froze its start counts: older ones have another base.
    if revision == "start":
        task = graph.load_task(_task_in(folder, folder, task_file))
        for run_id in graph.runs_of(folder, "runs", task.task_id):
            frozen = graph.frozen_of(graph.RunStore(folder, run_id).load()[1].sealing)
            if frozen is not None:
                return Base(store, frozen.base, frozen.root), f"the start of run {run_id}"
        raise click.UsageError(f"no run of {task.task_id} froze its start; name a commit with --base")
    if not os.path.lexists(top / ".git"):
        raise click.UsageError(
            "this project is not a git checkout, so there is no commit to compare with; use --base start"
        )
    commit = store.commit(revision)
    return Base(store, commit.tree, relative), f"commit {commit.name[:12]} of {commit.written[:16].replace('T', ' ')}"


@contextmanager
def settings_of(folder: Path, base: Base, task_file: Path | None) -> Generator[Path]:
    """Yield a folder with the configuration and the task files of the base."""
    named = "" if task_file is None else os.path.relpath(task_file.resolve(), folder)
    with TemporaryDirectory(prefix="interlock-") as name:
        # Besides the task file that is named those in the root and one folder below it, which it may refer to: nothing
        # else of the base says how the work is judged.
        for inside in base.files:
            path = base.outside(inside)
            if path in (FILE, PYPROJECT, named) or (
                path is not None and path.endswith(".toml") and path.count("/") <= 1
            ):
                place = Path(name, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(base.content(inside) or b"")
        # Without it the project would seem to have no configuration, and the refusal would name another cause.
        if not Path(name, FILE).exists() and (folder / FILE).exists():
            raise click.UsageError(f"{FILE} is not in the base, so that nothing says how it is judged; commit it")
        yield Path(name)


def _task_in(place: Path, folder: Path, task_file: Path | None) -> Path:
    """Return the task file in a folder that stands for the project."""
    name = "task.toml" if task_file is None else os.path.relpath(task_file.resolve(), folder)
    if not (place / name).exists():
        where = "here" if place == folder else "in the base; commit it"
        raise click.UsageError(f"{name} is not {where}, or name another task file with --task")
    return place / name


def _sealed(
    gate: GateSpec, folder: Path, task: graph.Task, policy: graph.Policy, base: Base, console: Console
) -> tuple[SealedRun, dict[str, Any]]:
    seldom = Sparse.on(console)
    with console.status(f"{gate.id}: freezing the tree") as status:

        def said(line: str) -> None:
            status.update(f"{gate.id}: {line}")
            if not console.is_terminal:
                seldom(f"{gate.id}: {line}")

        frozen = freeze(folder, [(gate, policy.seals[gate.id])], base=base.tree, note=said)
        case = graph.case_of(folder, gate, policy, frozen)
        work = Work(task.scope, task.may_change)
        check, done = graph.judged_on_base(case, task.scope, work, said)
    # Tests that pass on a tree without any work prove nothing about the work.
    if done.ok and not done.choice.taken:
        done = replace(done, faults=(_idle(done, check.product.patterns),))
    outside = tuple(path for path in done.choice.held if not in_scope(path, task.scope))
    # Beside the checkout, where no later run takes it for evidence.
    log = f"{case.store.folder}/gate/{gate.id}.log"
    write(log, done.execution.output.finish()[0])
    data = summary(case, done, replace(work, outside=outside), check)
    return done, {**data, **_ended(done.execution.ended, log), "note": check.note}


def _ended(ended: Ended, log: str) -> dict[str, Any]:
    return {
        "seconds": round(ended.seconds, 3),
        "exit_status": ended.exit_status,
        "timed_out": ended.timed_out,
        "log": log,
    }


def _idle(done: SealedRun, product: tuple[str, ...]) -> Finding:
    held = few(list(done.choice.held), _SHOWN)
    found = f"changed, and no product: {held}" if held else "no file differs"
    return fault_of("idle", "", found)._replace(expected=f"a change of {', '.join(product)}")


def _unsealed(gate: GateSpec, folder: Path, form: Form) -> NoReturn:
    output = Output()
    ended = run_gate_command(gate, folder, output)
    log = str(Store(place_of(folder)[0]).folder / "gate" / f"{gate.id}.log")
    write(log, output.finish()[0])
    good = ended.exit_status == 0
    data = {"schema": "interlock.gate/1", "gate": gate.id, "ok": good, "level": "unsealed", **_ended(ended, log)}
    how = "timed out" if ended.timed_out else f"exit status {ended.exit_status}"
    failed = Finding("EVD555", "error", gate.id, f"{gate.id} is not passed.", how, "exit status 0", f"Read {log}.")
    text = f"{gate.id} {'passed' if good else 'not passed'}: {how}, {ended.seconds:.1f} s, not sealed\n  log: {log}"
    code = Exit.GOOD if good else Exit.REFUSED
    report(() if good else (failed,), form, folder, data, lambda: click.echo(text), code=code)


def _finding(fault: Finding, folder: Path) -> Finding:
    """Return a fault of the tests by the code that the evidence has for it, at the place where its test failed."""
    return located(fault, folder)._replace(code=FAULTS[fault.code][0])


def _show(gate: GateSpec, done: SealedRun, faults: Sequence[Finding], said: dict[str, Any]) -> None:
    counts = ", ".join(f"{number} {name}" for name, number in said["counts"].items()) or "by its exit status"
    level = "sealed" if said["level"] == "namespaces" else "sealed without namespaces"
    click.echo(f"{gate.id} {'passed' if done.ok else 'not passed'}: {counts}, {said['seconds']:.1f} s, {level}")
    for fault in faults[:_SHOWN]:
        show_finding(fault._replace(found=shown(fault.found, 300)), err=False)
    if len(faults) > _SHOWN:
        click.echo(f"  and {len(faults) - _SHOWN} more")
    verb = "differs" if len(said["taken"]) == 1 else "differ"
    click.echo(f"  judged: {count(said['taken'], 'file')} of the product that {verb} from the base")
    titles = {
        "kept as in the base": "held_back",
        "new tests": "new",
        "skipped": "skipped",
        "new files, no product": "added",
        "silences a checker": "suppressions",
        "outside the scope, without effect": "outside",
    }
    for title, key in titles.items():
        if said[key]:
            click.echo(f"  {title}: {few(said[key], _SHOWN)}")
    if said["held_back"] and faults:
        click.echo(f'  to let the work change one: commit may_change = ["{said["held_back"][0]}"] in the task file')
    if not faults and said["note"]:
        click.echo(f"  note: {said['note']}")
    if done.changed_lines is not None:
        click.echo(f"  changed lines: {done.changed_lines.covered} of {done.changed_lines.lines} ran")
    if done.heldout is not None:
        click.echo(f"  held out: {done.heldout['passed']} of {done.heldout['total']} passed")
    click.echo(f"  log: {said['log']}")


def _judged(gate_id: str, check: BaseCheck) -> dict[str, Any]:
    """Return what a gate judges, by the run of its base, as JSON values."""
    tests = check.tests.run
    collected = {each.file for each in tests.cases}
    return {
        "gate": gate_id,
        "runner": tests.runner,
        "observed": tests.sessions > 0,
        "product": list(check.product.patterns),
        "frozen": sorted(check.product.frozen, key=lambda path: (path not in collected, path)),
        "tests": dict(Counter(each.outcome for each in tests.cases)),
        "failing": list(check.tests.failing()),
    }


def _budget_text(limits: Mapping[str, float]) -> str:
    """Return in a line what the agents of a task may spend."""
    texts: list[str] = []
    if "seconds" in limits:
        seconds = limits["seconds"]
        texts.append(f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min")
        texts[-1] += " of agents' time"
    texts += [f"{limits[name]:,} {name}" for name in ("calls", "tokens") if name in limits]
    texts += [money_text(limits["usd"])] if "usd" in limits else []
    if not texts:
        return "budget: no limit"
    defaults = {name: amount for name, amount in asdict(Config().budget).items() if amount is not None}
    whose = ", of [budget] defaults" if limits == defaults else ""
    return f"budget: at most {' and '.join(filter(None, (', '.join(texts[:-1]), texts[-1])))}{whose}"


@click.command("check")
@click.argument("task_file", type=EXISTING_FILE)
@click.option(OPTION, "models", multiple=True, metavar="[ROLE=]SPEC", help="As for `interlock run`.")
@accept_option
@root_option
@json_option
@form_option
def check_command(
    task_file: Path, models: tuple[str, ...], accept_base: bool, root: Path | None, as_json: bool, form: str | None
) -> None:
    """Check whether the task of TASK_FILE can start: its gates, commands, runners, keys, scope and budgets.

    The tests of sealed gates run on the tree as it is, in the checkout and sealed, unless that is known.

    Exit 0 when it can, 2 when it cannot.
    """
    folder, wanted = resolve_root(root), asked(form, as_json=as_json)
    task = graph.staffed(graph.load_task(task_file), load_config(folder), folder, models)
    prepared = graph.prepare(folder, task)
    faults, gates = [*graph.preflight(prepared)], dict[str, BaseCheck]()

    def view(run_id: str) -> "graph.RunView":
        # LangGraph takes half a second to import, and most tasks have no run yet.
        return graph.view_run(run_id, root=folder)

    # The tests take minutes: they wait until the rest is right. A role without a runner does not change them.
    if not any(fault.level == "error" and fault.code != _VACANT for fault in faults):
        console = talk()
        faults += graph.base_faults(
            folder,
            task,
            prepared.policy,
            Sparse.on(console),
            earlier=() if accept_base else graph.earlier_runs(folder, task.task_id, view),
            seen=gates.update,
        )
    errors = [fault for fault in faults if fault.level == "error"]
    judged = [_judged(gate_id, check) for gate_id, check in gates.items() if not check.faults]
    keys = ("code", "message", "fix", "level", "path")
    named = [fault._replace(path=fault.path or str(task_file)) for fault in faults]
    rows = [{"key": fault.field, **{key: getattr(fault, key) for key in keys}} for fault in named]
    limits = {name: amount for name, amount in asdict(prepared.policy.limits).items() if amount is not None}
    data = {"schema": "interlock.check/1", "task_id": task.task_id, "ok": not errors, "findings": rows, "gates": judged}
    data |= {"budget": limits}

    def text() -> None:
        for fault in named:
            show_finding(fault, err=False)
        for row in judged:
            kept = few(row["frozen"], 1) or "all else"
            verb = "keep their" if len(row["frozen"]) > 1 else "keeps its"
            click.echo(f"{row['gate']} judges {few(row['product'], _SHOWN)}; {kept} {verb} base content")
        click.echo(_budget_text(limits))
        end = f"cannot start: {count(errors, 'error')}" if errors else "can start"
        click.echo(f"{task.task_id} {end}")

    code = Exit.USAGE if errors else Exit.GOOD
    report(faults, wanted, folder, data, text, path=str(task_file.resolve()), code=code)
