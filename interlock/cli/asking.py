"""Asking other agents, and answering them: `interlock negotiate | respond | send`."""

import shlex
import sys
from pathlib import Path

import click

from interlock.cli.calls import as_patterns, calls_of, in_pieces, places_for, telling, way_of
from interlock.cli.completion import complete_agent, complete_thread
from interlock.cli.context import json_option, print_json, root_option
from interlock.cli.leases import WHERE, WHO, end_with, wait_option
from interlock.cli.standing import clock_time, holder_words, show_granted, show_refusals, show_unsaved
from interlock.core.errors import Exit
from interlock.core.text import one_line
from interlock.reservations import MAX_ETA_MINUTES, Reservations
from interlock.reservations.answers import Conflict, NegotiateAnswer


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
