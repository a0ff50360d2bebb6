"""The command group, its exit codes, and how every error is shown."""

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Any, Final, cast
from weakref import WeakSet

import click

from interlock import __version__
from interlock.core.errors import Exit, InterlockError
from interlock.core.finding import Finding

SECTIONS: Final = {
    "Set up": {
        "init": ("interlock.cli.init", "Connect the coding agents of this project to the server."),
        "uninstall": ("interlock.cli.init", "Take back what init wrote."),
        "doctor": ("interlock.cli.doctor", "Check that everything works here; --prove plants a real conflict."),
        "notify": ("interlock.cli.notify", "Show how people are notified; --test sends a test event."),
    },
    "Share a checkout": {
        "reserve": ("interlock.cli.leases", "Reserve files before editing them."),
        "release": ("interlock.cli.leases", "Release reservations."),
        "conflicts": ("interlock.cli.leases", "Show which reservations conflict with some files."),
        "status": ("interlock.cli.status", "Show who holds and waits for what, and the state of runs and tickets."),
        "inbox": ("interlock.cli.leases", "Read the messages of other agents."),
        "send": ("interlock.cli.leases", "Write a message to another agent."),
        "negotiate": ("interlock.cli.leases", "Ask the holder of a file to release it."),
        "respond": ("interlock.cli.leases", "Answer a request for a file: release it, or say when."),
        "agents": ("interlock.cli.leases", "List the agents of this project."),
        "commit": ("interlock.cli.commit", "Commit exactly the files that you hold."),
        "recover": ("interlock.cli.recover", "List what was put back of held files, and bring a version back."),
        "verify": ("interlock.cli.status", "Check that the journal and the tickets are what was written."),
    },
    "Tasks and tickets": {
        "begin": ("interlock.cli.source", "Begin a run of a ticket, fetched from its source: jira:ABC-12."),
        "task": ("interlock.cli.source", "Write the task file of a ticket: task new github:123; --run runs it, too."),
        "source": ("interlock.cli.source", "Show a ticket as its source has it, or comment the end of a run on it."),
        "demo": ("interlock.cli.demo", "Run the example task on a real page, from dispatch to APPROVED."),
        "check": ("interlock.cli.gate", "Check whether a task can start, and name everything that prevents it."),
        "gate": ("interlock.cli.gate", "Run one command gate of a task on the present tree."),
        "ci": ("interlock.cli.ci", "Re-run the sealed gates on a merge result; verify its commits and journal."),
        "trust": ("interlock.cli.restore", "Accept the dependencies of sealed gates as they are now."),
        "run": ("interlock.cli.run", "Run a task file."),
        "resume": ("interlock.cli.run", "Continue a task run: after a crash, an answer, or a change."),
        "answer": ("interlock.cli.answer", "Decide what a run asks a person: an objection, or a gate to waive."),
        "land": ("interlock.cli.land", "Land approved runs on their branch, judged together with what has landed."),
        "queue": ("interlock.cli.land", "List the approved runs that have not landed; hold one back, or move it."),
        "pr": ("interlock.cli.pr", "Open the pull request of an approved run, and follow it to its merge."),
        "attest": ("interlock.cli.attest", "Sign that a run was APPROVED, for who has nothing else of it."),
        "log": ("interlock.cli.log", "List the runs of each day: how they ended, what they took, where they landed."),
        "watch": ("interlock.cli.watch", "Print what `status` prints, again whenever it changes."),
        "restore": ("interlock.cli.restore", "Make tests and settings what they were when a run began."),
        "abandon": ("interlock.cli.prune", "End a task run or a ticket for good."),
        "prune": ("interlock.cli.prune", "Remove the folders of runs that have ended."),
        "ask": ("interlock.cli.status", "Print what a waiting task run asks an agent."),
        "explain": (
            "interlock.cli.status",
            "Explain the code of a rule, or why a task or a ticket is in its state and what to do.",
        ),
        "report": ("interlock.cli.report", "Write a run as one HTML file: gates, answers, evidence, changes and log."),
        "graph": ("interlock.cli.status", "Print the status machine, or a ticket pipeline, as a diagram."),
        "evidence": ("interlock.cli.evidence", "Collect screenshots, a console log or an accessibility report."),
        "agent": ("interlock.cli.agent", "Print a role's prompt and contract as an agent file for Claude Code."),
    },
    "Many machines": {
        "database": ("interlock.cli.database", "Make the tables and roles of a database that machines share."),
        "migrate": ("interlock.cli.database", "Copy this project into a database, and compare what was copied."),
        "worker": ("interlock.cli.worker", "Drive the runs of a project with a database."),
        "submit": ("interlock.cli.worker", "Put tasks into the queue; a worker begins them."),
        "workers": ("interlock.cli.worker", "Show workers, queues, and what is stalled."),
    },
    "Servers and hooks": {
        "ui": ("interlock.cli.ui", "Open the pages in a browser: what waits for you, runs, evidence, changes, leases."),
        "mcp": ("interlock.cli.serve", "Serve the tools to one agent host over standard input and output (MCP)."),
        "serve": ("interlock.cli.serve", "Serve the tools to agents over HTTP (MCP), each known by its token."),
        "token": ("interlock.cli.token", "Make, list and revoke the tokens of agents that call over HTTP."),
        "hook": ("interlock.cli.serve", "Answer a hook of an agent's client (pre-edit, …) or of git."),
    },
}
"""Where each command lives. A command is imported when it is used, since the graph takes a second to import."""

