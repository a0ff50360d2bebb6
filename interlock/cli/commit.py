"""`interlock commit`, and `interlock verify --commits RANGE`: commits against what was reserved."""

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final, TextIO

import click

from interlock.cli.context import json_option, print_json, root_option
from interlock.cli.reservation_calls import calls_of, way_of
from interlock.cli.reservation_output import command_of
from interlock.core.errors import Exit
from interlock.core.text import count
from interlock.install.errors import InstallError
from interlock.install.files import read_raw
from interlock.install.record import digest, recorded
from interlock.redaction import KeyRefused, redactor_for
from interlock.reservations import SHORT_ID_CHARS, Breach, CommitAnswer, Report, check_commits, commit
from interlock.reservations.answers import iso
from interlock.reservations.rules import shown

MAX_NAMED: Final = 8
"""So many paths are named in one line."""
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
@click.option("--anyway", is_flag=True, help="Commit what another agent wrote over too, the message about it unread.")
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
    anyway: bool,
    on: str,
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
    if message is not None and (name := redactor_for(root).name_of_key(message)) is not None:
        raise KeyRefused("message", name)
    if message is None and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("there is no message: write -m MESSAGE")
    if message is not None and not message.strip():
        raise click.UsageError("the message is empty")
    with calls_of(root) as mine:
        home, way = mine.caller.root, way_of(mine, root)
        named = [from_here(path, home) for path in paths]
        answer = commit(mine, message, named, release=release, anyway=anyway, on=on)
    if as_json:
        print_json(answer)
    else:
        _show(answer, home, way)
    if answer["errors"]:
        raise SystemExit(Exit.CONFLICT if any("conflict" in row for row in answer["errors"]) else Exit.REFUSED)


def from_here(path: str, home: str) -> str:
    """Return a path as seen from the root; one outside is an error of usage."""
    folder, name = os.path.split(path)
    spelled = os.path.join(os.path.realpath(folder or "."), name)  # noqa: PTH118
    found = os.path.relpath(os.path.normpath(spelled), home)
    if found == ".." or found.startswith("../"):
        raise click.UsageError(f"{shown(path)} is outside of {home}")
    return found


def _show(answer: CommitAnswer, home: str, way: tuple[str, str]) -> None:
    if answer.get("said"):
        click.echo(answer.get("said"), err=True)
    for row in answer["errors"]:
        click.echo(f"error {row['code']}: {row['place']}: {row['message']}", err=True)
        click.echo(f"  found: {row['found']}\n  expected: {row['expected']}\n  fix: {row['fix']}", err=True)
        if (call := row.get("next")) is not None:
            click.echo(f"  next: {command_of(call, *way)}", err=True)
    for line in answer.get("disturbed", ()):
        click.echo(f"note: {line}", err=True)
    if answer["commit"] is None:
        return
    click.echo(answer["commit"])
    freed = f"; {len(answer['released'])} released" if answer["released"] else ""
    where = f" on {shown(answer.get('branch', ''))}"
    click.echo(f"{count(answer['paths'], 'path')} committed{where}: {_named(answer['paths'])}{freed}", err=True)
    _show_left(answer, home)


def _show_left(answer: CommitAnswer, home: str) -> None:
    """Say what stays as it is: one line for each holder, and how one takes along what nobody holds."""
    known = _of_init(Path(home))
    for holder, rows in groupby(answer["left"], key=lambda row: row["holder"]):
        paths = [row["path"] for row in rows if holder is not None or row["path"] not in known]
        if not paths:
            continue
        if holder is not None:
            click.echo(f"left: {_named(paths)} ({shown(holder)})", err=True)
            continue
        here = [shlex.quote(shown(os.path.relpath(os.path.join(home, path)))) for path in paths[:MAX_NAMED]]  # noqa: PTH118
        click.echo(
            f"left: {_named(paths)} (nobody holds it; if it is yours: interlock reserve {' '.join(here)})", err=True
        )
    if more := answer["left_count"] - len(answer["left"]):
        click.echo(f"left: {more} more", err=True)


def _of_init(home: Path) -> set[str]:
    """Return the files that are as `interlock init` wrote them: nobody's forgotten work."""
    with suppress(InstallError, OSError):
        rows = recorded(home)
        return {row["path"] for row in rows if digest(read_raw(home / row["path"])) == row["after"]}
    return set()


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMED} more" if paths[MAX_NAMED:] else ""
    return ", ".join(map(shown, paths[:MAX_NAMED])) + more


MAX_LISTED: Final = 8
"""So many paths of one commit are listed; `--json` has them all."""


def show_commits(
    root: Path | None,
    wanted: str,
    journals: Sequence[Path],
    *,
    allow_unproven: bool,
    allow_incomplete: bool,
    as_json: bool,
) -> None:
    """Check a range, print what was found, and exit with 0 or 1."""
    report = check_commits(str(root or Path.cwd()), wanted, [str(path) for path in journals])
    good = report.is_good(allow_unproven=allow_unproven, allow_incomplete=allow_incomplete)
    if as_json:
        print_json({**report.to_json(), "ok": good})
    else:
        _show_report(report)
    sys.exit(Exit.GOOD if good else Exit.REFUSED)


def _show_report(report: Report) -> None:
    for _, rows in groupby(report.findings, key=lambda finding: finding.commit):
        each = list(rows)
        for finding in each[:MAX_LISTED]:
            _show_finding(finding)
        if len(each) > MAX_LISTED:
            more = count(len(each) - MAX_LISTED, "path")
            click.echo(f"{each[0].commit[:SHORT_ID_CHARS]}: and {more} more; --json lists all")
    unknown = report.count("incomplete")
    for store, gaps in report.missing.items() if unknown else ():
        numbers = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in gaps[:MAX_LISTED])
        click.echo(f"note: events {numbers} of the store {store} are in no journal here, so what was held then is not "
                   "known. `--journal FILE` reads another one; `--allow-incomplete` lets it pass.")  # fmt: skip
    if report.later:
        verb = "is" if report.later == 1 else "are"
        click.echo(f"note: {count(report.later, 'commit')} {verb} younger than the last event ({iso(report.last_at)}); "
                   "what was reserved after it is not known.")  # fmt: skip
    parts = [
        f"{report.count('proven')} made by `interlock commit`",
        f"{report.count('free')} of what nobody held",
        *([f"{unknown} not known"] if unknown else []),
        f"{report.count('unproven')} unproven",
        f"{report.count('refused')} refused",
    ]
    click.echo(f"{report.range}: {report.verdict}; {count(len(report.verdicts), 'commit')}: {', '.join(parts)}")


def _show_finding(row: Breach) -> None:
    held, finding = row.held, row.finding
    times = f"from {iso(held.since)} to {iso(held.until)}"
    ending = f", {held.ending}" if held.ending else ""
    click.echo(f"{row.commit[:SHORT_ID_CHARS]}: {finding.code} {shown(finding.path)}: {finding.message}")
    click.echo(f"  lease: {held.reservation_id}, {shown(held.pattern)}, of {shown(held.agent)}, token {held.token}, "
               f"{times}{ending}")  # fmt: skip
    click.echo(f"  found: {finding.found}; it says it is by {shown(row.committer)}")
    click.echo(f"  expected: {finding.expected}\n  fix: {finding.fix}")
