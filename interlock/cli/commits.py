"""`interlock verify --commits RANGE`: the commits of a range against the leases that the journal tells of."""

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import click

from interlock.cli.context import count, print_json
from interlock.core.errors import Exit
from interlock.reservations import SHORT_ID_CHARS, Breach, Report, check_commits
from interlock.reservations.answers import iso
from interlock.reservations.rules import shown

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
        _show(report)
    sys.exit(Exit.GOOD if good else Exit.REFUSED)


def _show(report: Report) -> None:
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
