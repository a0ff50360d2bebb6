"""The commands that only read: the state of runs and its reasons, diagrams, and whether the journal is whole."""

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from interlock import graph
from interlock.catalog import CODE, catalog
from interlock.cli.context import (
    EXISTING_FILE,
    asked,
    form_option,
    json_option,
    report,
    resolve_root,
    root_option,
    show,
    show_finding,
)
from interlock.cli.lease_calls import read_reservations
from interlock.cli.lease_text import show_reservations
from interlock.core.database import database_of
from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding
from interlock.core.render import OF_SERVICES, Form
from interlock.core.rule import explain
from interlock.core.text import count, few, shown
from interlock.reservations import span
from interlock.reservations.answers import StatusAnswer

_SINCE_MINUTES: Final = 60.0
"""Of negotiations: how far back."""
_TASK_CHARS: Final = 60
"""So much of a task's text is listed."""


@click.command("status")
@click.argument("run", required=False)
@click.option("--reservations", "reservations_alone", is_flag=True, help="Leave the runs out.")
@root_option
@json_option
def status_command(run: str | None, reservations_alone: bool, root: Path | None, as_json: bool) -> None:
    """List the runs of this project, the newest first, and who holds what, or show RUN.

    RUN is the id of a run, a task or a ticket. Below the runs: reservations, who waits, and the negotiations of the
    last hour.
    """
    if reservations_alone:
        if run is not None:
            raise click.UsageError("choose one of RUN and --reservations")
        held, me = read_reservations(resolve_root(root), _SINCE_MINUTES)
        data = {"schema": "interlock.reservations/1", "reservations": held}
        show(data, lambda _data: show_reservations(held, me), as_json=as_json)
        return
    from interlock.cli.run import known_run, show_summary  # noqa: PLC0415

    folder = resolve_root(root)
    # A ticket and a task have views of their own; a task run of that name goes before a ticket.
    ticket_run = _ticket_run(folder, run)
    if ticket_run is not None:
        summary = graph.ticket_summary(graph.Tickets(folder), ticket_run)
        show(summary, lambda row: click.echo(graph.summary_text(row)), as_json=as_json)
        return
    if run is not None:
        if (name := only_in_journal(folder, run)) is not None:
            show(graph.journal_summaries(folder, name)[0], lambda row: show_summary(row, folder), as_json=as_json)
            return
        view = graph.view_run(known_run(folder, run), root=folder)
        summary = graph.run_summary(view, folder) | graph.tree_after(view, folder)
        show(summary, lambda row: show_summary(row, folder), as_json=as_json)
        return
    data, me = overview(folder)
    show(data, lambda row: show_overview(row, me), as_json=as_json)
    sys.exit(Exit.REFUSED if data["damaged"] else Exit.GOOD)


def overview(folder: Path) -> tuple[dict[str, Any], str]:
    """Return what `interlock status` shows of a project, as JSON values, and the name of who looks."""
    rows, tickets, damaged = graph.all_summaries(folder)
    held: StatusAnswer | None = None
    me = ""
    try:
        held, me = read_reservations(folder, _SINCE_MINUTES)
    except InterlockError as error:
        # Runs can be shown although the store of reservations cannot be read, so that is one row of trouble.
        damaged.append({"run_id": "reservations", "message": error.message, "fix": error.fix})
    # A clone has the journal alone.
    if not (rows or tickets or damaged):
        rows = graph.journal_summaries(folder)
    data: dict[str, Any] = {
        "schema": "interlock.runs/1",
        "runs": rows[::-1],
        "tickets": tickets[::-1],
        "damaged": damaged,
        "reservations": held,
    }
    if (database := database_of(folder)) is not None:
        data["queued"] = graph.waiting(database, {row["run_id"] for row in rows})
    return data, me


def only_in_journal(folder: Path, name: str) -> str | None:
    """Return the name in the journal of a run that has no state in this checkout, as in a clone; else None."""
    has_state = graph.find_run(folder, "runs", name) or graph.find_ticket_run(folder, name)
    return None if has_state else graph.find_in_journal(folder, name)


