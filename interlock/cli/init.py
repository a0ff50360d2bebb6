"""`interlock init` and `uninstall`: make the coding agents of this project find the server, and take that back."""

from pathlib import Path
from typing import Any, Final

import click

from interlock.cli.context import json_option, print_json, resolve_root, root_option, root_words
from interlock.install import CLIENTS, Change, apply, apply_undo, find_launch, githooks, pick, plan, plan_undo
from interlock.install.files import GIT
from interlock.install.templates import TASK, TEMPLATES, existing, not_ignored, render, write
from interlock.reservations import place

_ALL: Final = "all"
JOURNAL: Final = "artifacts/interlock/events.jsonl"
client_option = click.option(
    "--client",
    "clients",
    multiple=True,
    type=click.Choice([*CLIENTS, GIT, _ALL]),
    help="Whose configuration; may be repeated; `git`: only its hooks. Default: claude; of uninstall: all.",
)


@click.command("init")
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    help="Write interlock.toml and task.toml for such a project instead, and nothing else.",
)
@client_option
@click.option("--hooks/--no-hooks", default=True, help="Hooks that refuse edits and commits of what others hold.")
@click.option("--git-hooks/--no-git-hooks", default=True, help="Those of git among them.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@root_option
@json_option
def init_command(
    template: str | None,
    clients: tuple[str, ...],
    root: Path | None,
    *,
    hooks: bool,
    git_hooks: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Connect this project's coding agents to `interlock mcp`, and guard what they reserve.

    Writes the entry of the server and the hooks into the client's own files in the project, and git's hooks into this
    repository, and nothing outside of them. What is there already stays; an earlier git hook is called first.
    Either every file is written or none.
    """
    if template is not None and (clients or not (hooks and git_hooks)):
        raise click.UsageError("--template writes a configuration alone; give the other options to an init of its own")
    home = _project(root)
    if template is not None:
        write_template(template, home, dry_run=dry_run, as_json=as_json)
        return
    changes = plan(home, pick(clients or ("claude",), hooks=hooks), find_launch(), git=hooks and git_hooks)
    if not dry_run:
        apply(home, changes)
    if as_json:
        print_json(_data(home, changes, dry_run=dry_run, undo=False))
        return
    _show(home, changes, dry_run=dry_run)
    todo = [change for change in changes if not change.is_done]
    if dry_run or not todo:
        is_done = all(change.note == "there already" for change in changes)
        click.echo(
            "nothing was written (--dry-run)" if dry_run else "all is done" if is_done else "nothing was written"
        )
        return
    launch, where = find_launch(), root_words(home)
    click.echo(launch.reason)
    if any(change.client == GIT for change in todo):
        words, _ = githooks.program()
        click.echo(f"git's hooks start {words[0]}, of this environment: when it moves or goes, run init again.")
    for then in dict.fromkeys(f"next, in {change.title}: {change.then}" for change in todo if change.then):
        click.echo(then.format(launch=launch))
    click.echo(f"check it: interlock doctor --prove{where}")
    click.echo("for tickets, say to the agent: Work ticket DEMO-1 with Interlock.")
    click.echo(f"take it back: interlock uninstall{where}")


@click.command("uninstall")
@client_option
@click.option("--dry-run", is_flag=True, help="Show what would be undone, and write nothing.")
@root_option
@json_option
def uninstall_command(clients: tuple[str, ...], root: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Take back what `interlock init` wrote: every file as it was, byte for byte.

    A file that was edited since loses our part alone. Git's hooks go too, unless --client names a client. The program,
    the journal and what agents have reserved stay.
    """
    home = _project(root)
    changes = plan_undo(home, pick(clients or (_ALL,)), git=not clients or bool({_ALL, GIT} & set(clients)))
    if not dry_run:
        apply_undo(home, changes)
    if as_json:
        print_json(_data(home, changes, dry_run=dry_run, undo=True))
        return
    _show(home, changes, dry_run=dry_run)
    if dry_run:
        click.echo("nothing was written (--dry-run)")
        return
    click.echo("undone" if changes else "nothing to undo")
    kept = (Path(place.find(str(home)).store_path).parent, home / JOURNAL)
    if there := [str(path) for path in kept if path.exists()]:
        click.echo(f"what was reserved, and the journal, stay: {', '.join(there)}")


def _project(root: Path | None) -> Path:
    home = resolve_root(root)
    # A client reads the settings of the home folder in every project.
    if home == Path.home().resolve():
        message = f"the root is your home folder ({home}), where these files would apply to every project"
        raise click.UsageError(f"{message}; run this in a project, or name one with --root")
    return home


def _data(home: Path, changes: tuple[Change, ...], *, dry_run: bool, undo: bool) -> dict[str, Any]:
    return {
        "schema": "interlock.init/1",
        "root": str(home),
        "undo": undo,
        "written": not dry_run and any(not change.is_done for change in changes),
        "files": [
            {
                "client": change.client,
                "path": change.path,
                "changed": not change.is_done,
                "note": change.note,
                "diff": change.diff(),
            }
            for change in changes
        ],
    }


def _show(home: Path, changes: tuple[Change, ...], *, dry_run: bool) -> None:
    if Path.cwd() != home:
        click.echo(f"in {home}:")
    for change in changes:
        planned = "planned: " if dry_run and not change.is_done else ""
        click.echo(f"{change.path} ({change.title}): {planned}{change.note}")
        if dry_run:
            click.echo(change.diff(), nl=False)


def write_template(name: str, home: Path, *, dry_run: bool, as_json: bool) -> None:
    """Write the files of a template into a project, or show them.

    Raises:
        InstallError: One of the files is there; nothing was written.
    """
    files = render(TEMPLATES[name], home)
    # A dry run names what would be refused, and goes on to show the texts.
    refused = {problem.path for problem in existing(home, files)}
    ignored = not_ignored(home)
    if not dry_run:
        write(home, files, ignored)
    if as_json:
        rows = [{"path": path, "content": text} for path, text in files.items()]
        data = {"schema": "interlock.template/1", "root": str(home), "template": name, "written": not dry_run}
        print_json({**data, "files": rows, "ignored": ignored})
        return
    if Path.cwd() != home:
        click.echo(f"in {home}:")
    for path, text in files.items():
        planned = "would be made" if dry_run else "made"
        click.echo(f"{path}: {'is there, and would be refused' if path in refused else planned}")
        if dry_run:
            click.echo(text)
    if ignored:
        click.echo(f".gitignore: {' and '.join(ignored)} {'would be added' if dry_run else 'added'}")
    if dry_run:
        click.echo("nothing was written (--dry-run)")
        return
    model = "command:claude" if name == "page" else "builder=command:claude"
    where = root_words(home)
    click.echo(f"next: say in {TASK} what is to be done, and which files the work may touch")
    click.echo("commit them: `interlock gate` and runs in trees of their own read the last commit")
    click.echo(f"check it: interlock check {TASK} --model {model}{where}")
    click.echo(f"run it: interlock run {TASK} --model {model}{where}")