COMMANDS: Final = {name: row for rows in SECTIONS.values() for name, row in rows.items()}


class LazyGroup(click.Group):
    """A group whose commands are imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module = __import__(COMMANDS[cmd_name][0], fromlist=[cmd_name])
        return without_keys(getattr(module, f"{cmd_name}_command"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        width = max(map(len, COMMANDS))
        for title, rows in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in rows.items()])


# A command is wrapped once, though a test may call it many times in one process.
_CLEANED: Final[WeakSet[click.Command]] = WeakSet()


def without_keys(command: click.Command) -> click.Command:
    """Return a command that is given its arguments without the keys of the environment.

    What names something and holds a key is refused, as it is by the server's tools.
    """
    if isinstance(command, click.Group):
        for each in command.commands.values():
            without_keys(each)
    elif command.callback is not None and command not in _CLEANED:
        _CLEANED.add(command)
        command.callback = _cleaned(command.callback)
    return command


def _texts(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_texts(each) for each in cast("tuple[Any, ...]", value)]
    return str(value) if isinstance(value, Path) else value


def _cleaned(callback: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(callback)
    def cleaned(*args: Any, **given: Any) -> Any:
        from interlock.redaction import clean_arguments, redactor_for  # noqa: PLC0415 - `--help` needs none

        texts = {name: _texts(value) for name, value in given.items()}
        clean = clean_arguments(texts, redactor_for(texts.get("root")))
        # Only what lost a key is made anew, so that other values stay the objects that click gave.
        changed = {name: type(given[name])(value) for name, value in clean.items() if value != texts[name]}
        return callback(*args, **{**given, **changed})

    return cleaned


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 good, 1 refused, 2 usage or configuration, 3 waiting for an answer, 5 conflict, "
    "70 internal, 74 disk or database.",
)
@click.version_option(__version__, prog_name="interlock", message="%(prog)s %(version)s")
def interlock() -> None:
    """Run coding agents until gates approve their work, and let them share a checkout."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = interlock.main(arguments, prog_name="interlock", standalone_mode=False)
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        if "--json" in arguments:
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "interlock"
            fix = f"`{path} --help` shows the usage."
            _print_error(type(error).__name__, "USAGE", error.format_message(), fix, [])
        else:
            shown = StringIO()
            error.show(shown)
            click.echo(_without_keys(shown.getvalue()), err=True, nl=False)
        code = Exit.USAGE
    except click.Abort:
        click.echo("stopped", err=True)
        code = 130
    # Nobody reads the output any more: Python would complain about it once more at its end.
    except BrokenPipeError:
        sys.stderr.close()
        code = 141
    except Exception as error:  # noqa: BLE001 - the last resort: what is not ours is shown and ends with 70
        code = _show(error, as_json="--json" in arguments)
        if code is None:
            click.echo(_without_keys(traceback.format_exc()), err=True, nl=False)
            click.echo("This is a defect of Interlock; please report it with the lines above.", err=True)
            code = Exit.INTERNAL
    sys.exit(code if isinstance(code, int) else 0)


def _show(error: Exception, *, as_json: bool) -> int | None:
    """Print an error of ours, or what the system or the checkpoint database refused; None for anything else."""
    # A command that never opened a database has not imported it, and needs not to.
    databases = sys.modules.get("sqlite3")
    code, exit_code, problems = "SYSTEM", Exit.SYSTEM, ()
    if isinstance(error, InterlockError):
        place = [str(getattr(error, name, "") or "") for name in ("path", "key")]
        message, fix = ": ".join([*(part for part in place if part), error.message]), error.fix
        code, exit_code, problems = error.code, error.exit_code, error.problems
    elif isinstance(error, OSError):
        message = (f"{error.filename}: " if error.filename else "") + (error.strerror or str(error))
        fix = "Check that you may read and write there, and that the disk is not full."
    elif databases is not None and isinstance(error, databases.Error):
        message = f"the checkpoints of a run cannot be used: {error}"
        fix = (
            "Restore .interlock from a copy, or move the folder of that run out of .interlock/runs and start a new one."
        )
    else:
        return None
    findings = [each for each in problems if not isinstance(each, str)]
    if as_json:
        texts = [each if isinstance(each, str) else f"{each.text} {each.fix}".rstrip() for each in problems]
        with suppress(OSError):
            _print_error(type(error).__name__, code, message, fix, texts)
        return exit_code
    from interlock.cli.context import show_finding  # noqa: PLC0415 - `--help` needs none

    for finding in findings or [Finding(code, "error", "", message, fix=fix)]:
        text, found, fix = map(_without_keys, (finding.message, finding.found, finding.fix))
        show_finding(finding._replace(message=text, found=found, fix=fix, level="error"))
    for text in problems[1:] if not findings else ():
        click.echo(f"  also: {_without_keys(text)}", err=True)
    return exit_code


def _without_keys(text: str) -> str:
    """Return a text of an error without the keys of the environment: it may quote a request, or what a program said."""
    from interlock.redaction import redact  # noqa: PLC0415

    return redact(text)


def _print_error(kind: str, code: str, message: str, fix: str, problems: list[str]) -> None:
    texts = map(_without_keys, (message, fix, *problems))
    data: dict[str, Any] = {
        "kind": kind,
        "code": code,
        "message": next(texts),
        "fix": next(texts),
        "problems": [*texts],
    }
    click.echo(json.dumps({"schema": "interlock.error/1", "error": data}))