def show_overview(data: Mapping[str, Any], me: str) -> None:
    """Print the runs and tickets of a project, and below them who holds what."""
    held = data["reservations"]
    if any(row["phase"] == "gone" for row in data["runs"]):
        click.echo("by the journal alone, since this checkout has no state of runs", err=True)
    anything = [data[name] for name in ("runs", "tickets", "damaged")] + [data.get("queued")]
    if not (any(anything) or (held and (held["leases"] or held["waiters"]))):
        click.echo("no runs here; start one with `interlock run TASK.toml`, or let an agent begin a ticket", err=True)
    queued = dict(data.get("queued", {}))
    for row in data["runs"]:
        state = f"{graph.status_text(row):<17} attempt {row['attempt']}"
        note = queued.pop(row["run_id"], "") or _run_note(row)
        click.echo(f"{row['run_id']:<28} {state}  {note}{_ago(row)}  {shown(row['task'], _TASK_CHARS)}")
    for run, where in queued.items():
        click.echo(f"{run:<28} {where}; `interlock workers` shows what waits for whom")
    for row in data["tickets"]:
        state = f"{row['state'] or '-':<21} revision {row['revision']}"
        click.echo(f"{row['run_id']:<28} ticket {row['ticket_id']}  {state}  {_ticket_note(row)}{_ago(row)}")
    for item in data["damaged"]:
        click.echo(f"{item['run_id']:<28} damaged: {item['message']}\n  fix: {item['fix']}")
    if held is not None:
        show_reservations(held, me)


_PHASE_NOTE: Final = {
    "gone": "",
    "new": "not started",
    "running": "cut off; `interlock resume` continues it",
    "done": "ended",
}
"""The note on a run that nobody drives and that waits for nobody."""
_EARLIER: Final = "an earlier version made it: it can be read, not continued"


def _ticket_run(folder: Path, name: str | None) -> str | None:
    """Return the ticket run that a name means; a task run of that name goes before it."""
    if name is None or graph.find_run(folder, "runs", name) is not None:
        return None
    return graph.find_ticket_run(folder, name)


def _ago(row: Mapping[str, Any]) -> str:
    moment = row.get("updated_at")
    if not moment:
        return ""
    passed = datetime.now(UTC) - datetime.fromisoformat(moment)
    return f" ({span(passed.total_seconds())} ago)"


def _run_note(row: Mapping[str, Any]) -> str:
    """Return what is known of a run beside its status."""
    if row["abandoned"]:
        return "abandoned"
    if row["driven"]:
        return "; ".join(map(graph.agent_text, row["at_work"])) or "driven now"
    if row.get("left"):
        return row["left"]
    if row.get("earlier_version") and row["phase"] != "done":
        return _EARLIER
    if row["stopped"] is not None:
        return f"stopped: {row['stopped']['code']}; `interlock explain` says why"
    if row["question"] is not None:
        return f"waits for a person: {row['question']['kind']} about {', '.join(row['question']['gates'])}"
    if row["waiting"]:
        return f"waits for {', '.join(item['role'] for item in row['waiting'])}"
    return _PHASE_NOTE.get(row["phase"], "")


def _ticket_note(row: Mapping[str, Any]) -> str:
    """Return what is known of a ticket run beside its stage."""
    if row.get("abandoned"):
        return "abandoned"
    closed = row.get("invalidation_report") if row["terminal"] else None
    if closed is not None:
        return f"failed closed: {closed['reason_code']}"
    return f"waits for {'; '.join(row['waits_for'])}" if row["waits_for"] else "done"


@click.command("explain")
@click.argument("run", metavar="RUN|CODE", required=False)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Print every finding, with the place of each failed test; without RUN, of the newest run of every task.",
)
@root_option
@json_option
@form_option
def explain_command(run: str | None, every: bool, root: Path | None, as_json: bool, form: str | None) -> None:
    """Say why RUN (the id of a run, a task or a ticket) is where it is, or what a CODE such as ENV203 means.

    With --format, the findings of the run: its gates, its failed tests by file, line and column, and its last answer.
    """
    wanted = asked(form, as_json=as_json)
    if run is None and not every:
        raise click.UsageError("name a RUN or a CODE, or give --all")
    # A code is looked up first: no id of a run has its form.
    code = (run or "").upper()
    rows = catalog() if re.fullmatch(CODE, code) else {}
    if code in rows:
        keys = ("code", "level", "title", "source", "remedy", "good", "bad")
        rule = {"schema": "interlock.rule/1", **{key: getattr(rows[code], key) for key in keys}}
        show(rule, lambda _rule: click.echo(explain(rows.values(), code), nl=False), as_json=wanted == "json")
        return
    folder = resolve_root(root)
    names = [run] if run is not None else _newest_runs(folder)
    explained, found = list[tuple[dict[str, Any], str, list[Finding]]](), list[Finding]()
    for name in names:
        data, text, in_journal = _explained(folder, name)
        rows_of_run = graph.findings_of(folder, in_journal) if every or wanted in OF_SERVICES else []
        if every:
            data["findings"] = [row.to_json() | {"path": row.path} for row in rows_of_run]
            text += "\nfindings:" if rows_of_run else "\nfindings: none"
        explained.append((data, text, rows_of_run))
        found += rows_of_run

    def say() -> None:
        for _, text, rows_of_run in explained:
            click.echo(text)
            for row in rows_of_run:
                show_finding(row, err=False)

    data = explained[0][0] if run is not None else {"schema": "interlock.explanations/1"}
    data |= {} if run is not None else {"runs": [each for each, _, _ in explained]}
    report(found, wanted, folder, data, say, code=Exit.GOOD)


