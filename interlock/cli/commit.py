"""`interlock commit`: commit exactly one's own paths."""

import os
import sys
from pathlib import Path
from typing import Final, TextIO

import click

from interlock.cli.calls import calls_of
from interlock.cli.context import Exit, json_option, print_json, root_option
from interlock.reservations.commit import CommitAnswer, commit
from interlock.reservations.rules import shown

WHO: Final = (
    "You are INTERLOCK_AGENT_ID, else the session that this shell belongs to, else user@host. "
    "Exit codes: 0 done, 1 refused or nothing to commit, 5 another agent holds a path, 2 usage or configuration."
)


@click.command("commit", epilog=WHO)
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("-m", "--message", "messages", multiple=True, help="The message; each further one is a paragraph.")
@click.option("-F", "--file", "file", type=click.File("r"), help="Read the message from a file; - is standard input.")
@click.option("--release", is_flag=True, help="Release what was committed, where nothing else below it is changed.")
@root_option
@json_option
def commit_command(
    paths: tuple[str, ...],
    messages: tuple[str, ...],
    file: TextIO | None,
    release: bool,
    root: Path | None,
    as_json: bool,
) -> None:
    """Commit the changed files that your exclusive leases cover, and nothing else.

    Example: interlock commit -m "New login" --release

    New files and deletions are taken along. With PATHS (files or folders, seen from here), only what is changed there,
    and every changed file there must be yours. What others have changed or staged stays exactly as it is. Your
    pre-commit hooks run. Without a message, your editor opens.
    """
    if messages and file is not None:
        raise click.UsageError("give the message by -m or by -F, not both")
    message = "\n\n".join(messages) if messages else (file.read() if file is not None else None)
    if message is None and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("there is no message: write -m MESSAGE")
    if message is not None and not message.strip():
        raise click.UsageError("the message is empty")
    with calls_of(root) as mine:
        home = mine.caller.root
        answer = commit(mine.desk, mine.caller, message, [_from_here(path, home) for path in paths], release=release)
    if as_json:
        print_json(answer)
    else:
        _show(answer)
    if answer["errors"]:
        raise SystemExit(Exit.CONFLICT if any("conflict" in row for row in answer["errors"]) else Exit.REFUSED)


def _from_here(path: str, home: str) -> str:
    """Return a path as seen from the root; one outside is an error of usage."""
    folder, name = os.path.split(path)
    spelled = os.path.join(os.path.realpath(folder or "."), name)  # noqa: PTH118
    found = os.path.relpath(os.path.normpath(spelled), home)
    if found == ".." or found.startswith("../"):
        raise click.UsageError(f"{shown(path)} is outside of {home}")
    return found


def _show(answer: CommitAnswer) -> None:
    """Print the commit's id for programs, and the rest for people."""
    if answer.get("said"):
        click.echo(answer.get("said"), err=True)
    for row in answer["errors"]:
        click.echo(f"error {row['code']}: {row['place']}: {row['message']}", err=True)
        click.echo(f"  found: {row['found']}\n  expected: {row['expected']}\n  fix: {row['fix']}", err=True)
    if disturbed := answer.get("disturbed"):
        named = ", ".join(map(shown, disturbed[:8])) + (f" and {len(disturbed) - 8} more" if disturbed[8:] else "")
        click.echo(f"your hooks wrote or set aside what others hold; they have been told: {named}", err=True)
    if answer["commit"] is None:
        return
    click.echo(answer["commit"])
    count = len(answer["paths"])
    left = f"; {answer['left']} changed of others or not reserved left alone" if answer["left"] else ""
    freed = f"; {len(answer['released'])} released" if answer["released"] else ""
    click.echo(f"{count} {'path' if count == 1 else 'paths'} committed{left}{freed}", err=True)
