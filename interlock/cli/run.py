"""`interlock run | resume | resolve`: take a task or a ticket as far as it goes, and report where it ended."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias, TypeVar

import click

from interlock import graph
from interlock.agents import AgentConfigError, RunnerError
from interlock.agents.model_spec import OPTION
from interlock.agents.usage import Limits
from interlock.cli.completion import complete_model, complete_task_run
from interlock.cli.context import accept_option, resolve_root, root_option, root_words, talk
from interlock.cli.events import EventStream, events_option
from interlock.cli.interrupt import stops_at_once
from interlock.cli.progress import Sparse, usage_lines
from interlock.cli.recording import NOT_RECORDED, RecordingOptions, end_note, recording_options
from interlock.cli.screen import STYLES, Screen
from interlock.core.errors import Exit
from interlock.gates.config import Config, load_config
from interlock.redaction import redactor_for

_EndT = TypeVar("_EndT")
_Notice: TypeAlias = Callable[[Mapping[str, Any]], None]


@click.command("run")
@click.argument("task_file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[ROLE=]SPEC",
    shell_complete=complete_model,
    help="Who answers for every role that has no runner, or for ROLE: PROVIDER:MODEL, local, "
    "local:FILE.gguf, or command: and claude, codex or gemini. May be repeated.",
)
@accept_option
@recording_options
@root_option
@events_option
def run_command(
    task_file: Path, models: tuple[str, ...], accept_base: bool, root: Path | None, as_json: bool,
    recording: RecordingOptions,
) -> None:  # fmt: skip
    """Run the task of TASK_FILE until it is APPROVED, BLOCKED, or waits for an answer."""
    folder = resolve_root(root)
    console = talk()

    def warn(text: str) -> None:
        console.print(f"warning: {text}", style="yellow", markup=False)

    config = load_config(folder)
    written = graph.load_task(task_file)
    task = graph.staffed(written, config, folder, models)
    recording.check(folder, task)
    try:
        run_id = graph.start_run(
            folder,
            task,
            warn=warn,
            replayed=recording.replay is not None,
            progress=Sparse(lambda line: console.print(line, style="dim", markup=False)),
            accept_base=accept_base,
        )
    except (graph.TaskError, AgentConfigError) as error:
        _name_models(error, written, task, config, task_file)
        raise
    if (other := _open_run(folder, task.task_id, run_id)) is not None:
        warn(
            f"run {other} of this task is open too, and both make their evidence in one place. To go on with that one: "
            f"interlock resume {other}{root_words(folder)}"
        )
    sys.exit(drive_and_show(run_id, folder, as_json=as_json, recording=recording, begins=True))


@click.command("resume")
@click.argument("run", shell_complete=complete_task_run)
@click.option("--answer", "answers", multiple=True, metavar="ROLE=FILE",
              help="The response of a role that the run waits for; `-` reads stdin.")  # fmt: skip
@recording_options
@root_option
@events_option
def resume_command(
    run: str, answers: tuple[str, ...], root: Path | None, as_json: bool, recording: RecordingOptions
) -> None:
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
    if view.phase != "done" or view.failed:
        for text in _changes(folder, run_id):
            talk().print(f"warning: {text}", style="yellow", markup=False)
    if view.failed:
        talk().print(f"continuing at {', '.join(view.failed)}; no work is repeated", markup=False)
    elif view.phase == "done" and not view.abandoned:
        text = f"run {run_id} has ended {view.status}; start a new run of the task: interlock run TASK.toml"
        talk().print(f"note: {text}{root_words(folder)}", style="yellow", markup=False)
    sys.exit(drive_and_show(run_id, folder, as_json=as_json, answers=given, recording=recording, take_up=True))


def _name_models(
    error: graph.TaskError | AgentConfigError, written: graph.Task, task: graph.Task, config: Config, task_file: Path
) -> None:
    """Say of a task that cannot start what its models have to do with it.

    Where nobody runs a role, the fix says how to give it a model; what is wrong with a table that an option
    made is reported at the option.
    """
    if graph.vacant_roles(task, config):
        error.fix = (
            "Write a runner into [agents.ROLE], or give them a model: "
            f"interlock run {quote(str(task_file))} {OPTION} SPEC."
        )
    if isinstance(error, AgentConfigError):
        _, _, place = error.key.partition(".")
        role = place.partition(".")[0]
        if task.agents.get(role) is not written.agents.get(role):
            error.path = OPTION


def _open_run(folder: Path, task_id: str, but: str) -> str | None:
    """Return the newest other run of a task that is not at its end; one that cannot be read is none."""
    for run_id in graph.runs_of(folder, "runs", task_id):
        try:
            if run_id != but and graph.view_run(run_id, root=folder).phase != "done":
                return run_id
        except graph.RunDamagedError:
            continue
    return None


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
    return run_id


def drive_and_show(
    run_id: str,
    folder: Path,
    *,
    as_json: bool,
    answers: dict[str, str] | None = None,
    recording: RecordingOptions = NOT_RECORDED,
    begins: bool = False,
    take_up: bool = False,
) -> int:
    """Drive a run with live progress, print where it ended, and return the exit code.

    With `as_json`, stdout gets each step as a line of JSON, the last one with the summary. `take_up` goes on with a run
    that is BLOCKED for a reason outside the work.
    """
    console = talk()
    console.print(f"run {run_id}", style="bold")
    resume = f"interlock resume {run_id}{recording.words}{root_words(folder)}"
    recorder, runners = recording.open(run_id, folder, begins=begins)

    def drive(notice: _Notice) -> graph.RunView:
        return graph.drive(
            run_id, root=folder, answers=answers, runners=runners, notice=notice, observer=recorder, take_up=take_up
        )

    def summarized(view: graph.RunView) -> dict[str, Any]:
        if note := end_note(recorder, recording, view.phase, begins=begins):
            console.print(f"note: {note}", style="yellow", markup=False)
        return graph.run_summary(view, folder) | graph.tree_after(view, folder)

    screen = Screen(console, live=not (as_json and sys.stdout.isatty()), answering=answers or ())
    task_id = graph.RunStore(folder, run_id).load()[0].task_id
    view, summary = _shown(run_id, task_id, screen, drive, summarized, again=resume, as_json=as_json)
    if not as_json:
        show_summary(summary, folder)
    return exit_code(view)


def _shown(
    run_id: str,
    task_id: str,
    screen: Screen,
    drive: Callable[[_Notice], _EndT],
    summarized: Callable[[_EndT], dict[str, Any]],
    *,
    again: str,
    as_json: bool,
) -> tuple[_EndT, dict[str, Any]]:
    """Drive a run with live progress, as JSON on stdout too if wanted; return where it ended, and its summary."""
    with EventStream.on_stdout(run_id, task_id, again=again) if as_json else nullcontext() as events:

        def notice(step: Mapping[str, Any]) -> None:
            screen.notice(step)
            if events is not None:
                events.notice(step)

        try:
            with stops_at_once(f"stopped; the run is kept. Go on with: {again}"), screen:
                end = drive(notice)
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
    run_id = summary["run_id"]
    lines = [
        ("run", run_id),
        ("path", " → ".join(summary["path"]) or "(not started)"),
        ("status", graph.status_text(summary) if summary["status"] else "(none)"),
        ("attempts", str(summary["attempt"])),
        *(("reason", item) for item in summary["fail_reasons"]),
        *([("ended", "abandoned")] if summary["abandoned"] else []),
        *([("stopped", f"{stop['code']}: {stop['message']}")] if (stop := summary["stopped"]) else []),
        *(("kept", f"the answer of {item['role']}; judged when the roles beside it have answered")
          for item in summary["kept"]),
        *(row for row in _asked(run_id, summary["question"], root_words(folder))),
        *(row for item in summary["waiting"] for row in _waiting(run_id, item["role"], root_words(folder))),
        *(("usage", line) for line in usage_lines(summary["usage"])),
        *((key, path) for key, paths in summary["evidence"].items() for path in paths),
        *(("not judged", f"{path} (changed; look at it)") for path in summary["not_judged"]),
        *(("changed", f"{path} (is not as it was approved)") for path in summary["changed_since"]),
        *(("not there", f"{path} (the hand-over names it)") for path in summary["not_there"]),
        ("journal", summary["journal"]),
        *([("head", f"{run_id}:{summary['head']['seq']}:{summary['head']['hash']}")]
          if summary["head"] else []),
    ]  # fmt: skip
    for name, text in lines:
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


def _waiting(run_id: str, role: str, root: str, where: str = "") -> tuple[tuple[str, str], ...]:
    return (
        ("waits for", f"{role}{where}"),
        ("read", f"interlock ask {run_id} {role}{root}"),
        ("answer", f"interlock resume {run_id} --answer {role}=FILE{root}"),
    )


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{name}: {error.strerror}") from error
    return data.decode("utf-8", "surrogateescape")


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
    replayed = None if replay is None else graph.ReplayRunner(replay)
    agent = graph.ticket_agent(folder, model) if replayed is None else None
    runner = replayed if agent is None else agent.runner()
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
    config, console = load_config(folder), talk()
    console.print(f"ticket run {run_id}", style="bold")

    def drive(notice: _Notice) -> graph.End:
        def watch(task_run: str, step: Mapping[str, Any]) -> None:
            notice({**step, "run_id": task_run})

        tickets = graph.Tickets(folder, drives=graph.Drives(folder, watcher=watch))
        return graph.ByModel(
            tickets, run_id, read, runner, limits=limits, commands=config.commands, reserve=config.run.reserve,
            notice=notice, redactor=redactor,
        ).drive()  # fmt: skip

    screen = Screen(console, live=not (as_json and sys.stdout.isatty()))
    summarized = partial(_summary, graph.Tickets(folder), limits)
    end, summary = _shown(run_id, read.ticket_id, screen, drive, summarized, again=again, as_json=as_json)
    if not as_json:
        _print(summary, end, again, root_words(folder))
    sys.exit(_exit_code(summary))


def _summary(tickets: graph.Tickets, limits: Limits, end: graph.End) -> dict[str, Any]:
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
        *(row for run_id, role in end.waiting for row in _waiting(run_id, role, root, f" of task run {run_id}")),
        *([("go on", again)] if end.kind != "over" else []),
        *([("anew", f"{again} --new")] if end.kind == "over" and not good else []),
    ]  # fmt: skip
    show_ticket(summary, lines)


def _exit_code(summary: Mapping[str, Any]) -> int:
    if summary["ended"] == "waiting":
        return Exit.WAITING
    return Exit.GOOD if summary["state"] == graph.COMPLETE and summary["outcome"] == "success" else Exit.REFUSED


def show_ticket(summary: Mapping[str, Any], lines: Iterable[tuple[str, str]] = ()) -> None:
    """Print the state of a ticket run, further lines, and what its model cost, for a person."""
    click.echo(graph.summary_text(summary))
    for name, text in (*lines, *(("usage", line) for line in usage_lines(summary["usage"]))):
        click.echo(f"{name:<12}{text}")
