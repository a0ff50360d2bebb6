"""`interlock ci`: the sealed gates once more on a merge result, its commits and its journal; four kinds of reports.

Answers T2: nothing that the branch brings along has a say in this process. Its settings are those of the base, its
journal is read out of the commit into a folder that has nothing else, and no server that it names is asked.
"""

import json
import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import click

from interlock import __version__, graph
from interlock.catalog import catalog
from interlock.cli.context import (
    asked,
    form_option,
    in_repository,
    json_option,
    report,
    resolve_root,
    root_option,
    talk,
)
from interlock.cli.gate import settings_of
from interlock.cli.screen import Sparse
from interlock.core.database import ADDRESS
from interlock.core.errors import Exit, InterlockError
from interlock.core.files import write_atomically
from interlock.core.finding import Finding
from interlock.core.render import checked, render, render_cases
from interlock.core.text import count, few, visible
from interlock.gates.config import load_config
from interlock.gates.sealed import Base, Store, place_of
from interlock.reservations import check_commits

_SHOWN: Final = 50
_JOURNAL: Final = "artifacts/interlock/events.jsonl"
_PROVEN: Final = "The gates ran again, by the settings and tests of the base: who wrote the commits cannot fake that."
_OPEN: Final = "The gates ran again, but on a machine without namespaces: the code that they test can fake that."
_CLAIMED: Final = "What the journal says of approvals and reservations, whoever wrote the commits could have written."


class Checked(NamedTuple):
    """All that was found about a merge; `approved` is None where no journal knows, `pages` are HTML by run."""

    merge: graph.Merged
    judged: graph.JudgedMerge
    approved: graph.ApprovedCommits | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    pages: Mapping[str, str]

    @property
    def code(self) -> Exit:
        """What the command ends with."""
        if any(gate.state == "unable" for gate in self.judged.gates):
            return Exit.USAGE
        return Exit.REFUSED if any(row.refuses for row in self.findings) else Exit.GOOD

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        keys = ("gate", "state", "said", "seconds")
        return {
            "schema": "interlock.ci/1",
            "ok": self.code == Exit.GOOD,
            **{key: getattr(self.merge, key) for key in ("base", "head", "tip", "commit")},
            "gates": [{key: getattr(gate, key) for key in keys} for gate in self.judged.gates],
            "unjudged": [*self.judged.unjudged],
            "added": [*self.judged.added],
            "commits": None if self.approved is None else self.approved.to_json()["commits"],
            "findings": [row.to_json() | {"path": row.path} for row in self.findings],
            "notes": [*self.notes],
        }


@click.command("ci")
@click.option("--base", metavar="REV", required=True, help="What it is merged into, such as origin/main.")
@click.option(
    "--may-change",
    multiple=True,
    metavar="PATTERN",
    help="Files that decide a gate and that a person lets the branch change: tests, settings. May be repeated.",
)
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
    base: str, may_change: tuple[str, ...], output: Path, root: Path | None, as_json: bool, form: str | None
) -> None:
    """Judge what is checked out as it would be when it is merged, by the sealed gates of its base.

    Also verifies the journal, what the commits of the branch change against the reservations, and says whether their
    trees were APPROVED, as far as the journal is committed. Only the gates that run again cannot be faked by who wrote
    it.

    Exit 0 when all of it holds, 1 when something is refused, 2 when it cannot be judged.
    """
    folder, wanted = resolve_root(root), asked(form, as_json=as_json)
    os.environ.setdefault(ADDRESS, "")  # `database` in interlock.toml is that of the branch
    result = _check(folder, base, may_change)
    _write(folder, output, result)
    report(result.findings, wanted, folder, result.to_json(), lambda: click.echo(_summary(result)), code=result.code)