def _explained(folder: Path, name: str) -> tuple[dict[str, Any], str, str]:
    """Return why a run is where it is, as data and as text, and its name in the journal."""
    from interlock.cli.run import known_run  # noqa: PLC0415

    if (in_journal := only_in_journal(folder, name)) is not None:
        data = graph.explain_from_journal(folder, in_journal)
        return data, graph.explanation_text(data), in_journal
    ticket_run = _ticket_run(folder, name)
    if ticket_run is not None:
        data = graph.explain_ticket(graph.Tickets(folder), ticket_run)
        return data, graph.ticket_explanation_text(data), graph.journal_run(ticket_run)
    run_id = known_run(folder, name)
    data = graph.explain_run(graph.view_run(run_id, root=folder), folder)
    return data, graph.explanation_text(data), run_id


def _newest_runs(folder: Path) -> list[str]:
    """Return the newest run of each task."""
    newest = {row["task_id"]: row["run_id"] for row in graph.journal_summaries(folder) if ":" not in row["run_id"]}
    return [*newest.values()]


@click.command("ask")
@click.argument("run")
@click.argument("role", required=False)
@click.option("--system", is_flag=True, help="Print the prompt of the role instead of the assignment.")
@root_option
@json_option
def ask_command(run: str, role: str | None, system: bool, root: Path | None, as_json: bool) -> None:
    """Print what RUN (a run id or a task id) asks the role that it waits for; after a refusal, the findings too.

    ROLE may be left out when one role is waited for.
    """
    from interlock.cli.run import known_run  # noqa: PLC0415

    folder = resolve_root(root)
    run_id = known_run(folder, run)
    view = graph.view_run(run_id, root=folder)
    waiting = {item.role: item.request for item in view.waiting}
    names = ", ".join(waiting) or "nobody"
    if role is None and len(waiting) > 1:
        raise click.UsageError(f"run {run_id} waits for {names}; name one of them")
    # Without ROLE there is one name here or none, and that none waits is said below.
    request = waiting.get(role or names)
    if request is None:
        asked = f" not for {role}, but" if role else ""
        raise graph.GraphError(
            f"run {run_id} waits{asked} for {names}", f"`interlock explain {run_id}` says what it needs.", graph.ANSWER
        )
    show(request, lambda row: click.echo(row["system" if system else "prompt"]), as_json=as_json)
    # Whoever reads the assignment is about to work: the files of the task stay reserved for that.
    graph.keep_files(view, root=folder, worker="", client="cli")


@click.command("graph")
@click.option("--table", is_flag=True, help="Print the transition table as Markdown.")
@click.option("--pipeline", type=click.Choice(("ticket", "poc")), help="Print this ticket pipeline.")
def graph_command(table: bool, pipeline: str | None) -> None:
    """Print the status machine or a ticket pipeline as a Mermaid diagram, made from the rows that the code uses."""
    if pipeline is not None:
        text = graph.pipeline_mermaid(graph.SPECS[pipeline])
    else:
        text = graph.transition_table() if table else graph.status_mermaid()
    click.echo(text, nl=False)


