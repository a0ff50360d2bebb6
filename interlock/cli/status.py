"""The commands that only read: the state of runs and its reasons, diagrams, and whether the journal is whole."""

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from interlock import graph
from interlock.catalog import CODE, catalog
from interlock.cli.completion import complete_run, complete_task_run
from interlock.cli.context import (
    asked,
    finite,
    form_option,
    json_option,
    print_json,
    report,
    resolve_root,
    root_option,
    show,
)
from interlock.cli.reservation_calls import read_reservations
from interlock.cli.reservation_output import show_reservations
from interlock.core.errors import Exit, InterlockError
from interlock.core.render import OF_SERVICES
from interlock.core.rule import explain
from interlock.core.text import closest, count
from interlock.reservations import span
from interlock.reservations.answers import StatusAnswer

MAX_SINCE_MINUTES: Final = 60 * 24 * 365


@click.command("status")
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("--reservations", "reservations_alone", is_flag=True, help="Leave the runs out.")
@click.option("--since", "since_minutes", metavar="MINUTES", type=click.FloatRange(min=0, max=MAX_SINCE_MINUTES),
              default=60.0, show_default=True, callback=finite, help="Of negotiations: how far back.")  # fmt: skip
@root_option
@json_option
def status_command(
    run: str | None, reservations_alone: bool, since_minutes: float, root: Path | None, as_json: bool
) -> None:
    """List the runs of this project and who holds what, or show RUN (the id of a run, a task or a ticket).

    Below the runs: reservations, who waits, and the negotiations of the last hour.
    """
    if reservations_alone:
        if run is not None:
            raise click.UsageError("choose one of RUN and --reservations")
        held, me = read_reservations(resolve_root(root), since_minutes)
        data = {"schema": "interlock.reservations/1", "reservations": held}
        show(data, lambda _data: show_reservations(held, me), as_json=as_json)
        return
    if run is not None and run.startswith(("rsv_", "neg_")):
        what = "a reservation" if run.startswith("rsv_") else "a request"
        raise click.UsageError(
            f"{run} is {what}, and RUN is a run: `interlock status --reservations` lists what is held"
        )
    from interlock.cli.run import known_run, show_summary, show_ticket  # noqa: PLC0415

    folder = resolve_root(root)
    ticket_run = _ticket_run(folder, run)
    if ticket_run is not None:
        show(graph.ticket_summary(graph.Tickets(folder), ticket_run), show_ticket, as_json=as_json)
        return
    if run is not None:
        view = graph.view_run(known_run(folder, run), root=folder)
        summary = graph.run_summary(view, folder) | graph.tree_after(view, folder)
        show(summary, lambda row: show_summary(row, folder), as_json=as_json)
        return
    _show_all(folder, since_minutes, as_json=as_json)


def _show_all(folder: Path, since_minutes: float, *, as_json: bool) -> None:
    rows, tickets, damaged = graph.all_summaries(folder)
    lost_runs = [] if rows or tickets or damaged else graph.runs_without_state(folder)
    held: StatusAnswer | None = None
    me = ""
    try:
        held, me = read_reservations(folder, since_minutes)
    except InterlockError as error:
        damaged.append({"run_id": "reservations", "message": error.message, "fix": error.fix})
    if as_json:
        print_json({
            "schema": "interlock.runs/1", "runs": rows, "tickets": tickets, "damaged": damaged,
            "without_state": lost_runs, "reservations": held,
        })  # fmt: skip
    else:
        _list(rows, tickets, damaged, lost_runs, alone=held is None or not any(held.values()))
        if held is not None:
            show_reservations(held, me)
    sys.exit(Exit.REFUSED if damaged else Exit.GOOD)


_MAX_NAMED: Final = 5

_PHASE_NOTE: Final = {"new": "not started", "running": "cut off; `interlock resume` continues it", "done": "ended"}
"""The note on a run that nobody drives and that waits for nobody."""


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


