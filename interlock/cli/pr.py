"""`interlock pr`: the pull request of an approved run, from its opening to its merge."""

import sys
import time
from pathlib import Path
from typing import Final

import click

from interlock import graph
from interlock.cli.context import json_option, print_json, resolve_root, root_option, root_words, show_table
from interlock.cli.interrupt import stops_at_once
from interlock.cli.run import known_run
from interlock.cli.run_many import Job, drive_job
from interlock.core.errors import Exit
from interlock.core.text import count, few

_LOOK_SECONDS: Final = 15.0


@click.command("pr")
@click.argument("run")
@click.option("--rework", is_flag=True, help="Have a new run take up the remarks, and push its work once APPROVED.")
@click.option("--wait", is_flag=True, help="Go on looking, every 15 seconds, until no check is pending.")
@root_option
@json_option
def pr_command(run: str, rework: bool, wait: bool, root: Path | None, as_json: bool) -> None:
    """Open the pull request of RUN (a run id, or a task id for its newest run) by `gh`, or say where it is.

    Remarks of the repository's owners, members and collaborators, and checks that failed, go to the builder of the run
    that --rework begins. While changes are asked for, the run is held back from landing. A merge is its landing.

    Exit 0 when it is merged or nothing is in its way, 1 when it was closed, checks failed or changes are asked for,
    3 while checks are pending or a run goes on with the task.
    """
    folder = resolve_root(root)
    pull = graph.follow_pull(folder, known_run(folder, run))
    if rework:
        run_id = graph.rework_pull(folder, pull)
        job = Job(graph.RunStore(folder, run_id).load()[0], run_id)
        with stops_at_once(f"stopped; the run is kept. Go on with: interlock resume {run_id}{root_words(folder)}"):
            drive_job(folder, job, as_json=False)
        pull = graph.follow_pull(folder, run_id)
    while wait and not pull.goes_on and _code(pull) == Exit.WAITING:
        time.sleep(_LOOK_SECONDS)
        pull = graph.follow_pull(folder, pull.run_id)
    if as_json:
        print_json({"schema": "interlock.pull-request/1", "ok": _code(pull) == Exit.GOOD, **pull.to_json()})
    else:
        _show(pull, root_words(folder))
    sys.exit(_code(pull))


def _code(pull: graph.PullRequest) -> int:
    if pull.state == "merged":
        return Exit.GOOD
    if pull.state == "closed" or pull.objections:
        return Exit.REFUSED
    is_waiting = pull.goes_on or any(check.state == "pending" for check in pull.checks)
    return Exit.WAITING if is_waiting else Exit.GOOD


def _show(pull: graph.PullRequest, where: str) -> None:
    click.echo(pull.url)
    did = {"opened": "opened", "pushed": "has the new work"}.get(pull.did, pull.state)
    click.echo(f"pull request {pull.number} {did}; its work is that of {pull.run_id}", err=True)
    show_table("", ("check", "", "address"), [(each.name, each.state, each.link) for each in pull.checks])
    for remark in pull.remarks:
        click.echo(f"  {remark.text}"[:500])
    notes = [f"{count(pull.unheard, 'remark')} of other people passed over"] if pull.unheard else []
    notes += [f"the branch has commits of others: {pull.others[:12]}"] if pull.others and pull.state == "open" else []
    notes += [f"merged as {pull.landed[:12]}; bring your checkout up to date: git pull"] if pull.landed else []
    notes += [f"not there as they were approved: {few(pull.differs)}"] if pull.differs else []
    if pull.goes_on:
        notes.append(f"run {pull.goes_on} goes on with the task: interlock resume {pull.goes_on}{where}")
    elif pull.state == "open" and (pull.remarks or pull.objections):
        notes.append(f"next: interlock pr {pull.run_id} --rework{where}")
    elif pull.state == "closed":
        notes.append("it was closed and not merged: reopen it there, or `interlock abandon` what is left of the task")
    for note in notes:
        click.echo(f"note: {note}" if not note.startswith("next") else note, err=True)
