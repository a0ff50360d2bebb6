"""The commands about reservations, and about requests and messages between agents."""

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from interlock.cli.calls import (
    as_patterns,
    calls_of,
    covered_by,
    in_pieces,
    own_ids,
    places_for,
    takers,
    telling,
    way_of,
)
from interlock.cli.completion import complete_agent, complete_lease, complete_thread
from interlock.cli.context import count, finite, json_option, print_json, root_option
from interlock.cli.standing import (
    CONFLICTS,
    clock_time,
    holder_words,
    show_agents,
    show_conflicts,
    show_granted,
    show_inbox,
    show_refusals,
    show_unsaved,
)
from interlock.core.errors import Exit
from interlock.core.text import one_line
from interlock.reservations import MAX_ETA_MINUTES, Reservations
from interlock.reservations.answers import Conflict, LeaseInfo, NegotiateAnswer, ReleaseAnswer, ReserveAnswer

WHERE: Final = (
    "Patterns are relative to the current folder. One that names a file is that file, whatever characters are in its "
    "name; `*` stays inside a folder, `**` crosses folders, and a folder means everything below it. "
)
_MAX_LISTED: Final = 20
"""So many reservations that were released are named."""
WHO: Final = "You are INTERLOCK_AGENT_ID, else the session that this shell belongs to, else user@host."

