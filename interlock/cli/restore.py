"""`interlock restore` and `interlock trust`: files as a run's base had them, and dependencies that a person accepts."""

import shlex
from pathlib import Path

import click

from interlock.cli.answer import refuse_agents
from interlock.cli.context import diff_text, json_option, print_json, resolve_root, root_option, talk
from interlock.core.errors import InterlockError
from interlock.core.text import count, few
from interlock.gates.config import load_config
from interlock.gates.registry import build_protocol
from interlock.gates.sealed import Base, freeze, seals
from interlock.graph import (
    UnknownRunError,
    base_of,
    find_run,
    keeping_base,
    left_changed,
    products_of,
    put_back_of,
    view_run,
)


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
        raise UnknownRunError(f"there is no run or task {run!r}", "`interlock status` lists the runs.")
    view = view_run(run_id, root=folder)
    base = base_of(view.policy.sealing)
    if base is None:
        raise click.UsageError(f"run {view.run_id} has no base in the store, so there is nothing to restore from")
    done = list(put_back_of(folder, view.run_id))
    # A dictionary keeps the order of the hand-overs and drops what comes twice.
    known = dict.fromkeys(path for each in done for path in each.paths)
    known |= dict.fromkeys(left_changed(view.values, view.policy.sealing))
    now = base.store.snapshot(base.root)
    if not paths:
        # Where a run ended without a hand-over, nothing was put back yet.
        inside, outside = keeping_base(base, now, view.task, products_of(view.policy.sealing))
        known |= dict.fromkeys((*inside, *outside))
    wanted = [*(paths or known)]
    # The newest hand-over that put something back has what the agent wrote last.
    left = next((each.work for each in reversed(done)), "")
    source = tree or (left if as_left else base.tree)
    if as_left and not left:
        raise click.UsageError(f"nothing was put back in run {view.run_id}")
    if show:
        diff = "".join(_shown(base, path, now, source, left) for path in wanted)
        if as_json:
            print_json({"schema": "interlock.restore/1", "run": view.run_id, "files": wanted, "diff": diff})
        else:
            click.echo(diff or "nothing differs", nl=not diff)
        return
    kept = base.store.files(now)
    there = [path for path in wanted if (folder / path).is_file() or (folder / path).is_symlink()]
    # What is about to be written over has to be in the snapshot, or it could not be brought back.
    lost = [path for path in there if base.inside(path) not in kept]
    if lost:
        raise click.UsageError(
            f"{few(lost)} is in no tree: git ignores it, or it is no file of the project. What it holds now would be "
            "kept nowhere; move an ignored file away first"
        )
    restored = base.store.restore(source, [base.inside(path) for path in wanted])
    # The store counts from the top of the repository, and a person from the root of the project.
    names = [path for name in restored if (path := base.outside(name)) is not None]
    if as_json:
        print_json({"schema": "interlock.restore/1", "run": view.run_id, "restored": names, "before": now})
        return
    for name in names:
        click.echo(f"{'restored' if base.store.files(source).get(base.inside(name)) else 'removed'} {name}")
    if names:
        undo = f"interlock restore {view.run_id} {shlex.join(names)} --tree {now}"
        talk().print(f"what {count(names, 'file')} held before: {undo}", style="dim", markup=False)
    else:
        click.echo("nothing differs")


def _shown(base: Base, path: str, now: str, source: str, left: str) -> str:
    """Return how a file would change; where it is as wanted, what the agent did to it before it was put back."""
    inside = base.inside(path)
    trees, names = (now, source), ("as it is", "as wanted")
    present, wanted = (base.store.files(tree).get(inside) for tree in trees)
    if present == wanted and left:
        trees, names = (base.tree, left), ("as in the base", "as the agent left it")
        present, wanted = (base.store.files(tree).get(inside) for tree in trees)
    before, after = (b"" if each is None else base.store.content(each.oid) for each in (present, wanted))
    return diff_text(before, after, f"{path} ({names[0]})", f"{path} ({names[1]})")


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
