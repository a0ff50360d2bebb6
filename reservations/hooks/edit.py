"""The part of `interlock hook pre-edit` that is about files: each is free of others, and reserved."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from interlock.core.patterns import covers, quote
from interlock.core.record import Record
from interlock.reservations import shared_files
from interlock.reservations.hooks import client_hook, release_requests
from interlock.reservations.hooks.client_input import Call
from interlock.reservations.leases import arguments, calls, commit_lock, marks
from interlock.reservations.leases.arguments import Asked
from interlock.reservations.leases.runtime import Context
from interlock.reservations.leases.views import lasting
from interlock.reservations.place import Place
from interlock.reservations.rules import RULES, shown
from interlock.reservations.shared_files import is_ticket_file
from interlock.reservations.store.records import replace
from interlock.reservations.versions.store import path_of as versions_of

if TYPE_CHECKING:
    from interlock.reservations.answers import Conflict, Refusal, ReserveAnswer

MAX_SHOWN: Final = 5
"""At most this many files of one edit are spelled out; the others are counted."""
WAIT_SECONDS: Final = 45
"""What is suggested to an agent that would rather wait: clients give up on a call after about a minute."""


class Edit(Record):
    """What came of an edit.

    Args:
        refusal: Why it may not go on, as lines; empty when it may.
        context: What the agent is told.
        places: The files, absolute.
        looks: Of each store of versions one project, in which the held files are looked at now.
    """

    refusal: list[str]
    context: list[str]
    places: tuple[str, ...] = ()
    looks: Sequence[tuple[Place, Context]] = ()


def reserve_files(here: Place, call: Call, paths: Sequence[str], env: Mapping[str, str], client: str) -> Edit:
    """Reserve the files that an editing tool is about to write, in each project that may have leases on them."""
    projects: dict[Place, list[str]] = {}
    for found, names in client_hook.located(here, call.cwd, paths).items():
        # No lease blocks the copies that agents keep of their tickets, and none is made for them.
        if edited := [name for name in names if not is_ticket_file(found.root, name)]:
            projects[found] = edited
    if not projects:
        return Edit([], [])
    if reason := _out_of_bounds(here, projects, call, paths):
        return Edit(reason, [])
    mode = release_requests.mode_of(env)
    tries: list[_Try] = []
    for found, names in projects.items():
        ctx = client_hook.opened(found, call, env, client)
        tries.append(_edit(ctx, call, names, mode))
        if tries[-1].answer["errors"]:
            return Edit(_refused(here, tries), [])
    context = [_named(here, row, part) for row in tries for part in (_takeovers(row.answer), row.context) if part]
    places = tuple(os.path.join(found.root, name) for found, names in projects.items() for name in names)
    looks = {versions_of(found): (found, row.ctx) for found, row in zip(projects, tries, strict=True)}
    return Edit([], context, places, [*looks.values()])


def _out_of_bounds(here: Place, projects: Mapping[Place, list[str]], call: Call, paths: Sequence[str]) -> list[str]:
    """Return why these files are not edited at all, or not now; nothing when they may be."""
    if shared := shared_files.named((here, *projects), call.cwd, paths):
        return [
            f"interlock RSV213: `{shown(shared)}` belongs to git, or to Interlock, and with it to all agents here.",
            f"  expected: {RULES['RSV213']}",
            "  fix: use git's own commands (`git config NAME VALUE`), or leave it to a person.",
        ]
    if committing := commit_lock.outlasted(projects):
        return [
            f"interlock RSV212: `interlock commit` of {shown(committing)} is at work in this checkout.",
            f"  place: {shown(paths[0])}",
            f"  expected: {RULES['RSV212']}",
            "  fix: wait some seconds, read the file again, then make the same edit.",
        ]
    return []


class _Try(Record):
    """What came of an edit in one project: what was newly granted, what the agent is told."""

    ctx: Context
    answer: "ReserveAnswer"
    granted: list[str]
    context: str = ""


def _edit(ctx: Context, call: Call, names: list[str], mode: release_requests.Mode) -> _Try:
    """Reserve the files of an edit, and note that it may be made; all of it in one transaction of the store."""
    root = ctx.caller.root
    wanted = [quote(name) + "/**" * os.path.isdir(os.path.join(root, name)) for name in names]
    asked = arguments.read_reserve(ctx, wanted, f"edits it with {shown(call.tool)}")
    if not isinstance(asked, Asked):
        return _Try(ctx, {"reservations": [], "errors": asked}, [])
    context = [release_requests.hand_over(ctx, wanted)] if mode == "clean" else []

    began = ""
    with calls.entered(ctx) as entry:
        waiting = release_requests.look(entry)
        is_known = any(covers(own, pattern) for own in waiting.own for pattern in wanted)
        reason = "" if is_known else asked.wanted.reason
        tried = calls.attempt(entry, replace(asked, wanted=replace(asked.wanted, reason=reason)))
        if not tried.answer["errors"]:
            marks.note_edits(entry, root, names)
            began = marks.strayed(entry, root)
    answer = calls.reported(ctx, tried)
    granted = [row["reservation_id"] for row in answer["reservations"] if row["pattern"] not in waiting.own]
    context.append(release_requests.message(waiting, mode))
    if began:
        context.append(
            f"Interlock: your session began in {shown(began)}, and this edit is in {shown(root)}, "
            "another checkout of the repository. If that is not meant, undo it and edit the file there."
        )
    return _Try(ctx, answer, granted, "\n".join(filter(None, context)))


def _refused(here: Place, tries: Sequence[_Try]) -> list[str]:
    """Return why the edit may not go on, and release what was granted for it in other projects."""
    for row in tries[:-1]:
        if row.granted:
            calls.release(row.ctx, row.granted, report_unsaved=False)
    last = tries[-1]
    folder = "" if last.ctx.caller.root == here.root else last.ctx.caller.root
    errors = last.answer["errors"]
    lines = [line for refusal in errors[:MAX_SHOWN] for line in _explained(refusal, folder)]
    lines += [f"interlock: {len(errors) - MAX_SHOWN} more files of this edit."] if len(errors) > MAX_SHOWN else []
    lines += [_named(here, row, row.context) for row in tries if row.context]
    return lines


def _named(here: Place, row: _Try, text: str) -> str:
    """Return what is said about a project; of another one than the agent works in, with its folder."""
    root = row.ctx.caller.root
    return text if root == here.root else f"In {shown(root)}, where `interlock inbox` reads its messages:\n{text}"


def _explained(refusal: "Refusal", folder: str) -> list[str]:
    """Return a refusal as lines: the rule, who is in the way and whether it still works, and the calls that help.

    The folder is a project other than the one that the agent works in; its tools cannot speak for that.
    """
    lines = [f"interlock {refusal['code']}: {shown(refusal['message'])}"]
    if conflict := refusal.get("conflict"):
        lines += [f"  {line}" for line in _holder(conflict)]
    else:
        lines.append(f"  found: {shown(refusal['found'])}")
    lines += [f"  expected: {RULES[refusal['code']]}", f"  fix: {refusal['fix']}"]
    return [*lines, *(f"  call: {call}" for call in _calls(refusal, folder))]


def _calls(refusal: "Refusal", folder: str) -> list[str]:
    conflict, call = refusal.get("conflict"), refusal.get("next")
    if conflict is None:
        return [] if call is None else [f"{call['tool']}(…)"]
    file = shown(conflict["pattern"])
    ask = f'negotiate_release(file="{file}", reason="…"), in a shell `interlock negotiate \'{file}\' --reason WHY`'
    wait = f'reserve_files(patterns=["{file}"], reason="…", wait_seconds={WAIT_SECONDS})'
    if folder:
        there = f"cd '{shown(folder)}' && interlock"
        ask = f"{there} negotiate '{file}' --reason '…'"
        wait = f"{there} reserve '{file}' --wait {WAIT_SECONDS} --reason '…'"
    return [ask, wait] if conflict["reservation_id"] else [wait]


def _holder(conflict: "Conflict") -> list[str]:
    """Return which file is meant, and the lease on it: why, since when and until when."""
    rows = [
        f"place: {shown(conflict['pattern'])}",
        f"reason: {shown(conflict['reason']) or 'none given'}",
        f"lease: {shown(conflict['held_pattern'])}, {lasting(conflict)} ({conflict['expires_at']})",
    ]
    if conflict["dirty"] is not None:
        rows.append(f"changes: {'uncommitted ones' if conflict['dirty'] else 'none that are uncommitted'}")
    return rows


def _takeovers(answer: "ReserveAnswer") -> str:
    """Return what was taken over from the dead, and what of others is unsaved in the files, as far as git knows."""
    look = (
        ""
        if "unsaved" in answer
        else " Its uncommitted changes may be in the file: look at `git diff` before you edit."
    )
    lines = [
        f"Interlock: you took over {shown(row['pattern'])} from {shown(row['holder'])} ({row['holder_state']}).{look}"
        for row in answer.get("taken_over", [])
    ]
    if "unsaved" in answer:
        unsaved = answer["unsaved"]
        lines += [f"Interlock: {unsaved['note']}", f"  call: {unsaved['next']['command']}"]
    return "\n".join(lines)
