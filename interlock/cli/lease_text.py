"""The output of reservations, the wait queue, agents and messages for people; JSON is what the calls return."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

import click

from interlock.cli.context import show_finding, show_table
from interlock.core.finding import Finding
from interlock.core.text import one_line
from interlock.reservations import key_of, review_command, span

_COMMANDS: Final = {
    "reserve_files": "interlock reserve",
    "release_files": "interlock release",
    "release_all": "interlock release --all",
    "check_conflicts": "interlock conflicts",
    "my_reservations": "interlock status --reservations",
    "send_message": "interlock send",
    "fetch_inbox": "interlock inbox",
    "list_agents": "interlock agents",
    "negotiate_release": "interlock negotiate",
    "respond_to_release": "interlock respond",
    "wait_seconds": "--wait",
    "ttl_minutes": "--ttl",
    "eta_minutes": "--eta",
    "agent_name": "--agent",
}
"""The commands and options for the tools and arguments that advice to agents names."""

_ANSWER: Final = "interlock respond {} release   (or: defer --eta MINUTES)"


def clock_time(moment: str) -> str:
    """Return the local time of day of a time in ISO 8601."""
    return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S")


def holder_words(conflict: Mapping[str, Any]) -> str:
    """Return who holds what, and whether they are still active."""
    state = conflict["holder_state"]
    seen = "its process has ended" if state == "gone" else f"{state}, seen {span(conflict['last_seen_seconds'])} ago"
    reason = f': "{one_line(conflict["reason"])}"' if conflict["reason"] else ""
    age, who = conflict["lease_age_seconds"], one_line(conflict["holder"])
    if conflict.get("waiting"):
        return f"{who} waits in front for {conflict['held_pattern']}, for {span(age)} ({seen}){reason}"
    dirty = ", with uncommitted changes" if conflict["dirty"] else ""
    since = f" for {span(age)} now," if age >= 60 else ""
    until = clock_time(conflict["expires_at"])
    return f"{who} holds {conflict['held_pattern']},{since} until {until} ({seen}{dirty}){reason}"


def show_refusals(errors: Iterable[Mapping[str, Any]], up: str = "", tail: str = "") -> None:
    """Print refusals on stderr: what was refused, who is in the way, and what to do; `command_of` has the arguments."""
    for error in errors:
        fix, conflict = shell_words(error["fix"]), error.get("conflict")
        if conflict is None:
            found = one_line(error["found"]) or "nothing"
            place = found if "[" in error["place"] else shell_words(error["place"])
            message, expected = shell_words(error["message"]), shell_words(error["expected"])
            show_finding(Finding(error["code"], "error", place, message, found, expected, fix))
        else:
            message = f"{one_line(error['message'])} {holder_words(conflict)}"
            if error["code"] == "RSV201":
                message = holder_words(conflict)
            show_finding(Finding(error["code"], "error", conflict["pattern"], message, fix=fix))
        if "next" in error:
            click.echo(f"  next: {command_of(error['next'], up, tail)}", err=True)


def shell_words(text: str) -> str:
    """Return advice with commands and options in place of the equivalent tools and arguments."""
    return re.sub(r"[a-z]+(_[a-z]+)+", lambda word: _COMMANDS.get(word[0], word[0]), one_line(text))


def command_of(call: Mapping[str, Any], up: str = "", tail: str = "") -> str:
    """Return the command line for the call of a tool that an answer proposes.

    Args:
        call: `{"tool": …, "arguments": {…}}`.
        up: What leads from the current folder to the root, such as `../`.
        tail: Options that every command needs here.
    """
    arguments = dict(call["arguments"])
    tool = str(call["tool"])
    words = [_COMMANDS.get(tool, tool)]
    for name in ("thread_id", "action", "reservation_ids", "file", "patterns"):
        value = arguments.pop(name, ())
        for each in [value] if isinstance(value, str) else value:
            text = one_line(each)
            if name in ("file", "patterns"):
                # A file whose name begins with a dash would be read as an option.
                text = f"./{text}" if text.startswith("-") and not up else up + text
            words.append(shlex.quote(text))
    # The tool has a switch for unread messages, and the command has one for all.
    if arguments.pop("unread_only", True) is False:
        words.append("--all")
    for name, value in arguments.items():
        option = "--" + name.removesuffix("_seconds").removesuffix("_minutes").removesuffix("_name").replace("_", "-")
        words.append(option if value is True else f"{option} {shlex.quote(one_line(str(value)))}")
    return " ".join(words) + tail


def show_granted(leases: Sequence[Mapping[str, Any]]) -> None:
    """Print leases of the caller, one a line."""
    for lease in leases:
        notes = [one_line(lease["holder"])]
        if not lease["exclusive"]:
            notes.append("shared")
        if lease["no_force"]:
            notes.append("no-force")
        if lease["claim"]:
            notes.append("claim: reserve it to keep it")
        until = clock_time(lease["expires_at"])
        click.echo(f"{lease['reservation_id']}  {lease['pattern']}  until {until}  ({'; '.join(notes)})")


def show_unsaved(work: Mapping[str, Any], up: str, tail: str, root: str) -> None:
    """Print on stderr which unsaved work has changed hands, and the command that helps; see `lease_calls.Way`."""
    click.echo(f"note: {one_line(work['note'])}", err=True)
    call = work["next"]
    if "command" in call:
        words = review_command(work["patterns"], "" if root else up, root)
    else:
        words = command_of(call, up, tail)
    click.echo(f"  next: {words}", err=True)


def show_inbox(answer: Mapping[str, Any], me: str) -> None:
    """Print messages on stdout, and on stderr what timed out and how to read on."""
    for message in answer["messages"]:
        rank = "" if message["importance"] == "normal" else f" [{message['importance']}]"
        topic = f" {one_line(message['topic'])}" if message["topic"] else ""
        head = f"{message['message_id']}  {clock_time(message['sent_at'])}  {one_line(message['from'])}{topic}{rank}"
        click.echo(f"{head}  {message['thread_id']}")
        for line in (*_body_lines(message["body"]), *_notes(message)):
            click.echo(f"    {line}")
    for late in answer["negotiation_timeouts"]:
        who = f"{one_line(late['holder'])} did not answer your {late['urgency']} request"
        click.echo(f"timed out: {one_line(late['file'])}: {who} {late['thread_id']}", err=True)
        click.echo(f"  {shell_words(str(late['suggestion']))}", err=True)
    if not answer["messages"] and not answer["negotiation_timeouts"]:
        click.echo(f"no messages for {one_line(me)}", err=True)
    if answer["next_cursor"] is not None:
        click.echo(f"more: interlock inbox --cursor {answer['next_cursor']}", err=True)


def _notes(message: Mapping[str, Any]) -> list[str]:
    """Return what the reader of a message needs to know besides."""
    if "settled" in message:
        return [f"settled meanwhile: {message['settled']}"]
    if message["topic"] == "release-request":
        return [f"answer: {_ANSWER.format(message['thread_id'])}"]
    return []


def _body_lines(body: str) -> list[str]:
    """Return the fields of a message that is JSON, or its lines."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    lines = body.splitlines()
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        lines = [
            f"{key}: {part if isinstance(part, str) else json.dumps(part)}"
            for key, part in fields.items()
            if key not in ("type", "thread_id")
        ]
    return list(map(one_line, lines))