def _list(
    rows: list[dict[str, Any]],
    tickets: list[dict[str, Any]],
    damaged: list[dict[str, str]],
    lost_runs: list[str],
    *,
    alone: bool,
) -> None:
    """Print one line for each run; a damaged one does not hide the others. With `alone`, say when there is none."""
    if lost_runs:
        named = ", ".join(lost_runs[:_MAX_NAMED]) + (", …" if len(lost_runs) > _MAX_NAMED else "")
        click.echo(f"the journal holds {count(lost_runs, 'run')} ({named}), and .interlock, where their state was, "
                   "holds none of them: they cannot be shown or continued here", err=True)  # fmt: skip
        click.echo("  fix: In a clone this is expected; `interlock verify --head RUN:SEQ:HASH` checks the journal. "
                   "Otherwise restore .interlock from a copy, or begin new runs.", err=True)  # fmt: skip
    elif alone and not rows and not tickets and not damaged:
        click.echo("no runs here; start one with `interlock run TASK.toml`, or let an agent begin a ticket", err=True)
    for row in rows:
        waits = ", ".join(item["role"] for item in row["waiting"])
        note = f"waits for {waits}" if waits else _PHASE_NOTE.get(row["phase"], "")
        if row["question"] is not None:
            note = f"waits for a person: {row['question']['kind']} about {', '.join(row['question']['gates'])}"
        if row["stopped"] is not None:
            note = f"stopped: {row['stopped']['code']}; `interlock explain` says why"
        if row["driven"]:
            note = "driven now"
        if row["abandoned"]:
            note = "abandoned"
        click.echo(f"{row['run_id']:<28} {graph.status_text(row):<17} attempt {row['attempt']}  {note}{_ago(row)}")
    for row in tickets:
        report = row.get("invalidation_report") if row["terminal"] else None
        note = f"waits for {'; '.join(row['waits_for'])}" if row["waits_for"] else "done"
        if report is not None:
            note = f"failed closed: {report['reason_code']}"
        if row["driven"]:
            note = "a model works it now"
        if row.get("abandoned"):
            note = "abandoned"
        where = f"{row['state'] or '-':<21} revision {row['revision']}"
        click.echo(f"{row['run_id']:<28} ticket {row['ticket_id']}  {where}  {note}{_ago(row)}")
    for item in damaged:
        click.echo(f"{item['run_id']:<28} damaged: {item['message']}")
        click.echo(f"  fix: {item['fix']}")


@click.command("explain")
@click.argument("run", metavar="RUN|CODE", shell_complete=complete_run)
@root_option
@json_option
def explain_command(run: str, root: Path | None, as_json: bool) -> None:
    """Say why RUN (the id of a run, a task or a ticket) is where it is, or what a CODE such as ENV203 means."""
    near, code = "", run.upper()
    if re.fullmatch(CODE, code):
        rows = catalog()
        if code in rows:
            keys = ("code", "level", "title", "source", "remedy", "good", "bad")
            rule = {"schema": "interlock.rule/1", **{key: getattr(rows[code], key) for key in keys}}
            show(rule, lambda _rule: click.echo(explain(rows.values(), code), nl=False), as_json=as_json)
            return
        near = closest(code, rows, 0.7)
    from interlock.cli.run import known_run  # noqa: PLC0415

    folder = resolve_root(root)
    ticket_run = _ticket_run(folder, run)
    if ticket_run is not None:
        explained = graph.explain_ticket(graph.Tickets(folder), ticket_run)
        show(explained, lambda row: click.echo(graph.ticket_explanation_text(row)), as_json=as_json)
        return
    try:
        run_id = known_run(folder, run)
    except graph.UnknownRunError as error:
        if near:
            raise click.UsageError(f"there is no run or task {run}, and no code. Did you mean {near}?") from error
        raise
    explained = graph.explain_run(graph.view_run(run_id, root=folder), folder)
    show(explained, lambda row: click.echo(graph.explanation_text(row)), as_json=as_json)


@click.command("ask")
@click.argument("run", shell_complete=complete_task_run)
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
    request = waiting.get(role or names)
    if request is None:
        asked = f" not for {role}, but" if role else ""
        raise graph.AnswerError(
            f"run {run_id} waits{asked} for {names}", f"`interlock explain {run_id}` says what it needs."
        )
    show(request, lambda row: click.echo(row["system" if system else "prompt"]), as_json=as_json)
    graph.keep_files(view, root=folder, worker="", client="cli")


@click.command("graph")
@click.option("--mermaid", is_flag=True, help="Print Mermaid text (the default).")
@click.option("--task", "task_file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Print the compiled graph of this task, with its roles.")  # fmt: skip
@click.option("--table", is_flag=True, help="Print the transition table as Markdown.")
@click.option("--pipeline", type=click.Choice(("ticket", "poc")), help="Print this ticket pipeline.")
@root_option
def graph_command(mermaid: bool, task_file: Path | None, table: bool, pipeline: str | None, root: Path | None) -> None:
    """Print the status machine or a ticket pipeline as a diagram, made from the rows that the code uses."""
    if mermaid and table:
        raise click.UsageError("choose one of --mermaid and --table")
    if pipeline is not None and (table or task_file is not None):
        raise click.UsageError("choose one of --pipeline, --task and --table")
    if pipeline is not None:
        click.echo(graph.pipeline_mermaid(graph.SPECS[pipeline]), nl=False)
    elif table:
        click.echo(graph.transition_table(), nl=False)
    elif task_file is None:
        click.echo(graph.status_mermaid(), nl=False)
    else:
        compiled = graph.task_graph(graph.load_task(task_file), root=resolve_root(root))
        click.echo(compiled.get_graph().draw_mermaid(), nl=False)