@click.command("verify")
@click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="RUN:SEQ:HASH",
    help="A head that was printed at the end of a run, kept elsewhere.",
)
@click.option(
    "--commits", metavar="RANGE", help="Check commits, such as origin/main..HEAD, against what was reserved then."
)
@click.option(
    "--approved",
    metavar="RANGE",
    help="Say of each commit, such as of origin/main..HEAD, whether its tree was APPROVED.",
)
@click.option(
    "--journal",
    "journals",
    multiple=True,
    type=EXISTING_FILE,
    help="With --commits: a journal to read besides those of this repository's checkouts.",
)
@click.option("--bundle", type=EXISTING_FILE, help="Verify a bundle of `interlock attest`, without any record.")
@click.option("--commit", metavar="SHA", help="With --bundle: the full name of the commit that it is about.")
@click.option(
    "--key",
    type=EXISTING_FILE,
    envvar="INTERLOCK_TRUSTED_SIGNER",
    help="With --bundle: the public key of who signed it; by default INTERLOCK_TRUSTED_SIGNER names it.",
)
@click.option("--allow-incomplete", is_flag=True, help="Do not fail for events that are in no journal here.")
@click.option("--evidence", is_flag=True, help="Also compare every evidence file with the journal.")
@root_option
@json_option
@form_option
def verify_command(
    heads: tuple[str, ...],
    commits: str | None,
    approved: str | None,
    journals: tuple[Path, ...],
    bundle: Path | None,
    commit: str | None,
    key: Path | None,
    allow_incomplete: bool,
    evidence: bool,
    root: Path | None,
    as_json: bool,
    form: str | None,
) -> None:
    """Check every line of the journal and of the ticket snapshots, and their ends against what the checkpoints keep.

    With --commits, each commit of a range is checked against the reservations at the time when it was made; with
    --approved, its tree against those with which runs were APPROVED. With --bundle, what `interlock attest` signed is
    verified, and nothing else is needed.

    Exit 0 when everything is as recorded, 1 when something is not, 2 when there is no record to compare with.
    """
    if commits is None and journals:
        raise click.UsageError("--journal goes with --commits RANGE")
    wanted = asked(form, as_json=as_json)
    if commits is not None:
        if wanted in OF_SERVICES:
            raise click.UsageError("--commits prints text or JSON")
        if heads or evidence or approved:
            raise click.UsageError("--commits goes with no other check: leave --head, --evidence and --approved out")
        from interlock.cli.commit import show_commits  # noqa: PLC0415

        show_commits(root, commits, journals, allow_incomplete=allow_incomplete, as_json=wanted == "json")
    if commit is not None and bundle is None:
        raise click.UsageError("--commit goes with --bundle FILE; a range of commits is checked by --commits")
    if bundle is not None:
        if commit is None or key is None:
            raise click.UsageError("--bundle goes with --commit SHA and --key FILE: anybody can sign with another key")
        _verify_bundle(bundle, commit, key, wanted)
    folder = resolve_root(root)
    if approved is not None:
        if heads or evidence:
            raise click.UsageError("--approved goes with neither --head nor --evidence: leave them out")
        looked_at = graph.verify_approved(folder, approved)
        code = Exit.REFUSED if looked_at.problems else Exit.GOOD
        report(looked_at.problems, wanted, folder, looked_at.to_json(), lambda: _print_approved(looked_at), code=code)
    found = graph.verify_journal(folder, [graph.parse_head(item) for item in heads])
    for run_id in graph.list_runs(folder, "runs") if evidence else ():
        graph.bring_shown(folder, run_id)
    looked = graph.check_evidence(folder) if evidence else None
    # The line of evidence is one of the journal, not of the file.
    problems = [] if looked is None else [row._replace(line=0) for row in looked.problems]
    problems += found.problems
    code = Exit.REFUSED if problems else Exit.USAGE if found.verdict == "empty" else Exit.GOOD
    evidenced = {} if looked is None else {"evidence": looked.to_json()}
    data = {**found.to_json(), "ok": code == Exit.GOOD, **evidenced}
    report(problems, wanted, folder, data, lambda: _print_verified(problems, found, looked), code=code)


def _verify_bundle(bundle: Path, commit: str, key: Path, form: Form) -> NoReturn:
    from interlock.cli.attest import need_extra  # noqa: PLC0415 - what nothing else here needs

    need_extra()
    found = graph.verify_bundle(bundle.read_bytes(), commit, graph.load_public_key(key))
    problems = [found] if isinstance(found, Finding) else []
    data = {"schema": "interlock.attested/1", "ok": not problems}
    data |= {"problem": found.to_json()} if isinstance(found, Finding) else found._asdict()

    def say() -> None:
        if isinstance(found, Finding):
            show_finding(found, err=False)
            return
        gates = [f"{gate} ({count(tests, 'test')})" if tests else gate for gate, tests in found.gates.items()]
        click.echo(f"{found.commit}: APPROVED in run {found.run} at {found.at}")
        click.echo(f"  passed: {few(gates, 20) or 'no command gate'}; waived: {few(found.waived, 20) or 'none'}")
        click.echo(f"  signed by key {found.key}")

    report(problems, form, Path.cwd(), data, say, code=Exit.REFUSED if problems else Exit.GOOD)


def _print_approved(found: "graph.ApprovedCommits") -> None:
    for commit, run in found.runs.items():
        click.echo(f"{commit[:12]}: {f'approved, {run}' if run else 'not approved'}")
    for problem in found.problems[:1]:
        show_finding(problem, err=False)
    click.echo(found.text)


def _print_verified(
    problems: Sequence[Finding], found: "graph.Verification", looked: "graph.EvidenceCheck | None"
) -> None:
    for problem in problems:
        show_finding(problem, err=False)
    if looked is not None:
        bad = f"{len(looked.problems)} not what was judged"
        click.echo(f"evidence: {count(looked.files, 'file')} compared, {bad}")
    kinds = [count(number, kind) for number, kind in found.kinds] or ["no run"]
    counts = f"{count(found.lines, 'line')}, {', '.join(kinds)}, {count(found.heads, 'head')} checked"
    is_empty = found.verdict == "empty"
    what = "nothing written yet, and so nothing to verify" if is_empty else f"{found.verdict}; {counts}"
    click.echo(f"{found.path}: {what}")
    for what in found.carried:
        click.echo(f"note: {what} not written yet: the last step was cut off, and the next call writes it")
