"""`interlock doctor`: whether Interlock works here, and with --prove that every entry point refuses a conflict."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from interlock.cli.context import asked, form_option, json_option, report, resolve_root, root_option, show_table
from interlock.core.errors import Exit
from interlock.core.finding import Finding
from interlock.core.text import one_line
from interlock.doctor import AgentProof, Check, Proof, Report, diagnose, prove, prove_agents
from interlock.doctor.checks import scene

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@click.option("--prove", "proving", is_flag=True, help="Plant a real conflict for each hook and server, try agents.")
@click.option("--agent", "agents", multiple=True, metavar="acp:NAME", help="Try this agent, too, as --prove does.")
@root_option
@json_option
@form_option
def doctor_command(
    root: Path | None, agents: tuple[str, ...], *, proving: bool, as_json: bool, form: str | None
) -> None:
    """Check that Interlock works here; nothing is changed.

    With --prove, each installed entry point (the clients' hooks as they are configured, git's hooks, the server, the
    command line) is asked for a file that another agent holds, in a throw-away project. One that does not refuse is
    named. Agents of the Agent Client Protocol that the configuration names are tried as well, each with a few calls of
    its own model: what they ask before they act, and what is there although they were told no.

    Exit codes: 0 all is well or could be better, 1 something does not work, does not refuse, or cannot be tried.
    """
    home, wanted = resolve_root(root), asked(form, as_json=as_json)
    where = scene(home)
    found = diagnose(where)
    proving = proving or bool(agents)
    proofs = prove(home, os.environ) if proving else []
    tried = prove_agents(home, agents) if proving else []
    failed = any(finding.verdict == "fail" for _, finding in found) or not all(proof.refused for proof in proofs)
    failed = failed or any(row.problem for row in tried)
    data = _data(home, found, proofs, ok=not failed, proving=proving)
    data |= {"agents": [asdict(row) for row in tried]} if tried else {}

    def text() -> None:
        _show(home, found)
        if proving:
            _show_proofs(proofs)
            if tried:
                _show_agents(tried)

    report(_findings(found, proofs, tried), wanted, home, data, text, code=Exit.REFUSED if failed else Exit.GOOD)


def _findings(
    found: Sequence[tuple[Check, Report]], proofs: Sequence[Proof], tried: Sequence[AgentProof]
) -> Iterator[Finding]:
    """Yield what does not work, and each way in that is open; the code is the name of the check."""
    for check, row in found:
        if row.verdict != "ok":
            level = "error" if row.verdict == "fail" else "warning"
            yield Finding(check.id, level, "", f"Not so: {check.what}", row.found, check.what, row.fix)
    for row in proofs:
        if not row.refused:
            yield Finding("open", "error", row.name, "A conflict is not refused.", row.found, "a refusal", row.fix)
    for agent in tried:
        if agent.problem:
            fix = "Correct `runner` in its table, or what it says."
            yield Finding("agents", "error", agent.agent, "It cannot be tried.", agent.problem, "an answer", fix)


def _data(
    home: Path, found: Sequence[tuple[Check, Report]], proofs: Sequence[Proof], *, ok: bool, proving: bool
) -> dict[str, Any]:
    checks = [{"id": check.id, "what": check.what, **asdict(row)} for check, row in found]
    data = {"schema": "interlock.doctor/1", "root": str(home), "ok": ok, "checks": checks}
    return {**data, "entry_points": [asdict(row) for row in proofs]} if proving else data


def _show(home: Path, found: Sequence[tuple[Check, Report]]) -> None:
    click.echo(f"in {home}:")
    width = max(len(check.id) for check, _ in found)
    for check, row in found:
        verdict = click.style(f"{row.verdict:4}", fg=_STYLES[row.verdict])
        _show_row(f"{verdict}  {check.id:{width}}", one_line(row.found), row.fix, width + 6)
    verdicts = [row.verdict for _, row in found]
    click.echo(f"{len(found)} checks: " + ", ".join(f"{verdicts.count(name)} {name}" for name in _STYLES))


def _show_proofs(proofs: Sequence[Proof]) -> None:
    click.echo("a conflict at each installed entry point:")
    width = max(len(row.name) for row in proofs)
    for row in proofs:
        word = "undone" if row.is_undone and row.refused else "refused" if row.refused else "OPEN"
        mark = click.style(f"{word:7}", fg="green" if row.refused else "red", bold=not row.refused)
        _show_row(f"{mark}  {row.name:{width}}", one_line(row.how if row.refused else row.found), row.fix, width + 9)
    bad = [row.name for row in proofs if not row.refused]
    if bad:
        click.echo(click.style(f"OPEN: {', '.join(bad)}: what others hold is not safe there", fg="red", bold=True))
    else:
        click.echo(f"all {len(proofs)} entry points refuse a conflict, or undo it")


def _show_agents(tried: Sequence[AgentProof]) -> None:
    rows: list[tuple[str, ...]] = []
    for row in tried:
        edits, runs = row.before_editing, row.before_commands
        held = "did not hold" if row.found else "held" if "asks" in (edits, runs) else "nothing"
        said = (row.version, edits, runs, held, ", ".join(row.found) or "nothing")
        rows.append((row.agent, *(said if not row.problem else ("not tried", row.problem, "", "", ""))))
    head = ("agent", "program", "before editing", "before commands", "refused", "found afterwards")
    show_table("agents, each asked for a file and a command that nothing allows:", head, rows)


def _show_row(head: str, text: str, fix: str, indent: int) -> None:
    click.echo(f"  {head}  {text}")
    if fix:
        click.echo(f"  {'':{indent}}  fix: {one_line(fix)}")