@click.command("verify")
@click.option("--head", "heads", multiple=True, metavar="RUN:SEQ:HASH",
              help="A head that was printed at the end of a run, kept elsewhere.")  # fmt: skip
@click.option("--commits", "commits", metavar="RANGE",
              help="Check commits, such as origin/main..HEAD, against what was reserved then.")  # fmt: skip
@click.option("--journal", "journals", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="With --commits: a journal to read besides those of this repository's checkouts.")  # fmt: skip
@click.option(
    "--allow-unproven", is_flag=True, help="With --commits: exit with 0 when no commit is worse than unproven."
)
@click.option("--allow-incomplete", is_flag=True, help="Do not fail for events that are in no journal here.")
@click.option("--evidence", is_flag=True, help="Also compare every evidence file and its kept copy with the journal.")
@root_option
@json_option
@form_option
def verify_command(
    heads: tuple[str, ...],
    commits: str | None,
    journals: tuple[Path, ...],
    allow_unproven: bool,
    allow_incomplete: bool,
    evidence: bool,
    root: Path | None,
    as_json: bool,
    form: str | None,
) -> None:
    """Check every line of the journal and of the ticket snapshots, and their ends against what the checkpoints keep.

    What is reserved is checked against the journal too. With --commits, each commit of a range is checked against the
    reservations at the time when it was made.
    """
    if commits is None and (journals or allow_unproven):
        raise click.UsageError("--journal and --allow-unproven go with --commits RANGE")
    wanted = asked(form, as_json=as_json)
    if commits is not None:
        if wanted in OF_SERVICES:
            raise click.UsageError("--commits prints text or JSON")
        if heads or evidence:
            raise click.UsageError("--commits goes with neither --head nor --evidence: leave them out")
        from interlock.cli.commit import show_commits  # noqa: PLC0415

        show_commits(
            root, commits, journals, allow_unproven=allow_unproven, allow_incomplete=allow_incomplete,
            as_json=wanted == "json",
        )  # fmt: skip

    folder = resolve_root(root)
    found = graph.verify_journal(folder, [graph.parse_head(item) for item in heads])
    looked = graph.check_evidence(folder) if evidence else None
    # The line of evidence is one of the journal, not of the file.
    problems = [] if looked is None else [row._replace(line=0) for row in looked.problems]
    problems += found.problems
    good = not problems and (allow_incomplete or not found.is_incomplete)
    data = {**found.to_json(), "ok": good, **({} if looked is None else {"evidence": looked.to_json()})}
    code = Exit.GOOD if good else Exit.REFUSED
    report(problems, wanted, folder, data, lambda: _print_verified(found, looked), code=code)


def _print_verified(found: "graph.Verification", looked: "graph.EvidenceCheck | None") -> None:
    for row in () if looked is None else looked.problems:
        click.echo(f"{row.path}: {row.code} {row.field}: {row.message}; found {row.found}, expected {row.expected}")
        click.echo(f"  fix: {row.fix}")
    if looked is not None:
        copies = count(looked.objects, "copy", "copies")
        click.echo(f"evidence: {count(looked.files, 'file')} and {copies} compared, "
                   f"{len(looked.problems)} not what was judged")  # fmt: skip
    for problem in found.problems:
        click.echo(f"{problem.location}: {problem.code} {problem.field}: {problem.message}; "
                   f"found {problem.found}, expected {problem.expected}")  # fmt: skip
        click.echo(f"  fix: {problem.fix}")
    kinds = [count(number, kind) for number, kind in found.kinds] or ["no run"]
    counts = f"{count(found.lines, 'line')}, {', '.join(kinds)}, {count(found.heads, 'head')} checked"
    empty = found.verdict == "empty"
    click.echo(f"{found.path}: " + ("nothing written yet" if empty else f"{found.verdict}; {counts}"))
    for run, lines in found.beyond.items():
        click.echo(f"note: {run} is open, and has {count(lines, 'line')} after the head that was given")
    if found.leases is not None:
        leases = count(found.leases.leases, "lease")
        click.echo(f"{found.store}: {leases} {_AGAINST_JOURNAL[found.leases.verdict]}")
        if found.leases.missing:
            click.echo(f"note: {count(found.leases.missing, 'event')} of the store in no journal here; "
                       "`interlock verify --commits RANGE` says which commits that concerns")  # fmt: skip


_AGAINST_JOURNAL: Final = {
    "same": "as the journal gives them",
    "differs": "other than the journal gives them",
    "partial": "not as the journal gives them, and events are missing there; `--allow-incomplete` lets it pass",
    "busy": "not compared: the store was written all the time",
}
"""What is said of the leases in the store."""
