"""Reservations from the shell: `interlock reserve | release | conflicts | inbox | negotiate | respond | agents`."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from interlock.cli.calls import as_patterns, calls_of, in_pieces, own_ids, telling, way_of
from interlock.cli.completion import complete_agent, complete_lease, complete_thread
from interlock.cli.context import Exit, finite, json_option, print_json, root_option
from interlock.cli.standing import (
    CONFLICTS,
    holder_words,
    line,
    show_agents,
    show_conflicts,
    show_granted,
    show_inbox,
    show_refusals,
)
from interlock.reservations.answers import NegotiateAnswer, ReleaseAnswer, ReserveAnswer

WHERE: Final = (
    "Patterns are relative to the current folder. One that names a file is that file, whatever characters are in its "
    "name; `*` stays inside a folder, `**` crosses folders, and a folder means everything below it. "
)
WHO: Final = "You are INTERLOCK_AGENT_ID, else the session that this shell belongs to, else user@host."

_MINUTES: Final = click.FloatRange(min=0)


wait_option = click.option(
    "--wait",
    "wait_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    callback=finite,
    help="How long to wait; the line is first come, first served.",
)


@click.command("reserve", epilog=WHERE + WHO)
@click.argument("patterns", nargs=-1, required=True)
@click.option("--reason", default="", help="Why, for the others.")
@click.option("--ttl", "ttl_minutes", metavar="MINUTES", type=float, help="How long; default: 15, or as configured.")
@click.option("--shared", is_flag=True, help="Others may hold it at once, shared too: for reading.")
@click.option("--no-force", is_flag=True, help="Never to be taken by escalation.")
@click.option("--partial", is_flag=True, help="Take what is free in place of all or nothing.")
@wait_option
@root_option
@json_option
def reserve_command(
    patterns: tuple[str, ...],
    reason: str,
    ttl_minutes: float | None,
    shared: bool,
    no_force: bool,
    partial: bool,
    wait_seconds: float,
    root: Path | None,
    as_json: bool,
) -> None:
    """Reserve PATTERNS before you edit them: all or nothing. Reserving again renews.

    Example: interlock reserve src/app.py 'docs/**' --reason "new login" --wait 60

    Exit codes: 0 reserved, 5 another agent is in the way, 1 refused for another reason.
    """
    with calls_of(root) as mine:
        names = as_patterns(patterns, mine.caller.root)

        def reserve(seconds: float) -> ReserveAnswer:
            return mine.reserve_files(
                names, reason, ttl_minutes, exclusive=not shared, no_force=no_force, partial=partial,
                wait_seconds=seconds,
            )  # fmt: skip

        with telling(mine, names, wait_seconds):
            answer = in_pieces(mine, wait_seconds, reserve)
        if as_json:
            print_json(answer)
        else:
            show_granted(answer["reservations"])
            for taken in answer.get("taken_over", []):
                click.echo(
                    f"taken over from {line(str(taken.get('holder', '')))}: {taken.get('pattern', '')}", err=True
                )
            show_refusals(answer["errors"], way_of(mine, root))
            asked = answer.get("release_requests", 0)
            if asked:
                click.echo(f"{asked} of your reservations are asked for: `interlock inbox`", err=True)
        _end(answer["errors"])


@click.command("release", epilog=WHERE + WHO)
@click.argument("names", metavar="[ID|PATTERN]...", nargs=-1, shell_complete=complete_lease)
@click.option("--all", "everything", is_flag=True, help="Release everything, and leave every line.")
@root_option
@json_option
def release_command(names: tuple[str, ...], everything: bool, root: Path | None, as_json: bool) -> None:
    """Release your reservations by id or by pattern; who waits first gets what is free.

    Example: interlock release src/app.py

    A pattern releases those of your reservations that cover it or that it covers.
    """
    if everything == bool(names):
        raise click.UsageError("name what to release, by id or pattern, or write --all")
    with calls_of(root) as mine:
        if everything:
            count = mine.release_all()
            if as_json:
                print_json(count)
            else:
                click.echo(f"released {count['released_count']}")
            return
        ids, errors = own_ids(mine, names)
        answer = mine.release_files(ids) if ids else ReleaseAnswer(released=[], errors=[])
        answer["errors"] += errors
        if as_json:
            print_json(answer)
        else:
            for released in answer["released"]:
                click.echo(f"released {released}")
            show_refusals(answer["errors"], way_of(mine, root))
        _end(answer["errors"])


@click.command("conflicts", epilog=WHERE + WHO)
@click.argument("patterns", nargs=-1, required=True)
@root_option
@json_option
def conflicts_command(patterns: tuple[str, ...], root: Path | None, as_json: bool) -> None:
    """Say who holds what stands in the way of PATTERNS, and whether they still work; reserves nothing.

    Example: interlock conflicts 'src/**'

    Exit codes: 0 all clear, 5 something is held, 1 refused.
    """
    with calls_of(root) as mine:
        answer = mine.check_conflicts(as_patterns(patterns, mine.caller.root))
        if as_json:
            print_json(answer)
        else:
            show_conflicts(answer)
            show_refusals(answer["errors"], way_of(mine, root))
        if answer["conflicts"]:
            sys.exit(Exit.CONFLICT)
        _end(answer["errors"])


@click.command("inbox", epilog=WHO)
@click.option("--all", "everything", is_flag=True, help="Those that were read before, too.")
@click.option("--cursor", type=click.IntRange(min=0), help="Go on behind this message.")
@root_option
@json_option
def inbox_command(everything: bool, cursor: int | None, root: Path | None, as_json: bool) -> None:
    """Read the messages to you and mark them as read, at most 4 KiB at once.

    Example: interlock inbox --json
    """
    with calls_of(root) as mine:
        answer = mine.fetch_inbox(cursor, unread_only=not everything)
        if as_json:
            print_json(answer)
        else:
            show_inbox(answer, mine.caller.name)
            show_refusals(answer["errors"], way_of(mine, root))
        _end(answer["errors"])


@click.command("negotiate", epilog=WHERE + WHO)
@click.argument("file")
@click.option("--reason", required=True, help="Why you need it.")
@click.option(
    "--urgency",
    type=click.Choice(("low", "normal", "urgent")),
    default="normal",
    show_default=True,
    help="How long the holder has: urgent 5 minutes, normal 10, low for ever; or as configured.",
)
@click.option("--agent", "agent_name", help="The holder, when it must be this one.", shell_complete=complete_agent)
@wait_option
@root_option
@json_option
def negotiate_command(
    file: str,
    reason: str,
    urgency: str,
    agent_name: str | None,
    wait_seconds: float,
    root: Path | None,
    as_json: bool,
) -> None:
    """Ask the holder of FILE (a path or a pattern) to release it; asking again returns the same thread.

    Example: interlock negotiate src/app.py --reason "fix of the login" --urgency urgent --wait 40

    Exit codes: 0 it is free, was released to you, or is asked for; 5 it is deferred, or the wait is over; 1 refused.
    """
    with calls_of(root) as mine:
        (name,) = as_patterns((file,), mine.caller.root)

        def ask(seconds: float) -> NegotiateAnswer:
            return mine.negotiate_release(name, reason, urgency, agent_name, seconds)

        with telling(mine, [name], wait_seconds):
            answer = in_pieces(mine, wait_seconds, ask)
        if as_json:
            print_json(answer)
        else:
            _show_negotiation(name, answer, way_of(mine, root))
        if answer["status"] == "refused":
            _end(answer["errors"])
        if answer["status"] in ("defer", "timeout") or (answer["status"] == "pending" and wait_seconds):
            sys.exit(Exit.CONFLICT)


def _show_negotiation(name: str, answer: NegotiateAnswer, way: tuple[str, str]) -> None:
    eta = f", ETA {answer['eta_minutes']} min" if "eta_minutes" in answer else ""
    note = answer.get("reason", "")
    reason = f': "{line(note)}"' if note else ""
    words = {
        "pending": "asked for; the answer comes to `interlock inbox`",
        "release": "released to you",
        "defer": f"not yet{eta}{reason}",
        "timeout": "no answer yet",
        "free": "free; `interlock reserve` takes it",
        "refused": "not asked for",
    }
    thread = f"  {answer['thread_id']}" if answer["thread_id"] else ""
    click.echo(f"{name}: {words[answer['status']]}{thread}")
    show_granted(answer.get("reservations", []))
    if "holder" in answer:
        click.echo(f"  {holder_words(answer['holder'])}", err=True)
    if "deadlock" in answer:
        click.echo(f"  a circle: {', '.join(map(line, answer['deadlock']))} wait for each other", err=True)
    show_refusals(answer["errors"], way)


@click.command("respond", epilog=WHO)
@click.argument("thread", shell_complete=complete_thread)
@click.argument("action", type=click.Choice(("release", "defer")))
@click.option("--eta", "eta_minutes", metavar="MINUTES", type=_MINUTES, help="To defer: in how many minutes.")
@click.option("--reason", help="Why, for who asks.")
@root_option
@json_option
def respond_command(
    thread: str, action: str, eta_minutes: float | None, reason: str | None, root: Path | None, as_json: bool
) -> None:
    """Answer the request THREAD (`interlock inbox` names it): release now, or defer with an ETA.

    Example: interlock respond neg_0123456789abcdef defer --eta 10 --reason "tests are running"
    """
    with calls_of(root) as mine:
        answer = mine.respond_to_release(thread, action, None, eta_minutes, reason)
        if as_json:
            print_json(answer)
        else:
            eta = f", ETA {answer['eta_minutes']} min" if "eta_minutes" in answer else ""
            if answer["status"] != "refused":
                click.echo(f"{thread}: {answer['status']}{eta}")
            show_refusals(answer["errors"], way_of(mine, root))
        _end(answer["errors"])


@click.command("agents", epilog=WHO)
@root_option
@json_option
def agents_command(root: Path | None, as_json: bool) -> None:
    """List the agents of this project that were seen lately: whether each still works, and how much it holds.

    Example: interlock agents
    """
    with calls_of(root) as mine:
        answer = mine.list_agents()
        if as_json:
            print_json(answer)
        else:
            show_agents(answer["agents"])


def _conflicts(errors: Iterable[Mapping[str, Any]]) -> bool:
    return any(error["code"] in CONFLICTS for error in errors)


def _end(errors: Sequence[Mapping[str, Any]]) -> None:
    """Exit with the code for some refusals."""
    if errors:
        sys.exit(Exit.CONFLICT if _conflicts(errors) else Exit.REFUSED)
