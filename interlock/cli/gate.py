"""`interlock gate` and `interlock check`: one gate on the present tree, and whether a task can start; no run begins."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console

from interlock.agents.model_spec import OPTION
from interlock.cli.completion import complete_model
from interlock.cli.context import (
    accept_option,
    asked,
    form_option,
    json_option,
    report,
    resolve_root,
    root_option,
    talk,
)
from interlock.cli.progress import Sparse
from interlock.core.errors import Exit
from interlock.core.finding import Finding
from interlock.core.render import Form
from interlock.core.text import count
from interlock.envelope.protocol import GateSpec
from interlock.gates import in_scope
from interlock.gates.checks.sealed import FAULTS
from interlock.gates.command import Output, run_gate_command
from interlock.gates.config import FILE, PYPROJECT, load_config
from interlock.gates.sealed import (
    Base,
    SealedRun,
    Store,
    Work,
    base_of,
    check_base,
    freeze,
    freeze_tree,
    judge,
    load_base,
    place_of,
    summary,
    write,
)
from interlock.graph import (
    Policy,
    RunStore,
    Task,
    base_faults,
    case_of,
    frozen_of,
    in_git,
    left_before,
    load_task,
    make_policy,
    preflight,
    prepare,
    runs_of,
    staffed,
    unapproved_bases,
)

_SHOWN = 10
_USUAL = ("task.toml", "*.task.toml", "tasks/*.toml")
"""Where task files are, from the root."""


@click.command("gate")
@click.argument("gate_id", metavar="GATE")
@click.option(
    "--task", "task_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The task file, for its scope and `may_change`; by default the only one of task.toml, *.task.toml and "
    "tasks/*.toml in the root.",
)  # fmt: skip
@click.option("--base", "revision", metavar="REV|start", default="HEAD", show_default=True,
              help="What the work is compared with: a commit, or the start of the task's newest run.")  # fmt: skip
@click.option("--as-configured", is_flag=True,
              help="Judge by interlock.toml and the task file as they are now, where the base has others.")  # fmt: skip
@root_option
@json_option
@form_option
def gate_command(
    gate_id: str,
    task_file: Path | None,
    revision: str,
    as_configured: bool,
    root: Path | None,
    as_json: bool,
    form: str | None,
) -> None:
    """Run the command gate GATE on the present tree, sealed as its table says.

    Exit 0 when it is passed, 1 when it is not, 2 for wrong usage.
    """
    folder, wanted = resolve_root(root), asked(form, as_json=as_json)
    task_file = task_file or _only_task(folder)
    task = load_task(task_file)
    policy = make_policy(task, load_config(folder), folder)
    gate = policy.protocol.gates.get(gate_id)
    if gate is None or not gate.command:
        known = ", ".join(row.id for row in policy.protocol.gates.values() if row.command) or "none"
        raise click.UsageError(f"{gate_id} is not a gate with a command; those of this project: {known}")
    if gate_id not in task.gates_required:
        raise click.UsageError(f"the task {task.task_id} does not require {gate_id}; add it to `gates_required`")
    if gate_id not in policy.seals:
        _unsealed(gate, folder, wanted)
    console = talk()
    base, dirty = _base(folder, task, revision)
    if not as_configured:
        _check_settings(folder, task_file, dirty, base, revision)
    outside = tuple(path for path in dirty if not in_scope(path, task.scope))
    if outside and wanted == "text":
        _name(console, outside)
    done, said = _sealed(gate, folder, task, policy, base, outside, console)
    data = {"schema": "interlock.gate/1", "gate": gate_id, "task_id": task.task_id, "ok": done.ok, **said}
    code = Exit.GOOD if done.ok else Exit.REFUSED
    report(map(_finding, done.faults), wanted, folder, data, lambda: _show(gate, done, said), code=code)


def _only_task(folder: Path) -> Path:
    """Return the task file of a project that has one alone in the usual places."""
    found = sorted({path for pattern in _USUAL for path in folder.glob(pattern) if path.is_file()})
    if len(found) == 1:
        return found[0]
    shown = ", ".join(os.path.relpath(path) for path in found[:_SHOWN]) + (" …" if len(found) > _SHOWN else "")
    raise click.UsageError(
        f"name the task file with --task; there are {len(found)} here: {shown}"
        if found
        else f"name the task file with --task; there is none here, of {', '.join(_USUAL)}"
    )


def _check_settings(folder: Path, task_file: Path, dirty: Iterable[str], base: Base, revision: str) -> None:
    """Refuse to judge by a configuration or a task that the base has otherwise: an agent may have changed it."""
    own = base.inside(FILE) in base.files or not (folder / PYPROJECT).exists()
    names = {
        FILE if own or (folder / FILE).exists() else PYPROJECT,
        os.path.relpath(task_file.resolve(), folder.resolve()),
    }
    changed = [name for name in dirty if name in names and base.inside(name) in base.files]
    changed = [name for name in changed if not _same_lines(folder / name, base.content(base.inside(name)))]
    if changed:
        raise click.UsageError(
            f"{' and '.join(changed)} not as in the base ({revision}), and the gate would be judged by it; restore it, "
            "commit it where the change is yours, or add --as-configured"
        )


def _same_lines(file: Path, content: bytes | None) -> bool:
    """Return whether a file has some content, whatever its lines end in: git may convert them on checkout."""
    return content is not None and file.is_file() and file.read_bytes().replace(b"\r\n", b"\n") == content


def _base(folder: Path, task: Task, revision: str) -> tuple[Base, tuple[str, ...]]:
    if revision == "start":
        for run_id in runs_of(folder, "runs", task.task_id):
            frozen = frozen_of(RunStore(folder, run_id).load()[1].sealing)
            if frozen is not None:
                base = load_base(folder, frozen.base, frozen.top)
                start, now = base.files, freeze_tree(folder).files
                differing = (name for name in start.keys() | now.keys() if start.get(name) != now.get(name))
                return base, _inside_root(base, sorted(differing))
        raise click.UsageError(f"no run of {task.task_id} froze its start; name a commit with --base")
    if not in_git(folder):
        raise click.UsageError(
            "this project is not a git checkout, so there is no commit to compare with; use --base start"
        )
    base, dirty = base_of(folder, revision)
    return base, _inside_root(base, dirty)


def _inside_root(base: Base, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for name in names if (path := base.outside(name)) is not None)


def _sealed(
    gate: GateSpec, folder: Path, task: Task, policy: Policy, base: Base, outside: tuple[str, ...], console: Console
) -> tuple[SealedRun, dict[str, Any]]:
    with console.status(f"{gate.id}: freezing the tree") as status:

        def said(line: str) -> None:
            status.update(f"{gate.id}: {line}")

        frozen = freeze(folder, [(gate, policy.seals[gate.id])], base=base, note=said)
        case = case_of(folder, gate, policy, frozen)
        check = check_base(case, progress=said, bare=False)
        work = Work(task.scope, task.may_change, outside)
        said("its tests run")
        done = judge(replace(case, bytecode=check.bytecode), work, check.tests, progress=said)
    log = f"{case.base.store.folder}/gate/{gate.id}.log"
    write(log, done.execution.output.finish()[0])
    ended = done.execution.ended
    return done, {
        **summary(case, done, work),
        "seconds": round(ended.seconds, 3), "exit_status": ended.exit_status, "timed_out": ended.timed_out, "log": log,
    }  # fmt: skip


def _unsealed(gate: GateSpec, folder: Path, form: Form) -> NoReturn:
    output = Output()
    ended = run_gate_command(gate, folder, output)
    log = str(Store(place_of(folder)[0]).folder / "gate" / f"{gate.id}.log")
    write(log, output.finish()[0])
    good = ended.exit_status == 0
    data = {
        "schema": "interlock.gate/1", "gate": gate.id, "ok": good, "level": "unsealed",
        "exit_status": ended.exit_status, "timed_out": ended.timed_out, "seconds": round(ended.seconds, 3), "log": log,
    }  # fmt: skip
    how = "timed out" if ended.timed_out else f"exit status {ended.exit_status}"
    failed = Finding("EVD555", "error", gate.id, f"{gate.id} is not passed.", how, "exit status 0", f"Read {log}.")
    text = f"{gate.id} {'passed' if good else 'not passed'}: {how}, {ended.seconds:.1f} s, not sealed\n  log: {log}"
    code = Exit.GOOD if good else Exit.REFUSED
    report(() if good else (failed,), form, folder, data, lambda: click.echo(text), code=code)


def _finding(fault: Finding) -> Finding:
    """Return a fault of the tests by the code that the evidence has for it, at the file of its test."""
    return fault._replace(code=FAULTS[fault.code][0], path=fault.field.partition("::")[0])


def _name(console: Console, paths: tuple[str, ...]) -> None:
    what = "differs from the base and has" if len(paths) == 1 else "differ from the base and have"
    console.print(f"{count(paths, 'file')} outside the scope {what} no effect:", style="yellow")
    for path in paths[:_SHOWN]:
        console.print(f"  {path}", markup=False)
    if len(paths) > _SHOWN:
        console.print(f"  and {len(paths) - _SHOWN} more")


def _show(gate: GateSpec, done: SealedRun, said: dict[str, Any]) -> None:
    counts = ", ".join(f"{number} {name}" for name, number in said["counts"].items()) or "tests not parsed"
    level = "sealed" if said["level"] == "namespaces" else "sealed without namespaces"
    click.echo(f"{gate.id} {'passed' if done.ok else 'not passed'}: {counts}, {said['seconds']:.1f} s, {level}")
    for row in done.faults[:_SHOWN]:
        click.echo(f"  {row.message}")
        click.echo(f"    found:    {' '.join(row.found.split())[:300]}")
        click.echo(f"    expected: {row.expected}")
        click.echo(f"    fix:      {row.fix}")
    if len(done.faults) > _SHOWN:
        click.echo(f"  and {len(done.faults) - _SHOWN} more")
    for title, paths in (("kept as in the base", done.plan.held_back), ("new tests", done.comparison.new)):
        if paths:
            click.echo(f"  {title}: {', '.join(paths[:_SHOWN])}{' …' if len(paths) > _SHOWN else ''}")
    if done.heldout is not None:
        click.echo(f"  held out: {done.heldout['passed']} of {done.heldout['total']} passed")
    click.echo(f"  log: {said['log']}")


@click.command("check")
@click.argument("task_file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    OPTION,
    "models",
    multiple=True,
    metavar="[ROLE=]SPEC",
    shell_complete=complete_model,
    help="As for `interlock run`.",
)
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
    task = staffed(load_task(task_file), load_config(folder), folder, models)
    prepared = prepare(folder, task)
    faults = [*preflight(prepared)]
    if not any(fault.level == "error" for fault in faults):
        console = talk()
        faults += base_faults(
            folder,
            task,
            prepared.policy,
            Sparse(lambda line: console.print(line, style="dim", markup=False)),
            earlier=() if accept_base else unapproved_bases(folder, task.task_id),
            left=None if accept_base else left_before(folder, task),
        )
    errors = [fault for fault in faults if fault.level == "error"]
    rows = [
        {"code": row.code, "key": row.field, "message": row.message, "fix": row.fix, "level": row.level,
         "path": row.path or str(task_file)}
        for row in faults
    ]  # fmt: skip
    data = {"schema": "interlock.check/1", "task_id": task.task_id, "ok": not errors, "findings": rows}

    def text() -> None:
        for row in rows:
            click.echo(f"{row['level']} {row['code']}: {row['path']}: {row['key']}: {row['message']}")
            click.echo(f"  fix: {row['fix']}")
        end = f"cannot start: {count(errors, 'error')}" if errors else "can start"
        click.echo(f"{task.task_id} {end}")

    code = Exit.USAGE if errors else Exit.GOOD
    report(faults, wanted, folder, data, text, path=str(task_file.resolve()), code=code)
