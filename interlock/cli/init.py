"""`interlock init` and `uninstall`: make the coding agents of this project find the server, and take that back."""

import shlex
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from interlock.cli.context import json_option, print_json, resolve_root, root_option, root_words
from interlock.cli.reservation_calls import read_reservations
from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding
from interlock.core.text import closest, count
from interlock.install import CLIENTS, NAME, Change, InstallError, apply, apply_undo, find_launch, pick, plan, plan_undo
from interlock.install.templates import TASK, TEMPLATES, existing, not_ignored, render, suggested, write
from interlock.reservations import place
from interlock.reservations.git import commands as git

_ALL: Final = "all"
_GIT: Final = "git"
JOURNAL: Final = "artifacts/interlock/events.jsonl"
_DEFAULT: Final = ("claude",)
_PLANNED: Final = {
    "made": "would be made",
    "entry added": "an entry would be added",
    "brought up to date": "would be brought up to date",
    "removed": "would be removed",
    "restored byte for byte": "would be restored byte for byte",
    "edited since: only the entry is taken out": "edited since: only the entry would be taken out",
}
"""What a dry run says in place of a note; notes of files that stay as they are hold for both."""


OPTION: Final = "--template"


def complete_template(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the templates that begin so, with what their tests are."""
    return [CompletionItem(row.name, help=row.title) for row in TEMPLATES.values() if row.name.startswith(incomplete)]


client_option = click.option(
    "--client",
    "clients",
    multiple=True,
    type=click.Choice([*CLIENTS, _GIT, _ALL]),
    help="Whose configuration; may be repeated; `git`: only its hooks. Default: claude; with --undo: all.",
)


@click.command("init")
@click.option(OPTION, "template", metavar=f"[{'|'.join(TEMPLATES)}]", shell_complete=complete_template,
              help="Write interlock.toml and task.toml for such a project instead, and nothing else.")  # fmt: skip
@client_option
@click.option("--hooks/--no-hooks", default=True, help="Hooks that refuse edits and commits of what others hold.")
@click.option("--git-hooks/--no-git-hooks", default=True, help="Those of git among them.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("-v", "--verbose", is_flag=True, help="Show what is written, as a dry run does.")
@click.option("--undo", is_flag=True, help="Take back what init wrote; the same as `interlock uninstall`.")
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
    verbose: bool,
    undo: bool,
    as_json: bool,
) -> None:
    """Connect this project's coding agents to `interlock mcp`, and guard what they reserve.

    Writes the entry of the server and the hooks into the client's own files in the project, and git's hooks into this
    repository, and nothing outside of them. What is there already stays; an earlier git hook is called first.
    Either every file is written or none.
    """
    if template is not None:
        if clients or undo or not (hooks and git_hooks):
            raise click.UsageError(
                f"{OPTION} writes a configuration alone; give the other options to an init of its own"
            )
        home = _project(root)
        with _problems_shown(home, as_json=as_json):
            write_template(template, home, dry_run=dry_run, show=dry_run or verbose, as_json=as_json)
        return
    if undo and not (hooks and git_hooks):
        raise click.UsageError("--undo takes back everything of the clients it names; leave out --no-hooks")
    if undo:
        take_back(clients, root, dry_run=dry_run, as_json=as_json)
        return
    home = _project(root)
    wanted = pick(clients or _DEFAULT, hooks=hooks)
    with _problems_shown(home, as_json=as_json):
        changes = plan(home, wanted, find_launch(), git=hooks and git_hooks)
        if not dry_run:
            apply(home, changes)
    if as_json:
        print_json(_data(home, changes, dry_run=dry_run, undo=False))
        return
    todo = _show(home, changes, dry_run=dry_run, diffs=dry_run or verbose)
    if todo:
        click.echo(find_launch().reason)
    if not dry_run and todo:
        _show_next(home, todo)
    elif todo:
        click.echo("nothing was written (--dry-run)")
    else:
        click.echo("nothing was written" if any(change.differs for change in changes) else "all is done")
    kept = list(dict.fromkeys(change.path for change in changes if change.differs))
    if kept:
        again = f"`interlock uninstall{root_words(home)}` where init wrote it"
        click.echo(f"to renew it, remove what belongs to `{NAME}` from {', '.join(kept)} ({again}) and run init again")


def take_back(clients: tuple[str, ...], root: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Undo what init wrote for some clients; for all of them, and git's hooks, when none is named."""
    home = _project(root)
    with _problems_shown(home, as_json=as_json):
        changes = plan_undo(home, pick(clients or (_ALL,)), git=not clients or bool({_ALL, _GIT} & set(clients)))
        if not dry_run:
            apply_undo(home, changes)
    if as_json:
        print_json(_data(home, changes, dry_run=dry_run, undo=True))
        return
    todo = _show(home, changes, dry_run=dry_run, diffs=dry_run)
    if dry_run and todo:
        click.echo("nothing was written (--dry-run)")
        return
    click.echo("undone" if changes else "nothing to undo")
    if not clients:
        _show_reservations(home)


def _project(root: Path | None) -> Path:
    home = resolve_root(root)
    if home == Path.home().resolve():
        message = f"the root is your home folder ({home}), where these files would apply to every project"
        raise click.UsageError(f"{message}; run this in a project, or name one with --root")
    return home


@contextmanager
def _problems_shown(home: Path, *, as_json: bool) -> Generator[None]:
    """Show every file that cannot be changed; the JSON of an error is written by `main`."""
    try:
        yield
    except InstallError as error:
        if as_json:
            raise
        _show_problems(home, error.problems)
        sys.exit(Exit.USAGE)


def _data(home: Path, changes: tuple[Change, ...], *, dry_run: bool, undo: bool) -> dict[str, Any]:
    return {
        "schema": "interlock.init/1",
        "root": str(home),
        "undo": undo,
        "written": not dry_run and any(not change.is_done for change in changes),
        "files": [
            {
                "name": change.name,
                "client": change.client,
                "path": change.path,
                "changed": not change.is_done,
                "note": _note(change, dry_run=dry_run),
                "differs": "\n".join(change.differs),
                "diff": change.diff(),
            }
            for change in changes
        ],
    }


def _show(home: Path, changes: tuple[Change, ...], *, dry_run: bool, diffs: bool) -> list[Change]:
    if Path.cwd() != home:
        click.echo(f"in {home}:")
    for change in changes:
        click.echo(f"{change.path} ({change.title}): {_note(change, dry_run=dry_run)}")
        for there, wanted in zip_longest(change.differs, change.wanted if change.differs else (), fillvalue="-"):
            click.echo(f"  it runs:          {there}\n  init would write: {wanted}")
        if diffs:
            click.echo(change.diff(), nl=False)
    return [change for change in changes if not change.is_done]


def _show_next(home: Path, todo: Sequence[Change]) -> None:
    """Say what comes after init: what to start, what to try, what to keep with the code, and the way back."""
    where = root_words(home)
    for then in dict.fromkeys(f"next, in {change.title}: {change.then}" for change in todo if change.then):
        click.echo(then.format(launch=find_launch()))
    click.echo(f"check it: interlock doctor --prove{where}")
    if any(change.name.endswith("-hooks") for change in todo):
        click.echo(f"edits now reserve their files; by hand: interlock reserve FILE{where}")
    click.echo("for tickets, say to the agent: Work ticket DEMO-1 with Interlock.")
    _show_keeping(home, sorted({change.path for change in todo if change.client != _GIT}))
    click.echo(f"take it back: interlock uninstall{where}")


def _show_keeping(home: Path, paths: Sequence[str]) -> None:
    """Say what belongs into git, and what does not: `git clean` and `git stash` take away what is left lying."""
    from interlock.doctor.checks import scene  # noqa: PLC0415 - it imports all that it looks at
    from interlock.doctor.storage import ignored  # noqa: PLC0415

    if not place.find(str(home)).common:
        return
    cd = "" if Path.cwd() == home else f"cd {shlex.quote(str(home))} && "
    listed = ["ls-files", "-z", "--others", "--modified", "--exclude-standard", "--", *paths]
    new = git.names(git.ask(str(home), listed)) if paths else []
    if new and find_launch().command == NAME:
        click.echo(f"keep in git, so that every worktree has it: {cd}git add {shlex.join(new)} && git commit")
    elif new:
        text = f"{shlex.join(new)} name this machine's interpreter: leave them out of git, and init each worktree"
        click.echo(text)
    if ignored(scene(home)).verdict != "ok":
        click.echo(f"keep what Interlock writes out of git's way: {cd}echo artifacts/ >> .gitignore")


def _show_reservations(home: Path) -> None:
    """Say what an uninstall leaves: reservations may still be in use by others."""
    store, journal = Path(place.find(str(home)).store_path), home / JOURNAL
    if store.exists():
        try:
            leases = read_reservations(home, 0)[0]["leases"]
            held = f"{count(leases, 'lease')} of {count({lease['holder'] for lease in leases}, 'agent')}"
        except InterlockError as error:
            held = f"what was reserved ({error.message})"
        click.echo(
            f"still there: {held}, in {store.parent}; to remove that too: rm -r {shlex.quote(str(store.parent))}"
        )
    if journal.exists():
        click.echo(f"the journal stays: {journal}")


def _note(change: Change, *, dry_run: bool) -> str:
    return _PLANNED.get(change.note, change.note) if dry_run else change.note


def _show_problems(home: Path, problems: tuple[Finding, ...]) -> None:
    if Path.cwd() != home:
        click.echo(f"in {home}:", err=True)
    for problem in problems:
        click.echo(f"{problem.location}: error {problem.code}: {problem.message}", err=True)
        click.echo(f"  found:    {problem.found}", err=True)
        click.echo(f"  expected: {problem.expected}", err=True)
        click.echo("  fix:      " + problem.fix.replace("\n", "\n            "), err=True)
    click.echo("nothing was written", err=True)


def write_template(name: str, home: Path, *, dry_run: bool, show: bool, as_json: bool) -> None:
    """Write the files of a template into a project, or show them.

    Raises:
        InstallError: One of the files is there; nothing was written.
        click.UsageError: There is no such template.
    """
    if name not in TEMPLATES:
        raise click.UsageError(_unknown(name, home))
    files = render(TEMPLATES[name], home)
    refused = {problem.path for problem in existing(home, files)}
    ignored = not_ignored(home)
    if not dry_run:
        write(home, files, ignored)
    if as_json:
        rows = [{"path": path, "content": text} for path, text in files.items()]
        data = {"schema": "interlock.template/1", "root": str(home), "template": name, "written": not dry_run}
        print_json({**data, "files": rows, "ignored": list(ignored)})
        return
    if Path.cwd() != home:
        click.echo(f"in {home}:")
    for path, text in files.items():
        done = "would be made" if dry_run else "made"
        click.echo(f"{path}: {'is there, and would be refused' if path in refused else done}")
        if show:
            click.echo(text)
    if ignored:
        click.echo(f".gitignore: {' and '.join(ignored)} {'would be added' if dry_run else 'added'}")
    if dry_run:
        click.echo("nothing was written (--dry-run)")
        return
    model = "command:claude" if name == "page" else "builder=command:claude"
    where = root_words(home)
    click.echo(f"next: say in {TASK} what is to be done, and which files the work may touch")
    click.echo("commit both: `interlock gate` reads them out of the last commit")
    click.echo(f"check it: interlock check {TASK} --model {model}{where}")
    click.echo(f"run it: interlock run {TASK} --model {model}{where}")


def _unknown(name: str, home: Path) -> str:
    near = closest(name, TEMPLATES)
    alike = [f"{file} is here: {OPTION} {found}." for found, file in suggested(home).items()]
    hints = [f"Did you mean `{near}`?"] if near else alike
    return " ".join([f"there is no template `{name}`; the templates are {', '.join(TEMPLATES)}.", *hints])


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
    take_back(clients, root, dry_run=dry_run, as_json=as_json)
