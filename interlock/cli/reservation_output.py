"""The output of reservations, the wait queue, agents and messages for people; JSON is what the calls return."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, cast

import click

from interlock.core.text import one_line
from interlock.reservations import key_of, review_command, span

LEAST: Final = 12
"""A column that may be cut keeps so many characters."""
_GAP: Final = 2


def show_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[object]], *, cut: str = "", spare: Sequence[str] = ()
) -> None:
    """Print a table. On a terminal it is made to fit; into a pipe it goes whole.

    The column `cut` may be cut, so that no path and no id is; where that is not enough, columns of `spare` go in order.
    """
    cells = [list(head), *([one_line(str(cell)) for cell in row] for row in rows)]
    if sys.stdout.isatty():
        cells = fitted(cells, shutil.get_terminal_size().columns, cut, spare)
    if title:
        click.echo(title)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        click.echo("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def fitted(cells: Sequence[Sequence[str]], width: int, cut: str, spare: Sequence[str]) -> list[list[str]]:
    """Return a table, its head first, with what does not fit into a line of `width` characters cut or left out."""
    columns = {column[0]: list(column) for column in zip(*cells, strict=True)}

    def taken() -> int:
        """Count the characters of a line, one of the column to be cut as short as it may get."""
        widths = {name: max(map(len, column)) for name, column in columns.items()}
        widths |= {cut: min(widths[cut], LEAST)} if cut in widths else {}
        return sum(width + _GAP for width in widths.values())

    for name in spare:
        if taken() <= width:
            break
        del columns[name]
    if cut in columns:
        longest = max(map(len, columns[cut]))
        most = max(LEAST, width - taken() + min(longest, LEAST))
        columns[cut] = [text if len(text) <= most else text[: most - 1] + "…" for text in columns[cut]]
    return [list(row) for row in zip(*columns.values(), strict=True)]


CONFLICTS: Final = frozenset({"RSV201", "RSV204", "RSV206"})
"""The refusals that are about another agent, and not about the call."""

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

_MOMENT: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MINUTE: Final = 60

_ABSENT: Final = {
    "gone": "the holder's process has ended. Whoever reserves the files next takes them over, and is notified of "
    "uncommitted work in them.",
    "silent": "the holder has not been seen for `dead_after_minutes`. Whoever reserves the files next takes them over, "
    "unless its process runs and has uncommitted work in them.",
}
"""What a holder's state means where it may be absent."""

_RESOLVED: Final = {
    "released": "resolved: released",
    "forced": "resolved: taken after its time ran out",
    "free": "resolved: the reservation ended",
    "withdrawn": "resolved: withdrawn",
}


def clock_time(moment: str) -> str:
    """Return the local time of day of a time in ISO 8601."""
    return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S")


def local_times(text: str) -> str:
    """Return a text with the moments in it as local times of day."""
    return _MOMENT.sub(lambda found: clock_time(found[0]), text)


def holder_words(conflict: Mapping[str, Any]) -> str:
    """Return who holds what, and whether they are still active."""
    state = conflict["holder_state"]
    seen = "its process has ended" if state == "gone" else f"{state}, seen {span(conflict['last_seen_seconds'])} ago"
    reason = f': "{one_line(conflict["reason"])}"' if conflict["reason"] else ""
    age, who = conflict["lease_age_seconds"], one_line(conflict["holder"])
    if conflict.get("waiting"):
        return f"{who} waits in front for {conflict['held_pattern']}, for {span(age)} ({seen}){reason}"
    dirty = ", with uncommitted changes" if conflict["dirty"] else ""
    since = f" for {span(age)} now," if age >= _MINUTE else ""
    until = clock_time(conflict["expires_at"])
    return f"{who} holds {conflict['held_pattern']},{since} until {until} ({seen}{dirty}){reason}"


def show_refusals(errors: Iterable[Mapping[str, Any]], way: tuple[str, str] = ("", "")) -> None:
    """Print refusals on stderr: what was refused, who is in the way, and what to do.

    `way` is what proposed commands need to mean the same here; see `reservation_calls.way_of`.
    """
    for error in errors:
        conflict = error.get("conflict")
        if conflict is None:
            found = one_line(error["found"]) or "nothing"
            place = found if "[" in error["place"] else shell_words(error["place"])
            click.echo(f"error {error['code']} {place}: {shell_words(error['message'])}", err=True)
            click.echo(f"  found: {found}; expected: {shell_words(error['expected'])}", err=True)
        elif error["code"] == "RSV201":
            click.echo(f"error RSV201 {conflict['pattern']}: {holder_words(conflict)}", err=True)
        else:
            click.echo(f"error {error['code']} {conflict['pattern']}: {one_line(error['message'])}", err=True)
            click.echo(f"  {holder_words(conflict)}", err=True)
        click.echo(f"  fix: {shell_words(error['fix'])}", err=True)
        if "next" in error:
            click.echo(f"  next: {command_of(error['next'], *way)}", err=True)


