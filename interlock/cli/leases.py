"""The commands about reservations, and about requests and messages between agents."""

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from interlock import graph
from interlock.cli.completion import complete_agent, complete_lease, complete_thread
from interlock.cli.context import finite, json_option, print_json, root_option
from interlock.cli.reservation_calls import (
    announced_wait,
    as_patterns,
    calls_of,
    covered_by,
    in_pieces,
    own_ids,
    places_for,
    takers,
    way_of,
)
from interlock.cli.reservation_output import (
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
from interlock.core.text import count, one_line
from interlock.reservations import MAX_ETA_MINUTES, Reservations
from interlock.reservations.answers import Conflict, LeaseInfo, NegotiateAnswer, ReleaseAnswer, ReserveAnswer

WHERE: Final = (
    "Patterns are relative to the current folder. One that names a file is that file, whatever characters are in its "
    "name; `*` stays inside a folder, `**` crosses folders, and a folder means everything below it. "
)
_MAX_LISTED: Final = 20
"""So many reservations that were released are named."""
WHO: Final = "You are INTERLOCK_AGENT_ID, else the session that this shell belongs to, else user@host."

Way: TypeAlias = tuple[str, str]
"""What proposed commands need to mean the same here: see `reservation_calls.way_of`."""
_Steps: TypeAlias = Iterator[tuple[Mapping[str, Any], bool]]

wait_option = click.option(
    "--wait",
    "wait_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    callback=finite,
    help="How long to wait; the queue is first come, first served.",
)


def reservation_command(
    name: str, epilog: str = WHO, *, check: Callable[..., None] | None = None
) -> Callable[[Callable[..., _Steps]], click.Command]:
    """Make a command out of a function that asks the reservations, yields the answer, and then prints it for people.

    The function gets the reservations, what proposed commands need to mean the same here, and its own options. Beside
    the answer it yields whether that is a conflict. JSON, unsaved work, refusals and exit codes are the same for all.
    Wrong usage is what `check` raises, before a store is made.
    """

    def made(function: Callable[..., _Steps]) -> click.Command:
        @wraps(function)
        def command(root: Path | None, as_json: bool, **given: Any) -> None:
            if check is not None:
                check(**given)
            with calls_of(root) as mine:
                way = way_of(mine, root)
                steps = function(mine, way, **given)
                answer, is_conflict = next(steps)
                errors = answer.get("errors", ())
                if as_json:
                    print_json(answer)
                else:
                    list(steps)
                    show_unsaved(answer, way)
                    show_refusals(errors, way)
                if is_conflict or any(error["code"] in CONFLICTS for error in errors):
                    sys.exit(Exit.CONFLICT)
                if errors:  # options out of bounds are an error of usage
                    sys.exit(Exit.USAGE if all(error["code"] == "RSV105" for error in errors) else Exit.REFUSED)

        found = click.command(name, epilog=epilog)(command)
        found.params += click.command("common")(root_option(json_option(lambda: None))).params
        return found

    return made


@reservation_command("reserve", WHERE + WHO)
@click.argument("patterns", nargs=-1, required=True)
@click.option("--reason", default="", help="Why, for the others.")
@click.option("--ttl", "ttl_minutes", metavar="MINUTES", type=float, help="How long; default: 15, or as configured.")
@click.option("--shared", is_flag=True, help="Others may hold it at once, shared too: for reading.")
@click.option("--no-force", is_flag=True, help="Never to be taken by escalation.")
@click.option("--partial", is_flag=True, help="Take what is free in place of all or nothing.")
@wait_option
def reserve_command(
    mine: Reservations, _way: Way, patterns: tuple[str, ...], *, shared: bool, wait_seconds: float, **options: Any
) -> _Steps:
    """Reserve PATTERNS before you edit them: all or nothing. Reserving again renews.

    Example: interlock reserve src/app.py 'docs/**' --reason "new login" --wait 60

    Exit codes: 0 reserved, 5 another agent is in the way, 1 refused for another reason.
    """
    names = as_patterns(patterns, mine.caller.root)

    def reserve(seconds: float) -> ReserveAnswer:
        return mine.reserve_files(names, exclusive=not shared, wait_seconds=seconds, **options)

    with announced_wait(mine, names, wait_seconds):
        answer = in_pieces(mine, wait_seconds, reserve)
    yield answer, False
    show_granted(answer["reservations"], covered_by(mine, answer["reservations"], names))
    for taken in answer.get("taken_over", []):
        click.echo(f"taken over from {one_line(str(taken.get('holder', '')))}: {taken.get('pattern', '')}", err=True)
    if asked := answer.get("release_requests", 0):
        click.echo(f"{count(asked, 'request')} for what you hold: `interlock inbox`", err=True)


def _check_names(names: tuple[str, ...], everything: bool) -> None:
    if everything == bool(names):
        raise click.UsageError("name what to release, by id or pattern, or write --all")


@reservation_command("release", WHERE + WHO, check=_check_names)
@click.argument("names", metavar="[ID|PATTERN]...", nargs=-1, shell_complete=complete_lease)
@click.option("--all", "everything", is_flag=True, help="Release everything, and leave every queue.")
def release_command(mine: Reservations, _way: Way, names: tuple[str, ...], everything: bool) -> _Steps:
    """Release your reservations by id or by pattern; who waits first gets what is free.

    Example: interlock release src/app.py

    A pattern releases those of your reservations that cover it or that it covers. Where you wait in the queue for just
    that pattern, you leave the queue, your request for it is withdrawn, and what you hold stays yours.
    """
    held = {row["reservation_id"]: row for row in mine.my_reservations()["reservations"]}
    if everything:
        freed = mine.release_all()
        yield freed, False
        click.echo(f"released {count(freed['released_count'], 'reservation')}")
        _show_released(mine, list(held.values()))
        return
    ids, errors, left = own_ids(mine, names)
    answer = mine.release_files(ids) if ids else ReleaseAnswer(released=[], errors=[])
    answer["errors"] += errors
    yield answer, False
    for name in left:
        click.echo(f"left the queue for {one_line(name)}")
    _show_released(mine, [held[each] for each in answer["released"] if each in held])


def _show_released(mine: Reservations, freed: Sequence[LeaseInfo]) -> None:
    got = takers(mine, [lease["pattern"] for lease in freed[:_MAX_LISTED]])
    for lease in freed[:_MAX_LISTED]:
        who = got.get(lease["pattern"])
        note = f"  ({one_line(who)} waited, and has it now)" if who else ""
        click.echo(f"released {lease['pattern']}{note}")
    if len(freed) > _MAX_LISTED:
        click.echo(f"released {len(freed) - _MAX_LISTED} more")


@reservation_command("conflicts", WHERE + WHO)
@click.argument("patterns", nargs=-1, required=True)
def conflicts_command(mine: Reservations, _way: Way, patterns: tuple[str, ...]) -> _Steps:
    """Show who holds what overlaps PATTERNS, and whether they still work; reserves nothing.

    Example: interlock conflicts 'src/**'

    Exit codes: 0 all clear, 5 something is held, 1 refused.
    """
    answer = mine.check_conflicts(as_patterns(patterns, mine.caller.root))
    yield answer, bool(answer["conflicts"])
    show_conflicts(answer)


@reservation_command("inbox")
@click.option("--all", "everything", is_flag=True, help="Those that were read before, too.")
@click.option("--cursor", type=click.IntRange(min=0), help="Go on behind this message.")
def inbox_command(mine: Reservations, _way: Way, everything: bool, cursor: int | None) -> _Steps:
    """Read the messages to you and mark them as read, at most 4 KiB at once.

    Example: interlock inbox --json
    """
    answer = mine.fetch_inbox(cursor, unread_only=not everything)
    yield answer, False
    show_inbox(answer, mine.caller.name)


@reservation_command("agents")
def agents_command(mine: Reservations, _way: Way) -> _Steps:
    """List the agents of this project that were seen lately: whether each still works, and how much it holds.

    Example: interlock agents
    """
    answer = mine.list_agents()
    yield answer, False
    show_agents(answer["agents"], mine.caller.name)


@reservation_command("negotiate", WHERE + WHO)
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
def negotiate_command(
    mine: Reservations, way: Way, file: str, reason: str, urgency: str, agent_name: str | None, wait_seconds: float
) -> _Steps:
    """Ask the holder of FILE (a path or a pattern) to release it; asking again returns the same thread.

    Example: interlock negotiate src/app.py --reason "fix of the login" --urgency urgent --wait 40

    Exit codes: 0 it is free, was released to you, or is asked for; 5 it is deferred, or the wait is over; 1 refused.
    """
    (name,) = as_patterns((file,), mine.caller.root)

    def ask(seconds: float) -> NegotiateAnswer:
        return graph.negotiate(mine, name, reason, urgency, agent_name, seconds)

    with announced_wait(mine, [name], wait_seconds):
        answer = in_pieces(mine, wait_seconds, ask)
    status = answer["status"]
    yield answer, status in ("defer", "timeout") or (status == "pending" and bool(wait_seconds))
    note = answer.get("reason", "")
    words = {
        "pending": "asked for; the answer comes to `interlock inbox`",
        "release": "released to you",
        "defer": f"not yet{_eta(answer)}" + (f': "{one_line(note)}"' if note else ""),
        "timeout": "no answer yet",
        "free": "free; `interlock reserve` takes it",
        "refused": "not asked for",
    }
    thread = f"  (thread {answer['thread_id']})" if answer["thread_id"] else ""
    click.echo(f"{name}: {words[status]}{thread}")
    show_granted(answer.get("reservations", []))
    if "holder" in answer:
        click.echo(f"  {holder_words(answer['holder'])}", err=True)
        _show_place(mine, name, answer, answer["holder"], way)
    if "deadlock" in answer:
        click.echo(f"  a circle: {', '.join(map(one_line, answer['deadlock']))} wait for each other", err=True)


def _eta(answer: Mapping[str, Any]) -> str:
    return f", ETA {answer['eta_minutes']} min" if "eta_minutes" in answer else ""


def _show_place(mine: Reservations, name: str, answer: NegotiateAnswer, held: Conflict, way: Way) -> None:
    """Print the place in the wait queue, and what to do where the holder keeps it whatever is asked."""
    status = mine.current_state(0)
    for place in places_for(mine, status["waiters"], name):
        text = f"you wait in the queue, place {place}: it is yours when it is free"
        click.echo(f"  {text}; `interlock release {shlex.quote(way[0] + name)}{way[1]}` leaves the queue", err=True)
    firm = {lease["reservation_id"] for lease in status["leases"] if lease["no_force"]}
    if answer["status"] == "timeout" and held["reservation_id"] in firm:
        who = shlex.quote(one_line(held["holder"]))
        click.echo(f"  it is never taken by force: interlock send {who} MESSAGE, or ask a person", err=True)


def _check_eta(thread: str, action: str, eta_minutes: int | None, **_rest: str | None) -> None:
    if action == "defer" and eta_minutes is None:
        raise click.UsageError(f"say in how many minutes: interlock respond {shlex.quote(thread)} defer --eta 10")


@reservation_command("respond", check=_check_eta)
@click.argument("thread", shell_complete=complete_thread)
@click.argument("action", type=click.Choice(("release", "defer")))
@click.option("--eta", "eta_minutes", metavar="MINUTES", type=click.IntRange(1, MAX_ETA_MINUTES),
              help="To defer: in how many minutes.")  # fmt: skip
@click.option("--reason", help="Why, for who asks.")
def respond_command(
    mine: Reservations, _way: Way, thread: str, action: str, eta_minutes: int | None, reason: str | None
) -> _Steps:
    """Answer the request THREAD (`interlock inbox` names it): release now, or defer with an ETA.

    Example: interlock respond neg_0123456789abcdef defer --eta 10 --reason "tests are running"
    """
    answer = mine.respond_to_release(thread, action, None, eta_minutes, reason)
    yield answer, False
    if "resolved_at" in answer:
        end = "released" if answer["status"] == "released" else "settled: what was asked for had ended"
        click.echo(f"{thread}: already {end} at {clock_time(answer['resolved_at'])}")
    elif answer["status"] != "refused":
        click.echo(f"{thread}: {answer['status']}{_eta(answer)}")


@reservation_command("send")
@click.argument("agent", shell_complete=complete_agent)
@click.argument("text")
@click.option("--topic", help="A short subject.")
def send_command(mine: Reservations, _way: Way, agent: str, text: str, topic: str | None) -> _Steps:
    """Write TEXT to AGENT, who reads it with `interlock inbox` or hears of it before the next edit.

    Example: interlock send ann "I rename login.py at noon"
    """
    answer = mine.send_message(agent, text, topic)
    yield answer, False
    if "thread_id" in answer:
        click.echo(f"sent to {agent}  (thread {answer['thread_id']})")
