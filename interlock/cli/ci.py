"""`interlock ci`: the sealed gates once more on a merge result, its commits and its journal; four kinds of reports."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from interlock import __version__, graph
from interlock.catalog import catalog
from interlock.cli.ci_event import Asked, asked_by
from interlock.cli.context import asked, form_option, json_option, report, resolve_root, root_option, talk
from interlock.cli.gate import settings_of
from interlock.cli.screen import Sparse
from interlock.core.errors import Exit, InterlockError
from interlock.core.files import write_atomically
from interlock.core.finding import Finding
from interlock.core.render import checked, render, render_cases
from interlock.core.text import count, few, visible
from interlock.gates.config import load_config
from interlock.gates.sealed import Base, Store, place_of
from interlock.reservations import check_commits

_SHOWN: Final = 50
_TRUST: Final = (
    "The gates ran again, by the settings and tests of the base: nobody who wrote the commits could fake that. What "
    "the journal says of approvals and reservations, whoever wrote the commits could have written."
)


class Checked(NamedTuple):
    """All that was found about what was asked."""

    asked: Asked
    merge: graph.JudgedMerge
    approved: graph.ApprovedCommits | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def code(self) -> Exit:
        """What the command ends with."""
        if any(gate.state == "unable" for gate in self.merge.gates):
            return Exit.USAGE
        return Exit.REFUSED if any(row.refuses for row in self.findings) else Exit.GOOD

    @property
    def word(self) -> str:
        """The end in a word."""
        return {Exit.GOOD: "passed", Exit.REFUSED: "refused"}.get(self.code, "cannot be judged")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        keys = ("gate", "state", "said", "seconds")
        commits = None if self.approved is None else self.approved.to_json()["commits"]
        return {
            "schema": "interlock.ci/1",
            "ok": self.code == Exit.GOOD,
            **self.asked._asdict(),
            "commit": self.merge.commit,
            "gates": [{key: getattr(gate, key) for key in keys} for gate in self.merge.gates],
            "unjudged": [*self.merge.unjudged],
            "commits": commits,
            "findings": [row.to_json() | {"path": row.path} for row in self.findings],
            "notes": [*self.notes],
        }


@click.command("ci")
@click.option("--base", metavar="REV", help="What it is merged into; by default as the event of GitHub Actions says.")
@click.option(
    "--may-change",
    multiple=True,
    metavar="PATTERN",
    help="Files that decide a gate and that a person lets the branch change: tests, settings. May be repeated.",
)
@click.option("--require-approved", is_flag=True, help="Refuse commits whose tree no run was APPROVED with.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("artifacts/ci"),
    show_default=True,
    help="The folder for interlock.sarif, junit.xml, summary.md and an HTML report of each approved run.",
)
@root_option
@json_option
@form_option
def ci_command(
    base: str | None,
    may_change: tuple[str, ...],
    require_approved: bool,
    output: Path,
    root: Path | None,
    as_json: bool,
    form: str | None,
) -> None:
    """Judge what is checked out as it would be when it is merged, by the sealed gates of its base.

    Also verifies the journal, what the commits of the branch change against the reservations, and whether their trees
    were APPROVED, as far as the journal is committed. Only the gates that run again cannot be faked by who wrote it.

    Exit 0 when all of it holds, 1 when something is refused, 2 when it cannot be judged.
    """
    folder, wanted = resolve_root(root), asked(form, as_json=as_json)
    wants = asked_by(os.environ, place_of(folder)[0], base)
    if wants is None:
        click.echo("the event leaves no commit: nothing to judge", err=True)
        return
    result = _check(folder, wants, may_change, require_approved=require_approved)
    _write(folder, output, result)
    report(result.findings, wanted, folder, result.to_json(), lambda: click.echo(_summary(result)), code=result.code)


def _check(folder: Path, wants: Asked, may_change: tuple[str, ...], *, require_approved: bool) -> Checked:
    top, relative = place_of(folder)
    store, seldom = Store(top), Sparse.on(talk())
    commit, conflict = graph.merged(top, wants.base, wants.head) if wants.merges else (wants.head, None)
    merge = graph.JudgedMerge(commit, findings=() if conflict is None else (conflict,))
    if conflict is None:
        with settings_of(folder, Base(store, store.commit(wants.base).tree, relative), None) as place:
            merge = graph.judge_merge(folder, load_config(place), wants.base, commit, may_change, seldom)
    findings, notes = [*merge.findings, *(row for gate in merge.gates for row in gate.findings)], list[str]()
    if merge.unjudged:
        notes.append(f"no gate judged {count(merge.unjudged, 'changed file')}: {few(merge.unjudged, 5)}")
    journal = graph.verify_journal(folder)
    findings += journal.problems
    notes.append("no journal is committed" if journal.verdict == "empty" else f"the journal is {journal.verdict}")
    wanted, approved = f"{wants.base}..{wants.tip}", None
    try:
        approved = graph.verify_approved(folder, wanted)
        findings += [row._replace(level="error" if require_approved else "note") for row in approved.problems]
        notes.append(approved.text)
    except InterlockError as error:
        notes.append(f"approvals: {error.message}")
        if require_approved:
            findings.append(Finding(error.code, "error", "", error.message, fix=error.fix))
    try:
        breaches = check_commits(str(folder), wanted)
        findings += [row.finding for row in breaches.findings]
        notes.append(f"reservations: {breaches.verdict}")
    except InterlockError as error:
        notes.append(f"reservations: {error.message}")
    return Checked(wants, merge, approved, (*findings,), (*notes,))


def _write(folder: Path, output: Path, result: Checked) -> None:
    """Write the reports, and the summary also where GitHub shows it."""
    sarif = render(checked(result.findings), "sarif", rules=catalog().values(), version=__version__)
    summary = _summary(result)
    files = {"interlock.sarif": sarif, "summary.md": summary}
    files["junit.xml"] = render_cases([case for gate in result.merge.gates for case in gate.cases])
    files["result.json"] = json.dumps(result.to_json(), indent=2)
    for name in {} if result.approved is None else dict.fromkeys(result.approved.runs.values()):
        for run in filter(graph.is_run_id, name.split(", ")):  # a journal may hold any name, and this one names a file
            from interlock.web import report as run_report  # noqa: PLC0415 - most branches have no run

            with suppress(InterlockError):
                files[f"{run}.html"] = run_report(folder, run)
    for name, text in files.items():
        write_atomically(folder / output / name, text.encode())
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(summary)


def _summary(result: Checked) -> str:
    """Return the result as Markdown; whatever somebody else wrote stands in code spans."""
    judged = f"{_code(result.asked.said)}, judged as {_code(result.merge.commit[:12])}"
    lines = [f"## Interlock: {result.word}", "", judged, ""]
    if result.merge.gates:
        lines += ["| gate | | tests | seconds |", "|---|---|---|---|"]
        lines += [
            f"| {_code(gate.gate)} | {gate.state} | {gate.said or 'by its exit status'} | {gate.seconds:.1f} |"
            for gate in result.merge.gates
        ]
    refused = [row for row in result.findings if row.refuses]
    for row in refused[:_SHOWN]:
        place = f" {_code(row.location)}" if row.path else ""
        lines += ["", f"- **{row.code}**{place} {_code(row.message)}"]
        lines += [f"  {_code(row.found)}"] if row.found else []
        lines += [f"  Fix: {_code(row.fix)}"] if row.fix else []
    lines += ["", f"And {len(refused) - _SHOWN} more."] if len(refused) > _SHOWN else []
    if result.approved is not None:
        lines += ["", "| commit | approved by |", "|---|---|"]
        rows = result.approved.runs.items()
        lines += [f"| {_code(commit[:12])} | {_code(run) if run else 'no run'} |" for commit, run in rows]
    said = [f"- {_code(note)}" for note in result.notes]
    return "\n".join([*lines, "", *said, "", *([_TRUST, ""] if result.merge.gates else [])])


def _code(text: str) -> str:
    """Return text as a code span that ends where it ends, in a table too."""
    return f"`{visible(text[:500]).replace('`', chr(39)).replace('|', '¦')}`"