def _named(name: str, me: str) -> str:
    return f"{name} (you)" if key_of(name) == key_of(me) else name


def show_agents(agents: Sequence[Mapping[str, Any]], me: str) -> None:
    """Print the agents of the project."""
    rows = [
        (_named(row["name"], me), row["kind"], row["state"], f"{span(row['last_seen_seconds'])} ago", row["leases"])
        for row in sorted(agents, key=lambda row: row["name"].casefold())
    ]
    show_table("", ("agent", "kind", "state", "last seen", "leases"), rows)


def show_reservations(status: Mapping[str, Any], me: str) -> None:
    """Print leases, the wait queue, the negotiations and what others changed; nothing for a part that is empty."""
    if not any(status[part] for part in ("leases", "waiters", "negotiations")):
        click.echo("no reservations here; make one with `interlock reserve PATTERN`", err=True)
    for row in status.get("settings", ()):
        show_finding(Finding(row["code"], row["level"], row["field"], row["message"], fix=row["fix"]))

    def part(title: str, columns: str, cells: list[tuple[object, ...]], **fit: Any) -> None:
        if cells:
            show_table(title, columns.split(", "), cells, **fit)

    leases: list[tuple[object, ...]] = []
    for row in status["leases"]:
        pattern = row["pattern"] if row["exclusive"] else f"{row['pattern']} (shared)"
        state = (row["holder_state"], row["reason"], row["reservation_id"])
        leases.append((_named(row["holder"], me), pattern, span(row["expires_in_seconds"]), *state))
    head = "holder, pattern, ends in, state, reason, id"
    part("Leases", head, leases, wrap="reason")
    waiters: list[tuple[object, ...]] = []
    for row in status["waiters"]:
        patterns = ", ".join(row["patterns"])
        waiters.append((row["position"], _named(row["agent"], me), patterns, span(row["waiting_seconds"])))
    part("Waiting", "place, agent, waits for, for", waiters)
    negotiations: list[tuple[object, ...]] = []
    for row in status["negotiations"]:
        what = row["pattern"] if row["file"] == row["pattern"] else f"{row['file']} of {row['pattern']}"
        who = (_named(row["requester"], me), _named(row["holder"], me))
        negotiations.append((*who, what, row["urgency"], row["age_minutes"], state_words(row), row["thread_id"]))
    head = "requester, holder, pattern, urgency, age (min), state, thread"
    part("Pending Negotiations", head, negotiations, wrap="state")
    disturbed: list[tuple[object, ...]] = []
    for row in status.get("disturbed", ()):
        who = (", ".join(row["holders"]), ", ".join(row["others"]))
        disturbed.append((row["path"], *who, row["what"], row["version"]))
    head = "file, holder, changed by, what is kept, version"
    part("Held files that others changed", head, disturbed, wrap="what is kept")
    if disturbed:
        click.echo("interlock recover --show VERSION shows it, --restore VERSION brings it back")


def state_words(row: Mapping[str, Any]) -> str:
    """Return the state of a negotiation: a deferral with its ETA, one that is over marked as resolved."""
    state = str(row["state"])
    if state == "deferred":
        return f"deferred, ETA {row['eta_minutes']} min"
    if state == "pending":
        return "pending, overdue" if row["expired"] else "pending"
    return f"resolved: {state}"
