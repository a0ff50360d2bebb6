"""`interlock doctor`: whether Interlock works here, and with --prove that every entry point refuses a conflict."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from interlock.cli.context import asked, form_option, json_option, report, resolve_root, root_option
from interlock.core.errors import Exit
from interlock.core.finding import Finding
from interlock.core.text import one_line
from interlock.doctor import Check, Proof, Report, diagnose, prove
from interlock.doctor.checks import scene

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
_MARKS: Final = {True: "refused", False: "OPEN"}


@click.command("doctor")
@click.option("--prove", "proving", is_flag=True, help="Plant a real conflict for each hook and server.")
@root_option
@json_option
@form_option
def doctor_command(root: Path | None, *, proving: bool, as_json: bool, form: str | None) -> None:
    """Check that Interlock works here; nothing is changed.

    With --prove, each installed entry point (the clients' hooks as they are configured, git's hooks, the server, the
    command line) is asked for a file that another agent holds, in a throw-away project. One that does not refuse is
    named.

    Exit codes: 0 all is well or could be better, 1 something does not work, or does not refuse.
    """
    home, wanted = resolve_root(root), asked(form, as_json=as_json)
    where = scene(home)
    found = diagnose(where)
    proofs = prove(home, os.environ) if proving else []
    failed = any(finding.verdict == "fail" for _, finding in found) or not all(proof.refused for proof in proofs)
    data = _data(home, found, proofs, ok=not failed, proving=proving)

    def text() -> None:
        _show(home, found)
        if proving:
            _show_proofs(proofs)

    report(_findings(found, proofs), wanted, home, data, text, code=Exit.REFUSED if failed else Exit.GOOD)


def _findings(found: Sequence[tuple[Check, Report]], proofs: Sequence[Proof]) -> Iterator[Finding]:
    """Yield what does not work, and each way in that is open; the code is the name of the check."""
    for check, row in found:
        if row.verdict != "ok":
            level = "error" if row.verdict == "fail" else "warning"
            yield Finding(check.id, level, "", f"Not so: {check.what}", row.found, check.what, row.fix)
    for row in proofs:
        if not row.refused:
            yield Finding("open", "error", row.name, "A conflict is not refused.", row.found, "a refusal", row.fix)


def _data(
    home: Path, found: Sequence[tuple[Check, Report]], proofs: Sequence[Proof], *, ok: bool, proving: bool
) -> dict[str, Any]:
    checks = [{"id": check.id, "what": check.what, "how": check.how, **asdict(finding)} for check, finding in found]
    points = [
        {"door": row.name, "how": row.how, "refused": row.refused, "found": row.found, "fix": row.fix} for row in proofs
    ]
    data = {"schema": "interlock.doctor/1", "root": str(home), "ok": ok, "checks": checks}
    return {**data, "doors": points} if proving else data


def _show(home: Path, found: Sequence[tuple[Check, Report]]) -> None:
    click.echo(f"in {home}:")
    width = max(len(check.id) for check, _ in found)
    for check, finding in found:
        verdict = click.style(f"{finding.verdict:4}", fg=_STYLES[finding.verdict])
        click.echo(f"  {verdict}  {check.id:{width}}  {one_line(finding.found)}")
        if finding.fix:
            click.echo(f"  {'':4}  {'':{width}}  fix: {one_line(finding.fix)}")
    counts = {name: sum(finding.verdict == name for _, finding in found) for name in _STYLES}
    click.echo(f"{len(found)} checks: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


def _show_proofs(proofs: Sequence[Proof]) -> None:
    click.echo("a conflict at each installed entry point:")
    width = max(len(row.name) for row in proofs)
    for row in proofs:
        word = "undone" if row.is_undone else _MARKS[row.refused]
        mark = click.style(f"{word:7}", fg="green" if row.refused else "red", bold=not row.refused)
        click.echo(f"  {mark}  {row.name:{width}}  {one_line(row.how) if row.refused else one_line(row.found)}")
        if row.fix:
            click.echo(f"  {'':7}  {'':{width}}  fix: {one_line(row.fix)}")
    bad = [row.name for row in proofs if not row.refused]
    if bad:
        click.echo(click.style(f"OPEN: {', '.join(bad)}: what others hold is not safe there", fg="red", bold=True))
    else:
        click.echo(f"all {len(proofs)} entry points refuse a conflict, or undo it")