def shell_words(text: str) -> str:
    """Return advice with commands and options in place of the equivalent tools and arguments."""
    return re.sub(r"[a-z]+(_[a-z]+)+", lambda found: _COMMANDS.get(found[0], found[0]), one_line(text))


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
    for name in ("file", "patterns"):
        value = arguments.pop(name, ())
        words += [shlex.quote(up + one_line(each)) for each in ([value] if isinstance(value, str) else value)]
    if arguments.pop("unread_only", True) is False:
        words.append("--all")
    for name, value in arguments.items():
        option = "--" + name.removesuffix("_seconds").removesuffix("_minutes").removesuffix("_name").replace("_", "-")
        words.append(option if value is True else f"{option} {shlex.quote(one_line(str(value)))}")
    return " ".join(words) + tail


def show_granted(
    leases: Sequence[Mapping[str, Any]], covered: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> None:
    """Print leases of the caller, one a line.

    `covered` has, by the pattern of a lease wider than what was asked for, what that was.
    """
    for lease in leases:
        marks = {"shared": not lease["exclusive"], "no-force": lease["no_force"]}
        marks["claim: reserve it to keep it"] = lease["claim"]
        notes = [one_line(lease["holder"]), *(note for note, holds in marks.items() if holds)]
        names = ", ".join(map(one_line, covered.get(lease["pattern"], ())))
        notes += [f"covers {names}"] if names else []
        until = clock_time(lease["expires_at"])
        click.echo(f"{lease['reservation_id']}  {lease['pattern']}  until {until}  ({'; '.join(notes)})")


def show_conflicts(answer: Mapping[str, Any]) -> None:
    """Print what is held, and what is clear."""
    for conflict in answer["conflicts"]:
        click.echo(f"{conflict['pattern']}: {holder_words(conflict)}")
    for pattern in answer["clear"]:
        click.echo(f"{pattern}: clear")


def show_unsaved(answer: Mapping[str, Any], way: tuple[str, str]) -> None:
    """Print on stderr which unsaved work has changed hands, and the command that helps; see `show_refusals`."""
    work = answer.get("unsaved")
    if work is None:
        return
    click.echo(f"note: {one_line(work['note'])}", err=True)
    call, (up, tail) = work["next"], way
    root = shlex.split(tail)[-1] if tail else ""
    words = (
        review_command(work["patterns"], "" if root else up, root) if "command" in call else command_of(call, up, tail)
    )
    click.echo(f"  next: {words}", err=True)


def show_inbox(answer: Mapping[str, Any], me: str) -> None:
    """Print messages on stdout, and on stderr what timed out and how to read on."""
    for message in answer["messages"]:
        rank = "" if message["importance"] == "normal" else f" [{message['importance']}]"
        topic = f" {one_line(message['topic'])}" if message["topic"] else ""
        head = f"{message['message_id']}  {clock_time(message['sent_at'])}  {one_line(message['from'])}{topic}{rank}"
        click.echo(f"{head}  {message['thread_id']}")
        for part in _body_lines(message["body"]):
            click.echo(f"    {part}")
        if "yours" in message:
            unsaved = (
                ", which has uncommitted changes: `interlock commit` first to keep them"
                if message.get("unsaved")
                else ""
            )
            click.echo(f"    about your: {one_line(message['yours'])}{unsaved}")
        if "settled" in message:
            click.echo(f"    settled meanwhile: {message['settled']}")
        elif message.get("note"):
            click.echo(f"    note: {one_line(message['note'])}")
        elif message["topic"] == "release-request":
            click.echo(f"    answer: interlock respond {message['thread_id']} release   (or: defer --eta MINUTES)")
    for late in answer["negotiation_timeouts"]:
        who = f"{one_line(late['holder'])} did not answer your {late['urgency']} request"
        click.echo(f"timed out: {one_line(late['file'])}: {who} {late['thread_id']}", err=True)
        click.echo(f"  {shell_words(str(late['suggestion']))}", err=True)
        if late.get("code") == "RSV307":
            words = shlex.join((one_line(late["holder"]), f"I need {one_line(late['file'])}."))
            click.echo(f"  next: interlock send {words}", err=True)
    waiting = answer.get("open_requests", ())
    if not answer["messages"] and not answer["negotiation_timeouts"]:
        click.echo(f"no {'new ' if waiting else ''}messages for {one_line(me)}", err=True)
    for row in waiting:
        click.echo(f"{one_line(row['requester'])} still waits for your answer about {one_line(row['file'])}:", err=True)
        click.echo(f"  next: interlock respond {row['thread_id']} release   (or: defer --eta MINUTES)", err=True)
    if answer["next_cursor"] is not None:
        click.echo(f"more: interlock inbox --cursor {answer['next_cursor']}", err=True)


def _body_lines(body: str) -> list[str]:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return [
            local_times(one_line(f"{key}: {part if isinstance(part, str) else json.dumps(part)}"))
            for key, part in fields.items()
            if key not in ("type", "thread_id")
        ]
    return [local_times(one_line(part)) for part in body.splitlines()]


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
    """Print leases, the wait queue and the negotiations; nothing for a part that is empty."""
    if not any(status[part] for part in ("leases", "waiters", "negotiations")):
        click.echo("no reservations here; make one with `interlock reserve PATTERN`", err=True)
    leases, waiters, negotiations = status["leases"], status["waiters"], status["negotiations"]
    more = status.get("more", {})
    for row in status.get("settings", ()):
        click.echo(f"{row['level']} {row['code']} {': '.join(filter(None, (row['field'], row['message'])))}", err=True)
        click.echo(f"  fix: {row['fix']}", err=True)
    if leases:
        rows = [
            (
                _named(row["holder"], me), row["pattern"] + ("" if row["exclusive"] else " (shared)"),
                span(row["expires_in_seconds"]), row["holder_state"], row["reason"], row["reservation_id"],
            )
            for row in leases
        ]  # fmt: skip
        title = _of("Leases", leases, more.get("leases", 0), "newest")
        head = ("holder", "pattern", "ends in", "state", "reason", "id")
        show_table(title, head, rows, cut="reason", spare=("id", "reason"))
        _show_absent(leases)
    if waiters:
        rows = [
            (row["position"], _named(row["agent"], me), ", ".join(row["patterns"]), span(row["waiting_seconds"]))
            for row in waiters
        ]
        title = _of("Waiting", waiters, more.get("waiters", 0), "first")
        show_table(title, ("place", "agent", "waits for", "for"), rows)
    if negotiations:
        rows = [
            (
                _named(row["requester"], me), _named(row["holder"], me), _what(row), row["urgency"],
                row["age_minutes"], state_words(row), row["thread_id"],
            )
            for row in negotiations
        ]  # fmt: skip
        head = ("requester", "holder", "pattern", "urgency", "age (min)", "state", "thread")
        title = _of("Pending Negotiations", negotiations, more.get("negotiations", 0), "newest")
        show_table(title, head, rows, cut="state", spare=("urgency", "age (min)"))
    if disturbed := status.get("disturbed"):
        rows = [
            (row["path"], ", ".join(row["holders"]), ", ".join(row["others"]), row["what"], row["version"])
            for row in disturbed
        ]
        title = _of("Held files that others changed", disturbed, more.get("disturbed", 0), "newest")
        show_table(title, ("file", "holder", "changed by", "what is kept", "version"), rows, cut="what is kept")
        click.echo("interlock recover --show VERSION shows it, --restore VERSION brings it back")


def _show_absent(leases: Sequence[Mapping[str, Any]]) -> None:
    """Say what the states of holders that may be absent mean, and what whoever needs their files does."""
    for state, meaning in _ABSENT.items():
        patterns = [row["pattern"] for row in leases if row["holder_state"] == state]
        if patterns:
            click.echo(f"{state}: {meaning}")
            click.echo(f"  fix: interlock reserve {shlex.quote(patterns[0])}   (or wait until the reservation ends)")


def _of(title: str, rows: Sequence[object], more: int, which: str) -> str:
    """Return a title, with how many rows there are when not all are shown."""
    return f"{title} (the {which} {len(rows)} of {len(rows) + more})" if more else title


def _what(row: Mapping[str, Any]) -> str:
    """Return what a negotiation is about: the pattern that is held, and the file when it is another."""
    return row["pattern"] if row["file"] == row["pattern"] else f"{row['file']} of {row['pattern']}"


def state_words(row: Mapping[str, Any]) -> str:
    """Return the state of a negotiation: a deferral with its ETA, one that is over marked as resolved."""
    state = str(row["state"])
    if state == "deferred":
        return f"deferred, ETA {row['eta_minutes']} min"
    if state == "pending":
        return "pending, overdue" if row["expired"] else "pending"
    return _RESOLVED.get(state, state)