wait_option = click.option(
    "--wait",
    "wait_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    callback=finite,
    help="How long to wait; the queue is first come, first served.",
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
            show_granted(answer["reservations"], covered_by(mine, answer["reservations"], names))
            for taken in answer.get("taken_over", []):
                click.echo(
                    f"taken over from {one_line(str(taken.get('holder', '')))}: {taken.get('pattern', '')}", err=True
                )
            show_unsaved(answer, way_of(mine, root))
            show_refusals(answer["errors"], way_of(mine, root))
            asked = answer.get("release_requests", 0)
            if asked:
                click.echo(f"{count(asked, 'request')} for what you hold: `interlock inbox`", err=True)
        end_with(answer["errors"])


@click.command("release", epilog=WHERE + WHO)
@click.argument("names", metavar="[ID|PATTERN]...", nargs=-1, shell_complete=complete_lease)
@click.option("--all", "everything", is_flag=True, help="Release everything, and leave every queue.")
@root_option
@json_option
def release_command(names: tuple[str, ...], everything: bool, root: Path | None, as_json: bool) -> None:
    """Release your reservations by id or by pattern; who waits first gets what is free.

    Example: interlock release src/app.py

    A pattern releases those of your reservations that cover it or that it covers. Where you wait in the queue for just
    that pattern, you leave the queue, your request for it is withdrawn, and what you hold stays yours.
    """
    if everything == bool(names):
        raise click.UsageError("name what to release, by id or pattern, or write --all")
    with calls_of(root) as mine:
        held = {} if as_json else {row["reservation_id"]: row for row in mine.my_reservations()["reservations"]}
        if everything:
            freed = mine.release_all()
            if as_json:
                print_json(freed)
            else:
                click.echo(f"released {count(freed['released_count'], 'reservation')}")
                _show_released(mine, list(held.values()))
                show_unsaved(freed, way_of(mine, root))
            return
        ids, errors, left = own_ids(mine, names)
        answer = mine.release_files(ids) if ids else ReleaseAnswer(released=[], errors=[])
        answer["errors"] += errors
        if as_json:
            print_json(answer)
        else:
            for name in left:
                click.echo(f"left the queue for {one_line(name)}")
            _show_released(mine, [held[each] for each in answer["released"] if each in held])
            show_unsaved(answer, way_of(mine, root))
            show_refusals(answer["errors"], way_of(mine, root))
        end_with(answer["errors"])


def _show_released(mine: Reservations, freed: Sequence[LeaseInfo]) -> None:
    got = takers(mine, [lease["pattern"] for lease in freed[:_MAX_LISTED]])
    for lease in freed[:_MAX_LISTED]:
        who = got.get(lease["pattern"])
        note = f"  ({one_line(who)} waited, and has it now)" if who else ""
        click.echo(f"released {lease['pattern']}{note}")
    if len(freed) > _MAX_LISTED:
        click.echo(f"released {len(freed) - _MAX_LISTED} more")


@click.command("conflicts", epilog=WHERE + WHO)
@click.argument("patterns", nargs=-1, required=True)
@root_option
@json_option
def conflicts_command(patterns: tuple[str, ...], root: Path | None, as_json: bool) -> None:
    """Show who holds what overlaps PATTERNS, and whether they still work; reserves nothing.

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
        end_with(answer["errors"])


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
        end_with(answer["errors"])


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
            show_agents(answer["agents"], mine.caller.name)


def _conflicts(errors: Iterable[Mapping[str, Any]]) -> bool:
    return any(error["code"] in CONFLICTS for error in errors)


def end_with(errors: Sequence[Mapping[str, Any]]) -> None:
    """Exit with the code for some refusals: options out of bounds are an error of usage."""
    if errors:
        slips = all(error["code"] == "RSV105" for error in errors)
        sys.exit(Exit.CONFLICT if _conflicts(errors) else Exit.USAGE if slips else Exit.REFUSED)


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
            _show_negotiation(mine, name, answer, way_of(mine, root))
        if answer["status"] == "refused":
            end_with(answer["errors"])
        if answer["status"] in ("defer", "timeout") or (answer["status"] == "pending" and wait_seconds):
            sys.exit(Exit.CONFLICT)


def _show_negotiation(mine: Reservations, name: str, answer: NegotiateAnswer, way: tuple[str, str]) -> None:
    eta = f", ETA {answer['eta_minutes']} min" if "eta_minutes" in answer else ""
    note = answer.get("reason", "")
    reason = f': "{one_line(note)}"' if note else ""
    words = {
        "pending": "asked for; the answer comes to `interlock inbox`",
        "release": "released to you",
        "defer": f"not yet{eta}{reason}",
        "timeout": "no answer yet",
        "free": "free; `interlock reserve` takes it",
        "refused": "not asked for",
    }
    thread = f"  (thread {answer['thread_id']})" if answer["thread_id"] else ""
    click.echo(f"{name}: {words[answer['status']]}{thread}")
    show_granted(answer.get("reservations", []))
    if "holder" in answer:
        click.echo(f"  {holder_words(answer['holder'])}", err=True)
        _show_place(mine, name, answer, answer["holder"], way)
    if "deadlock" in answer:
        click.echo(f"  a circle: {', '.join(map(one_line, answer['deadlock']))} wait for each other", err=True)
    show_refusals(answer["errors"], way)


def _show_place(mine: Reservations, name: str, answer: NegotiateAnswer, held: Conflict, way: tuple[str, str]) -> None:
    """Say that who asks waits in the line, and what to do where the holder keeps it whatever is asked."""
    standing = mine.standing(0)
    for place in places_for(mine, standing["waiters"], name):
        text = f"you wait in the queue, place {place}: it is yours when it is free"
        click.echo(f"  {text}; `interlock release {shlex.quote(way[0] + name)}{way[1]}` leaves the queue", err=True)
    firm = {lease["reservation_id"] for lease in standing["leases"] if lease["no_force"]}
    if answer["status"] == "timeout" and held["reservation_id"] in firm:
        who = shlex.quote(one_line(held["holder"]))
        click.echo(f"  it is never taken by force: interlock send {who} MESSAGE, or ask a person", err=True)


@click.command("respond", epilog=WHO)
@click.argument("thread", shell_complete=complete_thread)
@click.argument("action", type=click.Choice(("release", "defer")))
@click.option("--eta", "eta_minutes", metavar="MINUTES", type=click.IntRange(1, MAX_ETA_MINUTES),
              help="To defer: in how many minutes.")  # fmt: skip
@click.option("--reason", help="Why, for who asks.")
@root_option
@json_option
def respond_command(
    thread: str, action: str, eta_minutes: int | None, reason: str | None, root: Path | None, as_json: bool
) -> None:
    """Answer the request THREAD (`interlock inbox` names it): release now, or defer with an ETA.

    Example: interlock respond neg_0123456789abcdef defer --eta 10 --reason "tests are running"
    """
    if action == "defer" and eta_minutes is None:
        raise click.UsageError(f"say in how many minutes: interlock respond {shlex.quote(thread)} defer --eta 10")
    with calls_of(root) as mine:
        answer = mine.respond_to_release(thread, action, None, eta_minutes, reason)
        if as_json:
            print_json(answer)
        else:
            eta = f", ETA {answer['eta_minutes']} min" if "eta_minutes" in answer else ""
            if "resolved_at" in answer:
                at = clock_time(answer["resolved_at"])
                end = "released" if answer["status"] == "released" else "settled: what was asked for had ended"
                click.echo(f"{thread}: already {end} at {at}")
            elif answer["status"] != "refused":
                click.echo(f"{thread}: {answer['status']}{eta}")
            show_unsaved(answer, way_of(mine, root))
            show_refusals(answer["errors"], way_of(mine, root))
        end_with(answer["errors"])


@click.command("send", epilog=WHO)
@click.argument("agent", shell_complete=complete_agent)
@click.argument("text")
@click.option("--topic", help="A short subject.")
@root_option
@json_option
def send_command(agent: str, text: str, topic: str | None, root: Path | None, as_json: bool) -> None:
    """Write TEXT to AGENT, who reads it with `interlock inbox` or hears of it before the next edit.

    Example: interlock send ann "I rename login.py at noon"
    """
    with calls_of(root) as mine:
        answer = mine.send_message(agent, text, topic)
        if as_json:
            print_json(answer)
        else:
            if "thread_id" in answer:
                click.echo(f"sent to {agent}  (thread {answer['thread_id']})")
            show_refusals(answer["errors"], way_of(mine, root))
        end_with(answer["errors"])
