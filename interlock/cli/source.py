"""`interlock begin`, `task new` and `source`: tickets from where teams keep them."""

import sys
from pathlib import Path
from typing import Any

import click

from interlock import graph
from interlock.cli.context import json_option, print_json, resolve_root, root_option, root_words
from interlock.cli.run import run_command, warn_of_lost_lines
from interlock.core.errors import Exit
from interlock.core.text import count


@click.command("begin")
@click.argument("ticket", metavar="SOURCE:ID")
@click.option("--run-id", metavar="NAME", help="The id of the run; the same one again shows the run that is there.")
@root_option
@json_option
def begin_command(ticket: str, run_id: str | None, root: Path | None, as_json: bool) -> None:
    """Begin a run of a ticket: Interlock fetches it, and an agent goes on over MCP.

    Example: interlock begin jira:ABC-12
    """
    folder = resolve_root(root)
    # Over MCP any id begins a run; here a name without a source is a slip.
    graph.known_source(folder, ticket)
    warn_of_lost_lines(folder)
    answer = graph.Tickets(folder).begin(ticket, run_id)
    if as_json:
        print_json(answer)
    elif (issued := answer["ticket_json"]) is not None:
        click.echo(answer.get("ticket_text", ""))
        click.echo(f"{answer['reason']} It is in {answer['next_state']}.", err=True)
        call = f'interlock_begin_run(ticket_id="{ticket}", run_id="{issued["run_id"]}")'
        click.echo(f"next: an agent at `interlock mcp` calls {call}", err=True)
    else:
        for row in answer["gate_result"]["issues"]:
            click.echo(f"error {row['code']}: {row['message']}\n  fix: {row['fix']}", err=True)
    sys.exit(Exit.GOOD if answer["ticket_json"] is not None else Exit.REFUSED)


@click.group("task")
def task_command() -> None:
    """Make task files."""


@task_command.command("new")
@click.argument("ticket", metavar="SOURCE:ID")
@click.option("--run", "runs", is_flag=True, help="Run it at once, in a tree of its own.")
@click.option("--model", "models", multiple=True, metavar="[ROLE=]SPEC", help="As for `interlock run`.")
@root_option
@click.pass_context
def new_task(context: click.Context, ticket: str, runs: bool, models: tuple[str, ...], root: Path | None) -> None:
    """Write the task file of a ticket below `tasks/`; its text is an input of the task.

    Example: interlock task new github:123 --run && interlock pr GITHUB-123
    """
    folder = resolve_root(root)
    path = graph.new_task(folder, graph.fetch(folder, ticket))
    where = root_words(folder)
    click.echo(path)
    if not runs:
        click.echo(f"next: look at it, and run it: interlock run {path}{where}", err=True)
        return
    given: dict[str, Any] = {"paths": (path,), "models": models, "jobs": 1, "apart": True, "here": False, "land": False}
    click.echo(f"once it is APPROVED: interlock pr {path.stem}{where}", err=True)
    context.invoke(run_command, **given, with_changes=False, accept_base=False, root=root, as_json=False)


@click.group("source")
def source_command() -> None:
    """Look at sources, and write to them."""


@source_command.command("show")
@click.argument("ticket", metavar="SOURCE:ID")
@click.option("--raw", is_flag=True, help="Print what the source answers, to find the paths in it.")
@root_option
@json_option
def show_ticket(ticket: str, raw: bool, root: Path | None, as_json: bool) -> None:
    """Show a ticket as its source has it now, and its digest."""
    folder = resolve_root(root)
    if raw:
        print_json(graph.answers(folder, ticket))
        return
    found = graph.fetch(folder, ticket)
    if as_json:
        print_json({"schema": "interlock.ticket/1", **found.record(), "title": found.title, "text": found.text})
        return
    click.echo(found.quoted())
    about = f"state {found.state or 'unknown'}, {count(len(found.text), 'character')}, sha256:{found.sha256}"
    click.echo(f"{found.name}: {about}", err=True)
    if not found.text:
        where = f"`text` in [sources.{found.source}] does not lead to it: --raw prints the answer"
        click.echo(f"warning: the ticket has no text, or {where}.", err=True)


@source_command.command("comment")
@click.argument("run")
@root_option
def comment_on_ticket(run: str, root: Path | None) -> None:
    """Comment the end of RUN on its ticket, unless that is there already; it is done at the end of a run, too."""
    folder = resolve_root(root)
    if (run_id := graph.find_run(folder, "runs", run)) is not None:
        view = graph.view_run(run_id, root=folder)
        done = graph.comment_end(folder, view) if view.phase == "done" and view.head is not None else []
    elif (run_id := graph.find_ticket_run(folder, run)) is not None:
        done = graph.Tickets(folder).comment_end(run_id)
    else:
        raise graph.no_task_run(folder, run, None)
    if not done:
        message = f"run {run_id} has not ended, or its tickets are of no source with `write_back`"
        fix = "Wait for its end, or set `write_back = true` in the table of the source."
        raise graph.GraphError(message, fix, "SRC106")
    click.echo(f"the end of {run_id} is said on {', '.join(done)}")