def _check(folder: Path, base: str, may_change: tuple[str, ...]) -> Checked:
    top, relative = place_of(folder)
    store, merge, judged = Store(top), graph.merged(top, base), graph.JudgedMerge()
    if merge.conflict is not None:
        judged = judged._replace(findings=(merge.conflict,))
    else:
        with settings_of(folder, Base(store, store.commit(merge.base).tree, relative), None) as place:
            config, line = load_config(place), Sparse.on(talk())
            judged = graph.judge_merge(folder, config, merge.base, merge.commit, may_change, line)
    findings, notes = [*judged.findings, *(row for gate in judged.gates for row in gate.findings)], list[str]()
    if judged.unjudged:
        notes.append(f"no gate judged {count(judged.unjudged, 'changed file')}: {few(judged.unjudged, 5)}")
    if judged.added:
        notes.append(f"new beside the tests, and part of them from now on: {few(judged.added, 5)}")
    wanted, approved, pages = f"{merge.base}..{merge.tip}", None, dict[str, str]()
    with _record(Base(store, store.commit(merge.head).tree, relative)) as record:
        journal = graph.verify_journal(record)
        findings += [row._replace(path=_JOURNAL) for row in journal.problems]
        notes.append("no journal is committed" if journal.verdict == "empty" else f"the journal is {journal.verdict}")
        try:
            approved = graph.verify_approved(folder, wanted, record)
            findings += [row._replace(level="note") for row in approved.problems]
            notes.append(approved.text)
            pages = dict(_pages(record, approved))
        except InterlockError as error:
            notes.append(f"approvals: {error.message}")
    try:
        breaches = check_commits(str(folder), wanted)
        findings += [row.finding for row in breaches.findings]
        notes.append(f"reservations: {breaches.verdict}")
    except InterlockError as error:
        notes.append(f"reservations: {error.message}")
    return Checked(merge, judged, approved, (*findings,), (*notes,), pages)


@contextmanager
def _record(head: Base) -> Generator[Path]:
    """Yield a folder with the committed journal alone: a branch may as well commit a state that no run ever had."""
    with TemporaryDirectory(prefix="interlock-") as name:
        if (data := head.content(head.inside(_JOURNAL))) is not None:
            write_atomically(Path(name, _JOURNAL), data)
        yield Path(name)


def _pages(record: Path, approved: graph.ApprovedCommits) -> Iterator[tuple[str, str]]:
    """Yield each run that approved a commit, with its report."""
    from interlock.web import report as run_report  # noqa: PLC0415 - most branches have no run

    for run in dict.fromkeys(run for names in approved.runs.values() for run in names.split(", ")):
        with suppress(InterlockError):
            # A journal may hold any name, and this one names a file.
            if graph.is_run_id(run):
                yield run, run_report(record, run)


def _write(folder: Path, output: Path, result: Checked) -> None:
    """Write the reports, and the summary also where GitHub shows it."""
    rows = checked(in_repository(folder, result.findings))
    sarif = render(rows, "sarif", rules=catalog().values(), version=__version__)
    summary = _summary(result)
    files = {"interlock.sarif": sarif, "summary.md": summary, "result.json": json.dumps(result.to_json(), indent=2)}
    files["junit.xml"] = render_cases([case for gate in result.judged.gates for case in gate.cases])
    files |= {f"{run}.html": page for run, page in result.pages.items()}
    for name, text in files.items():
        write_atomically(folder / output / name, text.encode())
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(summary)


def _summary(result: Checked) -> str:
    """Return the result as Markdown; whatever somebody else wrote stands in code spans."""
    word = {Exit.GOOD: "passed", Exit.REFUSED: "refused"}.get(result.code, "cannot be judged")
    merge = result.merge
    lines = [f"## Interlock: {word}", "", f"{_code(merge.commit[:12])}, by the gates of {_code(merge.base[:12])}", ""]
    if result.judged.gates:
        lines += ["| gate | | tests | seconds |", "|---|---|---|---|"]
        lines += [
            f"| {_code(gate.gate)} | {gate.state} | {gate.said or 'by its exit status'} | {gate.seconds:.1f} |"
            for gate in result.judged.gates
        ]
    refused = [row for row in result.findings if row.refuses]
    for row in refused[:_SHOWN]:
        place = f" {_code(row.location)}" if row.path else ""
        lines += ["", f"- **{row.code}**{place} {_code(row.message)}"]
        found = [f"  {_code(line)}" for line in row.found.splitlines() if line.strip()]
        lines += ["\\\n".join(found)] if found else []
        lines += [f"  Fix: {_code(row.fix)}"] if row.fix else []
    lines += ["", f"And {len(refused) - _SHOWN} more."] if len(refused) > _SHOWN else []
    if result.approved is not None:
        lines += ["", "| commit | approved by |", "|---|---|"]
        rows = result.approved.runs.items()
        lines += [f"| {_code(commit[:12])} | {_code(run) if run else 'no run'} |" for commit, run in rows]
    said = [f"- {_code(note)}" for note in result.notes]
    trust = [_PROVEN if all(gate.isolated for gate in result.judged.gates) else _OPEN] if result.judged.gates else []
    return "\n".join([*lines, "", *said, "", *trust, _CLAIMED, ""])


def _code(text: str) -> str:
    """Return text as a code span that ends where it ends, in a table too."""
    text = visible(text[:500]).replace("|", "¦")
    if "`" not in text:
        return f"`{text}`"
    # A code span ends at as many backticks as it began with.
    mark = "`" * (max(map(len, re.findall("`+", text))) + 1)
    return f"{mark} {text} {mark}"
