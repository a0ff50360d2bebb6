"""`interlock run | resume`: take a task as far as it goes, and report where it ended."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias

import click

from interlock import graph
from interlock.agents import AgentConfigError, RunnerError
from interlock.agents.model_spec import OPTION
from interlock.cli.context import EXISTING, accept_option, put_back_text, resolve_root, root_option, root_words, talk
from interlock.cli.events import EventStream, events_option
from interlock.cli.interrupt import stops_at_once
from interlock.cli.run_many import check_clean, run_many, show_jobs, task_files
from interlock.cli.screen import STYLES, Screen, Sparse, usage_lines
from interlock.core.database import address_of
from interlock.core.errors import Exit
from interlock.gates.config import load_config

_Notice: TypeAlias = Callable[[Mapping[str, Any]], None]


@click.command("run")
@click.argument("paths", nargs=-1, required=True, metavar="TASK_FILE...", type=EXISTING)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[ROLE=]SPEC",
    help="Who answers for every role that has no runner, or for ROLE: PROVIDER:MODEL, "
    "or command: and claude, codex or gemini. May be repeated.",
)
@click.option("--jobs", type=click.IntRange(1, 64), default=3, show_default=True, help="How many tasks run at once.")
@click.option("--apart", is_flag=True, help="Run one task in a tree of its own, too.")
@click.option("--here", is_flag=True, help="Run in the checkout, several tasks one after the other.")
@click.option("--land", is_flag=True, help="Run each in a tree of its own, and land it once it is APPROVED.")
@click.option("--with-changes", is_flag=True, help="Take along what is not committed into the trees.")
@accept_option
@root_option
@events_option
def run_command(
    paths: tuple[Path, ...],
    models: tuple[str, ...],
    jobs: int,
    apart: bool,
    here: bool,
    land: bool,
    with_changes: bool,
    accept_base: bool,
    root: Path | None,
    as_json: bool,
) -> None:
    """Run the task of each TASK_FILE, or of those in a folder, until it is APPROVED, BLOCKED, or waits for an answer.

    Several tasks run at once, each in a tree of its own; one runs in the checkout, or with --apart in a tree.
    """
    folder, files = resolve_root(root), task_files(paths)
    if here and apart:
        raise click.UsageError("--here and --apart contradict each other; leave one out")
    if here and land:
        raise click.UsageError(
            "what lands has a tree of its own; leave --here out, or land it then: interlock land RUN"
        )
    warn_of_lost_lines(folder)
    apart, config = apart or land, load_config(folder)
    several = len(files) > 1 or any((row.candidates or 1) > 1 for row in config.roles.values())
    # With a database any worker may have to go on with it, which needs a tree of its own.
    if apart or (several and not here) or (address_of(folder) and not here):
        check_clean(folder, with_changes=with_changes)
        tasks = [graph.staffed(graph.load_task(file), config, folder, models) for file in files]
        commit = graph.target_commit(folder, config.landing.target)
        commit = graph.commit_of_changes(folder, commit) if with_changes else commit
        begin = graph.Start(commit, accept_base=accept_base)
        land = land or config.landing.auto
        rows, code = run_many(folder, tasks, begin, jobs=jobs, land=land, as_json=as_json)
        if not as_json:
            show_jobs(rows, folder)
        sys.exit(code)
    codes = [_run_here(folder, file, models, accept_base=accept_base, as_json=as_json) for file in files]
    sys.exit(next((code for code in codes if code), Exit.GOOD))


def warn_of_lost_lines(folder: Path) -> None:
    """Say before a run begins that the journal is not the one that the newest run wrote, as on another branch."""
    if lost := graph.lost_lines(folder):
        talk().print(f"warning: {lost}", style="yellow", markup=False)


def _run_here(folder: Path, task_file: Path, models: tuple[str, ...], *, accept_base: bool, as_json: bool) -> int:
    """Run a task in the checkout, and return the exit code."""
    console = talk()

    def warn(text: str) -> None:
        console.print(f"warning: {text}", style="yellow", markup=False)

    config = load_config(folder)
    task = graph.staffed(graph.load_task(task_file), config, folder, models)
    try:
        run_id = graph.start_run(
            folder,
            task,
            warn=warn,
            progress=Sparse.on(console),
            accept_base=accept_base,
        )
    except (graph.TaskError, AgentConfigError) as error:
        # The fix of the error knows the task's tables alone; on the command line an option does it too.
        if graph.vacant_roles(task, config):
            give = f"interlock run {quote(str(task_file))} {OPTION} SPEC"
            error.fix = f"Write a runner into [agents.ROLE], or give them a model: {give}."
        raise
    return drive_and_show(run_id, folder, as_json=as_json)


@click.command("resume")
@click.argument("run")
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="ROLE=FILE",
    help="The response of a role that the run waits for; `-` reads stdin.",
)
@root_option
@events_option
def resume_command(run: str, answers: tuple[str, ...], root: Path | None, as_json: bool) -> None:
    """Continue RUN: a run id, or a task id for its newest run."""
    folder = resolve_root(root)
    given: dict[str, str] = {}
    for item in answers:
        role, separator, name = item.partition("=")
        if not separator or not name:
            raise click.UsageError(f"--answer needs ROLE=FILE, found `{item}`")
        given[role] = _read(name)
    run_id = known_run(folder, run)
    view = graph.view_run(run_id, root=folder)
    if view.phase != "done":
        for text in _changes(folder, run_id):
            talk().print(f"warning: {text}", style="yellow", markup=False)
    elif not view.abandoned:
        text = f"run {run_id} has ended {view.status}; start a new run of the task: interlock run TASK.toml"
        talk().print(f"note: {text}{root_words(folder)}", style="yellow", markup=False)
    sys.exit(drive_and_show(run_id, folder, as_json=as_json, answers=given))


def _changes(folder: Path, run_id: str) -> Iterator[str]:
    """Yield what is no longer as the run froze it when it began, and what holds for the run."""
    _, policy, _ = graph.RunStore(folder, run_id).load()
    for row in graph.policy_changes(folder, policy.fingerprints):
        if row["what"] == "config":
            now = "cannot be read now" if row["present"].startswith("unreadable") else "changed since it began"
            yield (
                f"run {run_id} keeps the configuration that it began with ({row['frozen'][:19]}…, in "
                f".interlock/runs/{run_id}/run.json), agents and gates included; the project's {now}. "
                "To use the present one, start a new run: interlock run TASK.toml"
            )
        else:
            yield f"run {run_id} began with another version of Interlock; answers are read by the grammar of this one"


def known_run(folder: Path, name: str) -> str:
    """Return the run of that name.

    Raises:
        UnknownRunError: There is none.
    """
    run_id = graph.find_run(folder, "runs", name)
    if run_id is None:
        raise graph.no_task_run(folder, name, graph.find_ticket_run(folder, name))
    graph.bring_shown(folder, run_id)
    return run_id


def drive_and_show(
    run_id: str,
    folder: Path,
    *,
    as_json: bool,
    answers: dict[str, str] | None = None,
) -> int:
    """Drive a run with live progress, print where it ended, and return the exit code.

    With `as_json`, stdout gets each step as a line of JSON, the last one with the summary.
    """
    console = talk()
    console.print(f"run {run_id}", style="bold")
    resume = f"interlock resume {run_id}{root_words(folder)}"

    def drive(notice: _Notice) -> graph.RunView:
        return graph.drive(run_id, root=folder, answers=answers, notice=notice)

    def summarized(view: graph.RunView) -> dict[str, Any]:
        return graph.run_summary(view, folder) | graph.tree_after(view, folder)

    # A live picture on a terminal that also shows the lines of JSON would run into them.
    screen = Screen(console, live=not (as_json and sys.stdout.isatty()), answering=answers or ())
    task_id = graph.RunStore(folder, run_id).load()[0].task_id
    view, summary = _shown(run_id, task_id, screen, drive, summarized, again=resume, as_json=as_json)
    if not as_json:
        show_summary(summary, folder)
        if view.status == "APPROVED" and view.policy.commit:
            click.echo(f"{'next':<12}interlock land {run_id}{root_words(folder)}")
    return exit_code(view)


def _shown(
    run_id: str,
    task_id: str,
    screen: Screen,
    drive: Callable[[_Notice], graph.RunView],
    summarized: Callable[[graph.RunView], dict[str, Any]],
    *,
    again: str,
    as_json: bool,
) -> tuple[graph.RunView, dict[str, Any]]:
    """Drive a run with live progress, as JSON on stdout too if wanted; return where it ended, and its summary."""
    with EventStream.on_stdout(run_id, task_id, again=again) if as_json else nullcontext() as events:

        def notice(step: Mapping[str, Any]) -> None:
            screen.notice(step)
            if events is not None:
                events.notice(step)

        try:
            with stops_at_once(f"stopped; the run is kept. Go on with: {again}"), screen:
                end = drive(notice)
        # Whoever reads that an agent could not be asked wants to know first whether the work is lost.
        except RunnerError as error:
            raise RunnerError(error.message, f"{error.fix} Nothing is lost: go on with {again}.") from error
        summary = summarized(end)
        if events is not None:
            events.notice({"kind": "summary", **summary})
        return end, summary


def exit_code(view: graph.RunView) -> int:
    """Return the exit code for the state of a run."""
    if view.phase == "waiting":
        return Exit.WAITING
    if view.phase == "running":  # another process drives it, and has the answer that was brought
        return Exit.CONFLICT
    return Exit.GOOD if view.status == "APPROVED" else Exit.REFUSED


def show_summary(summary: dict[str, Any], folder: Path) -> None:
    """Print where a run ended and where its records are, for a person."""
    run_id, where = summary["run_id"], root_words(folder)
    status = graph.status_text(summary) if summary["status"] else "(none)"
    lines: list[tuple[str, str]] = [
        ("run", run_id),
        ("path", " → ".join(summary["path"]) or "(not started)"),
        ("status", status),
        ("attempts", str(summary["attempt"])),
    ]
    if tree := summary.get("tree"):
        lines.append(("tree", f"{tree['name']}; agents' sandbox: {tree['sandbox']}, open to them: {tree['open']}"))
    lines += [("reason", item) for item in summary["fail_reasons"]]
    if summary["abandoned"]:
        lines.append(("ended", "abandoned"))
    if stop := summary["stopped"]:
        lines.append(("stopped", f"{stop['code']}: {stop['message']}"))
    lines += _asked(run_id, summary["question"], where)
    for item in summary["waiting"]:
        lines += _waiting(run_id, item["role"], where)
    lines += [("at work", graph.agent_text(row)) for row in summary["at_work"]]
    lines += [("usage", line) for line in usage_lines(summary["usage"])]
    lines += [(key, path) for key, paths in summary["evidence"].items() for path in paths]
    if paths := summary["put_back"]:
        lines.append(("put back", put_back_text(run_id, paths, folder)))
    lines += [("not judged", f"{path} (changed; look at it)") for path in summary["not_judged"]]
    lines += [("changed", f"{path} (is not as it was approved)") for path in summary["changed_since"]]
    lines += [("not there", f"{path} (the hand-over names it)") for path in summary["not_there"]]
    lines.append(("journal", summary["journal"]))
    if head := summary["head"]:
        lines.append(("head", f"{run_id}:{head['seq']}:{head['hash']}"))
    for name, text in lines:
        # Only the ends are coloured: on the way no status is good or bad.
        color = {"bold red": "red", "bold green": "green"}.get(STYLES.get(text, "")) if name == "status" else None
        click.echo(f"{name:<12}{click.style(text, fg=color, bold=color is not None)}")


def _asked(run_id: str, question: Mapping[str, Any] | None, root: str) -> Iterator[tuple[str, str]]:
    """Yield what a run asks a person, and how to answer."""
    if question is None:
        return
    for gate, why in question["gates"].items():
        yield "asks you", f"question {question['number']}, {question['kind']} about {gate}: {why}"
    ways = "|".join(graph.WAYS[question["kind"]])
    yield "answer", f"interlock answer {run_id} {ways} --question {question['number']}{root}"


def _waiting(run_id: str, role: str, root: str) -> tuple[tuple[str, str], ...]:
    return (
        ("waits for", role),
        ("read", f"interlock ask {run_id} {role}{root}"),
        ("answer", f"interlock resume {run_id} --answer {role}=FILE{root}"),
    )


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{name}: {error.strerror}") from error
    # The validator says which byte of an answer is no UTF-8, so none may be lost here.
    return data.decode("utf-8", "surrogateescape")
