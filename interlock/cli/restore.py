"""`interlock restore` and `interlock trust`: files as a run's base had them, and dependencies that a person accepts."""

import os
import shlex
from pathlib import Path

import click

from interlock.cli.answer import refuse_agents
from interlock.cli.context import diff_text, json_option, print_json, resolve_root, root_option, talk
from interlock.core.errors import InterlockError
from interlock.core.text import count
from interlock.gates.config import load_config
from interlock.gates.registry import build_protocol
from interlock.gates.sealed import freeze, seals
from interlock.graph import find_run, no_task_run, restoring, view_run


@click.command("restore")
@click.argument("run", metavar="RUN")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--show", is_flag=True, help="Show what differs and what the agent did, and write nothing.")
@click.option("--as-left", is_flag=True, help="Bring back the files as the agent left them, before they were put back.")
@click.option(
    "--tree", metavar="TREE", help="Bring back the files of a stored tree; each restore prints one, to undo it."
)
@root_option
@json_option
def restore_command(
    run: str, paths: tuple[str, ...], show: bool, as_left: bool, tree: str | None, root: Path | None, as_json: bool
) -> None:
    """Make files what they were when RUN began: its tests and settings, or the PATHs, relative to the root.

    Without PATH these are the files that RUN's agent changed and no gate took from its work. What they hold now is
    kept, and can be brought back.

    Exit 0 when it is done, 2 for wrong usage.
    """
    folder = resolve_root(root)
    run_id = find_run(folder, "runs", run)
    if run_id is None:
        raise no_task_run(folder, run)
    wanted = restoring(folder, view_run(run_id, root=folder), paths, as_left=as_left, tree=tree or "")
    if show:
        diff = ""
        for path in wanted.paths:
            before, after, names = wanted.change(path)
            diff += diff_text(before, after, *(f"{path} ({name})" for name in names))
        if as_json:
            print_json({"schema": "interlock.restore/1", "run": run_id, "files": list(wanted.paths), "diff": diff})
        else:
            click.echo(diff or "nothing differs", nl=not diff)
        return
    done = wanted.apply()
    if as_json:
        print_json({"schema": "interlock.restore/1", "run": run_id, "restored": done, "before": wanted.now})
        return
    for name in done:
        click.echo(f"{'restored' if os.path.lexists(folder / name) else 'removed'} {name}")
    if done:
        undo = f"interlock restore {run_id} {shlex.join(done)} --tree {wanted.now}"
        talk().print(f"what {count(done, 'file')} held before: {undo}", style="dim", markup=False)
    else:
        click.echo("nothing differs")


@click.command("trust")
@root_option
@json_option
def trust_command(root: Path | None, as_json: bool) -> None:
    """Accept the dependencies of the sealed gates as they are now: `.venv`, `node_modules`, and what `keep` names.

    A gate refuses dependencies that are not as they were accepted last (SEAL201), since an agent can write there.

    Exit 0 when they are accepted, 2 when they cannot be read.
    """
    refuse_agents("trust")
    folder = resolve_root(root)
    config = load_config(folder)
    protocol = build_protocol(config)
    sealed = seals(config, protocol, in_git=True)
    gates = [(protocol.gate(name), seal) for name, seal in sealed.items()]
    if not gates:
        raise InterlockError("no gate of this project is sealed", "Nothing: there is nothing to accept.")
    console = talk()
    with console.status("recording dependencies") as status:
        frozen = freeze(folder, gates, trust=True, note=status.update)
    places = sorted(frozen.records)
    if as_json:
        print_json({"schema": "interlock.trust/1", "accepted": places})
        return
    for place in places:
        click.echo(f"accepted {place}")
