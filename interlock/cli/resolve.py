"""`interlock resolve`: work a ticket with a model, from where it stands to where the pipeline ends."""

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import Any

import click

from interlock import graph
from interlock.agents import Runner, RunnerError
from interlock.agents.model_spec import OPTION
from interlock.agents.usage import Limits
from interlock.cli.completion import complete_model
from interlock.cli.context import resolve_root, root_option, root_words, talk
from interlock.cli.events import EventStream, events_option
from interlock.cli.screen import Screen
from interlock.cli.show import show_ticket
from interlock.cli.stopping import stops_at_once
from interlock.core.errors import Exit
from interlock.gates.config import load_config
from interlock.redaction import Redactor, redactor_for

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("resolve")
@click.argument("ticket", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(OPTION, metavar="SPEC", shell_complete=complete_model,
              help="The model: PROVIDER:MODEL, local, or local:FILE.gguf; default: [tickets.agent].")  # fmt: skip
@click.option("--new", is_flag=True, help="Begin another run, also where the ticket has one.")
@click.option("--record", type=_FILE, metavar="FILE", help="Write every answer into FILE, one line of JSON each.")
@click.option("--replay", type=_FILE, metavar="FILE", help="Take every answer from FILE; no model is asked.")
@root_option
@events_option
def resolve_command(
    ticket: Path, model: str | None, new: bool, record: Path | None, replay: Path | None, root: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Work the ticket of the file TICKET with a model, stage by stage; called again, continue its run."""
    if replay is not None and (model is not None or record is not None):
        raise click.UsageError(f"--replay excludes {OPTION} and --record: nobody is asked")
    folder = resolve_root(root)
    read = graph.read_ticket(ticket)
    played = None if replay is None else graph.PlayedRunner(replay)
    agent = graph.ticket_agent(folder, model) if played is None else None
    runner = played if agent is None else agent.runner()
    assert runner is not None, "one of the two is there"
    redactor = redactor_for(folder, () if agent is None else (agent.settings.api_key_env,))
    if record is not None:
        known = None if new else graph.newest_run(folder, read.ticket_id)
        runner = graph.RecordingRunner(runner, record, folder, run_id=known, redactor=redactor)
    run_id = graph.find_or_begin(graph.Tickets(folder), read, new=new)
    options = (("", ticket), (OPTION, model), ("--record", record), ("--replay", replay))
    words = " ".join(f"{name} {quote(str(value))}".strip() for name, value in options if value is not None)
    again = f"interlock resolve {words}{root_words(folder)}"
    limits = Limits() if agent is None else agent.limits
    sys.exit(_drive_and_show(folder, run_id, read, runner, limits, redactor, again=again, as_json=as_json))


def _drive_and_show(
    folder: Path,
    run_id: str,
    ticket: graph.TicketFile,
    runner: Runner,
    limits: Limits,
    redactor: Redactor,
    *,
    again: str,
    as_json: bool,
) -> int:
    console = talk()
    console.print(f"ticket run {run_id}", style="bold")
    config = load_config(folder)
    with EventStream.on_stdout(run_id, ticket.ticket_id, again=again) if as_json else nullcontext() as events:
        screen = Screen(console, live=events is None or not events.on_terminal)

        def notice(step: Mapping[str, Any]) -> None:
            screen.notice(step)
            if events is not None:
                events.notice(step)

        def watch(task_run: str, step: Mapping[str, Any]) -> None:
            notice({**step, "run_id": task_run})

        tickets = graph.Tickets(folder, drives=graph.Drives(folder, watcher=watch))
        drive = graph.ByModel(
            tickets, run_id, ticket, runner, limits=limits, commands=config.commands, reserve=config.run.reserve,
            notice=notice, redactor=redactor,
        )  # fmt: skip
        try:
            with stops_at_once(f"stopped; the run is kept. Go on with: {again}"), screen:
                end = drive.drive()
        except RunnerError as error:
            raise RunnerError(error.message, f"{error.fix} Nothing is lost: go on with {again}.") from error
        summary = _summary(tickets, end, limits)
        if events is not None:
            events.notice({"kind": "summary", **summary})
        else:
            _print(summary, end, again, root_words(folder))
    return _exit_code(summary)


def _summary(tickets: graph.Tickets, end: graph.End, limits: Limits) -> dict[str, Any]:
    outcome = graph.earlier(tickets.state(end.run_id)).get("outcome")
    return {
        **graph.ticket_summary(tickets, end.run_id, limits),
        "ended": end.kind,
        "outcome": outcome,
        "reason": end.reason,
        "fix": end.fix,
        "waiting_tasks": [{"run_id": run_id, "role": role} for run_id, role in end.waiting],
    }


def _print(summary: Mapping[str, Any], end: graph.End, again: str, root: str) -> None:
    good = _exit_code(summary) == Exit.GOOD
    lines = [
        *([("outcome", summary["outcome"])] if summary["outcome"] else []),
        *([("stopped", end.reason)] if end.reason else []),
        *([("fix", end.fix)] if end.fix else []),
        *(row for run_id, role in end.waiting for row in (
            ("waits for", f"{role} of task run {run_id}"),
            ("read", f"interlock ask {run_id} {role}{root}"),
            ("answer", f"interlock resume {run_id} --answer {role}=FILE{root}"),
        )),
        *([("go on", again)] if end.kind != "over" else []),
        *([("anew", f"{again} --new")] if end.kind == "over" and not good else []),
    ]  # fmt: skip
    show_ticket(summary, lines)


def _exit_code(summary: Mapping[str, Any]) -> int:
    if summary["ended"] == "waiting":
        return Exit.WAITING
    return Exit.GOOD if summary["state"] == graph.COMPLETE and summary["outcome"] == "success" else Exit.REFUSED
