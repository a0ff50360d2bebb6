"""`interlock check`: all that can be known of a run before it starts; nothing is started and nothing is spent."""

import sys
from pathlib import Path

import click

from interlock.agents.model_spec import OPTION
from interlock.cli.completion import complete_model
from interlock.cli.context import accept_option, count, json_option, print_json, resolve_root, root_option, talk
from interlock.cli.forms import asked, form_option, print_findings
from interlock.cli.progress import Sparse
from interlock.core.errors import Exit
from interlock.core.finding import Finding
from interlock.gates.config import load_config
from interlock.graph import base_faults, left_before, load_task, preflight, prepare, staffed, unapproved_bases


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
    """Return whether the task of TASK_FILE can start: its gates, commands, runners, keys, scope and budgets.

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
    if print_findings(faults, wanted, folder, str(task_file.resolve())):
        pass
    elif wanted == "json":
        rows = [
            {"code": row.code, "key": row.field, "message": row.message, "fix": row.fix, "level": row.level,
             "path": row.path or str(task_file)}
            for row in faults
        ]  # fmt: skip
        print_json({"schema": "interlock.check/1", "task_id": task.task_id, "ok": not errors, "findings": rows})
    else:
        for fault in faults:
            _show(fault, task_file)
        end = f"cannot start: {count(errors, 'error')}" if errors else "can start"
        click.echo(f"{task.task_id} {end}")
    sys.exit(Exit.USAGE if errors else Exit.GOOD)


def _show(fault: Finding, task_file: Path) -> None:
    click.echo(f"{fault.level} {fault.code}: {fault.path or task_file}: {fault.field}: {fault.message}")
    click.echo(f"  fix: {fault.fix}")
