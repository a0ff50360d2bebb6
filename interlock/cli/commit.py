"""`interlock commit`, and `interlock verify --commits RANGE`: commits against what was reserved."""

import os
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, TextIO

import click

from interlock.cli.context import json_option, print_json, resolve_root, root_option, root_words, show_finding
from interlock.cli.lease_calls import Way, calls_of, way_of
from interlock.cli.lease_text import command_of
from interlock.core.errors import Exit
from interlock.core.finding import Finding
from interlock.core.text import count, few
from interlock.redaction import KeyRefused, redactor_for
from interlock.reservations import SHORT_ID_CHARS, Breach, CommitAnswer, Report, check_commits, commit, iso
from interlock.reservations.rules import shown

MAX_NAMED: Final = 8
"""So many paths are named in one line, and of one commit; `--json` has them all."""
WHO: Final = (
    "You are INTERLOCK_AGENT_ID, else the session that this shell belongs to, else user@host. "
    "Exit codes: 0 done, 1 refused or nothing to commit, 5 another agent holds a path, 2 usage or configuration."
)


def _not_needed(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Answer who writes `-am`, as with git."""
    if value:
        text = "leave -a out: this takes all the changed files that you hold. interlock commit -m MESSAGE"
        raise click.BadParameter(text, context, parameter)


@click.command("commit", epilog=WHO)
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("-m", "--message", "messages", multiple=True, help="The message; each further one is a paragraph.")
@click.option("-F", "--file", "file", type=click.File("r"), help="Read the message from a file; - is standard input.")
@click.option("-a", is_flag=True, hidden=True, expose_value=False, callback=_not_needed)
@click.option("--release", is_flag=True, help="Release what was committed, where nothing else below it is changed.")
@click.option(
    "--on", metavar="BRANCH", default="", help="Commit to BRANCH, though the files were reserved on another one."
)
@root_option
@json_option
def commit_command(
    paths: tuple[str, ...],
    messages: tuple[str, ...],
    file: TextIO | None,
    release: bool,
    on: str,
    root: Path | None,
    as_json: bool,
) -> None:
    """Commit the changed files that your exclusive leases cover, and nothing else.

    Example: interlock commit -m "New login" --release

    With RUN, an approved run, in the place of PATHS: make the branch interlock/RUN with the commit of its work,
    whatever is checked out, as `interlock land` would.

    New files and deletions are taken along. With PATHS (files or folders, seen from here), only what is changed there,
    and every changed file there must be yours. What others have changed or staged stays exactly as it is. Your
    pre-commit hooks run. Without a message, your editor opens.
    """
    if len(paths) == 1 and not os.path.lexists(paths[0]) and _is_run(paths[0], root, as_json=as_json):
        return
    if messages and file is not None:
        raise click.UsageError("give the message by -m or by -F, not both")
    message = "\n\n".join(messages) if messages else (file.read() if file is not None else None)
    if message is not None and (name := redactor_for(root).name_of_key(message)) is not None:
        raise KeyRefused("message", name)
    if message is None and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("there is no message: write -m MESSAGE")
    if message is not None and not message.strip():
        raise click.UsageError("the message is empty")
    with calls_of(root) as mine:
        home, way = mine.caller.root, way_of(mine, root)
        named = [from_here(path, home) for path in paths]
        answer = commit(mine, message, named, release=release, on=on)
    if as_json:
        print_json(answer)
    else:
        _show(answer, way)
    if answer["errors"]:
        raise SystemExit(Exit.CONFLICT if any("conflict" in row for row in answer["errors"]) else Exit.REFUSED)


def _is_run(name: str, root: Path | None, *, as_json: bool) -> bool:
    """Make the branch of a run, if that is what the one argument names."""
    from interlock import graph  # noqa: PLC0415 - it takes a second, and most commits are of paths

    folder = resolve_root(root)
    run_id = graph.find_run(folder, "runs", name)
    if run_id is None:
        if graph.is_run_id(name) and graph.find_in_journal(folder, name) is not None:
            raise graph.no_task_run(folder, name)
        return False
    made = graph.commit_run(folder, run_id)
    if as_json:
        print_json({"schema": "interlock.work/1", "run_id": run_id, "commit": made, "branch": f"interlock/{run_id}"})
    else:
        click.echo(made)
        click.echo(f"the work of {run_id} is branch interlock/{run_id}", err=True)
        push, where = f"git push origin interlock/{run_id}", root_words(folder)
        click.echo(f"next: `interlock land {run_id}{where}` merges it, `{push}` is for a pull request", err=True)
    return True


def from_here(path: str, home: str) -> str:
    """Return a path as seen from the root; one outside is an error of usage."""
    folder, name = os.path.split(path)
    # The folder is resolved and the name is not: a link is committed as the link that it is.
    spelled = os.path.join(os.path.realpath(folder or "."), name)  # noqa: PTH118
    found = os.path.relpath(os.path.normpath(spelled), home)
    if found == ".." or found.startswith("../"):
        raise click.UsageError(f"{shown(path)} is outside of {home}")
    return found


def _show(answer: CommitAnswer, way: Way) -> None:
    if answer.get("said"):
        click.echo(answer.get("said"), err=True)
    for row in answer["errors"]:
        show_finding(
            Finding(row["code"], "error", row["place"], row["message"], row["found"], row["expected"], row["fix"])
        )
        if (call := row.get("next")) is not None:
            click.echo(f"  next: {command_of(call, way.up, way.tail)}", err=True)
    for line in answer.get("disturbed", ()):
        click.echo(f"note: {line}", err=True)
    if answer["commit"] is None:
        return
    click.echo(answer["commit"])
    freed = f"; {len(answer['released'])} released" if answer["released"] else ""
    where = f" on {shown(answer.get('branch', ''))}"
    click.echo(f"{count(answer['paths'], 'path')} committed{where}: {_named(answer['paths'])}{freed}", err=True)


def _named(paths: Sequence[str]) -> str:
    return few([shown(path) for path in paths], MAX_NAMED)


def show_commits(
    root: Path | None,
    wanted: str,
    journals: Sequence[Path],
    *,
    allow_incomplete: bool,
    as_json: bool,
) -> None:
    """Check a range, print what was found, and exit with 0 or 1."""
    report = check_commits(str(root or Path.cwd()), wanted, [str(path) for path in journals])
    good = report.verdict == "clean" or (report.verdict == "incomplete" and allow_incomplete)
    if as_json:
        print_json({**report.to_json(), "ok": good})
    else:
        _show_report(report)
    sys.exit(Exit.GOOD if good else Exit.REFUSED)


def _show_report(report: Report) -> None:
    for _, rows in groupby(report.findings, key=lambda finding: finding.commit.id):
        each = list(rows)
        for finding in each[:MAX_NAMED]:
            _show_breach(finding)
        if len(each) > MAX_NAMED:
            more = count(len(each) - MAX_NAMED, "path")
            click.echo(f"{each[0].commit.id[:SHORT_ID_CHARS]}: and {more} more; --json lists all")
    unknown = report.count("incomplete")
    for store, gaps in report.missing.items() if unknown else ():
        numbers = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in gaps[:MAX_NAMED])
        text = f"events {numbers} of the store {store} are in no journal here, so what was held then is not known"
        click.echo(f"note: {text}. `--journal FILE` reads another one; `--allow-incomplete` lets it pass.")
    parts = f"{report.count('clean')} clean, {unknown} not known, {report.count('refused')} refused"
    click.echo(f"{report.range}: {report.verdict}; {count(len(report.verdicts), 'commit')}: {parts}")


def _show_breach(row: Breach) -> None:
    held, finding = row.held, row.finding
    times = f"from {iso(held.since)} to {iso(held.until)}"
    ending = f", {held.ending}" if held.ending else ""
    lease = f"{held.reservation_id}, {shown(held.pattern)}, of {shown(held.agent)}, token {held.token}, {times}{ending}"
    click.echo(f"{row.commit.id[:SHORT_ID_CHARS]}: {finding.code} {shown(finding.path)}: {finding.message}")
    click.echo(f"  lease: {lease}\n  found: {finding.found}; it says it is by {shown(row.commit.committer)}")
    click.echo(f"  expected: {finding.expected}\n  fix: {finding.fix}")
