"""The commands about reservations, and about requests and messages between agents."""

import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import click

from interlock.cli.context import finite, json_option, print_json, root_option
from interlock.cli.lease_calls import announced_wait, as_patterns, calls_of, in_pieces, own_ids, way_of
from interlock.cli.lease_text import (
    clock_time,
    holder_words,
    show_agents,
    show_granted,
    show_inbox,
    show_refusals,
    show_unsaved,
)
from interlock.core.errors import Exit
from interlock.core.finding import Finding
from interlock.core.text import count, one_line
from interlock.reservations import MAX_ETA_MINUTES, Reservations, key_of, typed
from interlock.reservations.answers import NegotiateAnswer, ReleaseAnswer, ReserveAnswer

WHERE: Final = (
    "Patterns are relative to the current folder. One that names a file is that file, whatever characters are in its "
    "name; `*` stays inside a folder, `**` crosses folders, and a folder means everything below it. "
)
WHO: Final = "You are INTERLOCK_AGENT_ID, else the session that this shell belongs to, else user@host."
CONFLICTS: Final = frozenset({"RSV201", "RSV204", "RSV206"})
"""The refusals that are about another agent, and not about the call."""

wait_option = click.option(
    "--wait",
    "wait_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    callback=finite,
    help="How long to wait; the queue is first come, first served.",
)


def _end(
    mine: Reservations,
    root: Path | None,
    answer: Mapping[str, Any],
    text: Callable[[], object],
    *,
    as_json: bool,
    is_conflict: bool = False,
) -> None:
    """Print an answer as JSON, or what `text` prints with unsaved work and refusals, and exit with its code."""
    errors = answer.get("errors", ())
    if as_json:
        print_json(answer)
    else:
        way = way_of(mine, root)
        text()
        if "unsaved" in answer:
            show_unsaved(answer["unsaved"], *way)
        show_refusals(errors, way.up, way.tail)
    codes = {error["code"] for error in errors}
    # Another agent in the way is the one refusal that a script can wait out, so it has a code of its own.
    if is_conflict or codes & CONFLICTS:
        sys.exit(Exit.CONFLICT)
    if codes:  # options out of bounds are an error of usage
        sys.exit(Exit.USAGE if codes == {"RSV105"} else Exit.REFUSED)


@click.command("reserve", epilog=WHERE + WHO)
@click.argument("patterns", nargs=-1, required=True)
@click.option("--reason", default="", help="Why, for the others.")
@click.option("--ttl", "ttl_minutes", metavar="MINUTES", type=float, help="How long; default: 15, or as configured.")
@click.option("--shared", is_flag=True, help="Others may hold it at once, shared too: for reading.")
@click.option("--no-force", is_flag=True, help="Never to be taken by escalation.")
@wait_option
@root_option
@json_option
def reserve_command(
    patterns: tuple[str, ...], *, shared: bool, wait_seconds: float, root: Path | None, as_json: bool, **options: Any
) -> None:
    """Reserve PATTERNS before you edit them: all or nothing. Reserving again renews.

    Example: interlock reserve src/app.py 'docs/**' --reason "new login" --wait 60

    Exit codes: 0 reserved, 5 another agent is in the way, 1 refused for another reason.
    """
    with calls_of(root) as mine:
        names = as_patterns(patterns, mine.caller.root)

        def reserve(seconds: float) -> ReserveAnswer:
            return mine.reserve_files(names, exclusive=not shared, wait_seconds=seconds, **options)

        def text() -> None:
            show_granted(answer["reservations"])
            for taken in answer.get("taken_over", []):
                who = one_line(str(taken.get("holder", "")))
                click.echo(f"taken over from {who}: {taken.get('pattern', '')}", err=True)
            if asked := answer.get("release_requests", 0):
                click.echo(f"{count(asked, 'request')} for what you hold: `interlock inbox`", err=True)

        with announced_wait(mine, names, wait_seconds):
            answer = in_pieces(mine, wait_seconds, reserve)
        _end(mine, root, answer, text, as_json=as_json)


@click.command("release", epilog=WHERE + WHO)
@click.argument("names", metavar="[ID|PATTERN]...", nargs=-1)
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
        # Read before the release: afterwards nothing knows the patterns of the ids.
        held = {row["reservation_id"]: row["pattern"] for row in mine.my_reservations()["reservations"]}
        left: list[str] = []
        answer: Mapping[str, Any]
        if everything:
            answer, freed = mine.release_all(), list(held.values())
        else:
            ids, errors, left = own_ids(mine, names)
            released = mine.release_files(ids) if ids else ReleaseAnswer(released=[], errors=[])
            released["errors"] += errors
            answer, freed = released, [held[each] for each in released["released"] if each in held]

        def text() -> None:
            for name in left:
                click.echo(f"left the queue for {one_line(name)}")
            for pattern in freed:
                click.echo(f"released {pattern}")

        _end(mine, root, answer, text, as_json=as_json)


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

        def text() -> None:
            for conflict in answer["conflicts"]:
                click.echo(f"{conflict['pattern']}: {holder_words(conflict)}")
            for pattern in answer["clear"]:
                click.echo(f"{pattern}: clear")

        _end(mine, root, answer, text, as_json=as_json, is_conflict=bool(answer["conflicts"]))


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
        _end(mine, root, answer, lambda: show_inbox(answer, mine.caller.name), as_json=as_json)


