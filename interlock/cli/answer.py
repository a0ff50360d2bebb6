"""`interlock answer`: a person decides what a run asks: about an objection, or whether to waive a gate."""

import os
import sys
from pathlib import Path
from typing import cast

import click

from interlock import graph
from interlock.catalog import ONLY_A_PERSON
from interlock.cli.context import EXISTING_FILE, json_option, login_name, print_json, resolve_root, root_option
from interlock.cli.run import drive_and_show, known_run
from interlock.core.errors import Exit, InterlockError
from interlock.reservations.identity import agent_behind


def refuse_agents(what: str) -> None:
    """Let a person through who called a command.

    Raises:
        InterlockError: `RUN645` a variable or an ancestor says that an agent did.
    """
    found = agent_behind(os.environ)
    if found:
        raise _refused(what, f"{found} says that an agent calls it")


def _refused(what: str, why: str) -> InterlockError:
    fix = "Call it in a terminal of your own, outside of any agent, without a pipe or a redirection."
    error = InterlockError(f"`interlock {what}` is for a person, and {why}", fix, ONLY_A_PERSON.code)
    # Not an error of usage: the same call is right when a person makes it.
    error.exit_code = Exit.REFUSED
    return error


@click.command("answer")
@click.argument("run")
@click.argument("how", required=False, type=click.Choice(["correct", "refuse", "accept", "waive", "decline"]))
@click.option("--question", "number", type=int, metavar="N", help="The number of the question that you have read.")
@click.option("--reason", default="", metavar="WHY", help="Why; the agent sees it, and the journal keeps it.")
@click.option("--gate", default="", metavar="GATE-X", help="The gate that is waived.")
@click.option("--task", "task_file", type=EXISTING_FILE, metavar="FILE", help="With `correct`: the corrected file.")
@click.option("--no-drive", is_flag=True, help="Store the answer, and let another process continue the run.")
@root_option
@json_option
def answer_command(
    run: str,
    how: str | None,
    number: int | None,
    reason: str,
    gate: str,
    task_file: Path | None,
    no_drive: bool,
    root: Path | None,
    as_json: bool,
) -> None:
    """Decide what RUN asks a person. Without HOW, show what it asks, and the number of the question.

    About an objection: `correct` the task, `refuse` with a reason, or `accept`, after which everything else is built
    and judged, and the run asks whether to waive the gate: `waive` it for that tree, or `decline`. Agents are refused.
    """
    folder = resolve_root(root)
    run_id = known_run(folder, run)
    view = graph.view_run(run_id, root=folder)
    # To look is free: an agent may show its person what the run asks.
    if how is None:
        if as_json:
            question = None if view.question is None else view.question.to_json()
            print_json({"schema": "interlock.question/1", "run_id": run_id, "question": question})
        else:
            click.echo(graph.explanation_text(graph.explain_run(view, folder)))
        sys.exit(Exit.GOOD if view.question is None else Exit.WAITING)
    refuse_agents("answer")
    # A program that pipes an answer in has no variable of an agent, but it is no person either.
    if not os.isatty(0):
        raise _refused("answer", "standard input is not a terminal")
    if number is None:
        raise click.UsageError(f"say which question you have read: --question N; `interlock answer {run}` shows it")
    if gate == "" and how == "waive":
        raise click.UsageError("name the gate that is waived: --gate GATE-X")
    task = None if task_file is None else graph.load_task(task_file)
    # Click has checked the word against the same list.
    kind = cast("graph.AnswerKind", how)
    graph.answer_question(folder, run_id, kind, number=number, by=login_name(), reason=reason, gate=gate, task=task)
    if no_drive:
        click.echo(f"{run_id}: answered; continue it with `interlock resume {run_id}`", err=True)
        return
    sys.exit(drive_and_show(run_id, folder, as_json=as_json))