@click.command("agents", epilog=WHO)
@root_option
@json_option
def agents_command(root: Path | None, as_json: bool) -> None:
    """List the agents of this project that were seen lately: whether each still works, and how much it holds.

    Example: interlock agents
    """
    with calls_of(root) as mine:
        answer = mine.list_agents()
        _end(mine, root, answer, lambda: show_agents(answer["agents"], mine.caller.name), as_json=as_json)


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
@click.option("--agent", "agent_name", help="The holder, when it must be this one.")
@wait_option
@root_option
@json_option
def negotiate_command(
    file: str, reason: str, urgency: Any, agent_name: str | None, wait_seconds: float, root: Path | None, as_json: bool
) -> None:
    """Ask the holder of FILE (a path or a pattern) to release it; asking again returns the same thread.

    Example: interlock negotiate src/app.py --reason "fix of the login" --urgency urgent --wait 40

    Exit codes: 0 it is free, was released to you, or is asked for; 5 it is deferred, or the wait is over; 1 refused.
    """
    with calls_of(root) as mine:
        (name,) = as_patterns((file,), mine.caller.root)

        def ask(seconds: float) -> NegotiateAnswer:
            return mine.negotiate_release(name, reason, urgency, agent_name, seconds)

        with announced_wait(mine, [name], wait_seconds):
            answer = in_pieces(mine, wait_seconds, ask)
        status = answer["status"]
        is_conflict = status in ("defer", "timeout") or (status == "pending" and bool(wait_seconds))
        _end(
            mine, root, answer, lambda: _show_asked(mine, root, name, answer), as_json=as_json, is_conflict=is_conflict
        )


def _show_asked(mine: Reservations, root: Path | None, name: str, answer: NegotiateAnswer) -> None:
    """Print what became of a request, and on stderr who holds the file and the place in the wait queue."""
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
    click.echo(f"{name}: {words[answer['status']]}{thread}")
    show_granted(answer.get("reservations", []))
    if "deadlock" in answer:
        click.echo(f"  a circle: {', '.join(map(one_line, answer['deadlock']))} wait for each other", err=True)
    if "holder" not in answer:
        return
    holder, wanted, me = answer["holder"], typed(mine, name), key_of(mine.caller.name)
    click.echo(f"  {holder_words(holder)}", err=True)
    for row in mine.current_state(0)["waiters"]:
        if not isinstance(wanted, Finding) and key_of(row["agent"]) == me and wanted.text in row["patterns"]:
            way = way_of(mine, root)
            leave = f"`interlock release {shlex.quote(way.up + name)}{way.tail}` leaves the queue"
            text = f"you wait in the queue, place {row['position']}: it is yours when it is free"
            click.echo(f"  {text}; {leave}", err=True)


def _eta(answer: Mapping[str, Any]) -> str:
    return f", ETA {answer['eta_minutes']} min" if "eta_minutes" in answer else ""


@click.command("respond", epilog=WHO)
@click.argument("thread")
@click.argument("action", type=click.Choice(("release", "defer")))
@click.option(
    "--eta",
    "eta_minutes",
    metavar="MINUTES",
    type=click.IntRange(1, MAX_ETA_MINUTES),
    help="To defer: in how many minutes.",
)
@click.option("--reason", default="", help="Why, for who asks.")
@root_option
@json_option
def respond_command(
    thread: str,
    action: Literal["release", "defer"],
    eta_minutes: int | None,
    reason: str,
    root: Path | None,
    as_json: bool,
) -> None:
    """Answer the request THREAD (`interlock inbox` names it): release now, or defer with an ETA.

    Example: interlock respond neg_0123456789abcdef defer --eta 10 --reason "tests are running"
    """
    if action == "defer" and eta_minutes is None:
        raise click.UsageError(f"say in how many minutes: interlock respond {shlex.quote(thread)} defer --eta 10")
    with calls_of(root) as mine:
        answer = mine.respond_to_release(thread, action, eta_minutes, reason)

        def text() -> None:
            if "resolved_at" in answer:
                end = "released" if answer["status"] == "released" else "settled: what was asked for had ended"
                click.echo(f"{thread}: already {end} at {clock_time(answer['resolved_at'])}")
            elif answer["status"] != "refused":
                click.echo(f"{thread}: {answer['status']}{_eta(answer)}")

        _end(mine, root, answer, text, as_json=as_json)


@click.command("send", epilog=WHO)
@click.argument("agent")
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
        sent = f"sent to {agent}  (thread {answer.get('thread_id')})"
        _end(mine, root, answer, lambda: click.echo(sent) if "thread_id" in answer else None, as_json=as_json)
