"""`interlock hook pre-edit`: an edit touches no path that another agent holds, and reserves its file.

Before a shell command the git guard is asked, since a shell bypasses editing tools.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from interlock.reservations import place, shared_files
from interlock.reservations.answers import Conflict, Refusal, ReserveAnswer
from interlock.reservations.hooks import client_hook, client_input, edit_results, release_requests
from interlock.reservations.hooks.client_input import Call
from interlock.reservations.leases import calls, commit_lock, grant_log, hook_state
from interlock.reservations.leases.grant_log import Missed
from interlock.reservations.leases.runtime import Context
from interlock.reservations.leases.views import lasting
from interlock.reservations.patterns import covers, quote
from interlock.reservations.place import Place
from interlock.reservations.rules import RULES, shown
from interlock.reservations.ticket_files import is_ticket_file
from interlock.reservations.versions import watch
from interlock.reservations.versions.store import OverBoundError, owner_of_stash
from interlock.reservations.versions.store import path_of as versions_of

REFUSED: Final = 2
"""The status that stops the tool call; clients let it through on every other."""
MAX_SHOWN: Final = 5
"""At most this many files of one edit are spelled out; the others are counted."""
_ASKS: Final = re.compile(r"\s*interlock [^;&|`$<>\n]*")
"""A command line that asks or releases by a command of ours, and does nothing else."""
WAIT_SECONDS: Final = 45
"""What is suggested to an agent that would rather wait: clients give up on a call after about a minute."""


def run(argv: Sequence[str], data: bytes, env: Mapping[str, str]) -> int:
    """Return 0 when the tool may go on, or 2 with the reason on standard error; without a word when all is well.

    What cannot be known is refused: input that is not understood, a store that cannot be read.
    """
    client = client_input.client_of(argv)
    call = client_input.read(data)
    paths = client_input.written(call)
    for command in client_input.commands(call):
        if status := _guarded(command, call, env, client):
            return status
    here = place.find(call.cwd)
    if not paths and client_input.is_read(call):
        return 0
    if not paths:
        notices = _begun(here, client_hook.opened_if_used(here, call, env, client), call, ())
        client_hook.answer(call, "PreToolUse", "\n".join(notices))
        return 0
    projects: dict[Place, list[str]] = {}
    for found, names in client_hook.located(here, call.cwd, paths).items():
        # No lease blocks the copies that agents keep of their tickets, and none is made for them.
        if edited := [name for name in names if not is_ticket_file(found.root, name)]:
            projects[found] = edited
    if not projects:
        return 0
    if reason := _out_of_bounds(here, projects, call, paths):
        return _stopped(reason)
    mode = release_requests.mode_of(env)
    tries: list[_Try] = []
    for found, names in projects.items():
        ctx = client_hook.opened(found, call, env, client)
        tries.append(_edit(ctx, call, names, mode))
        if tries[-1].answer["errors"]:
            return _refused(here, tries)
    if any(row.stale for row in tries):
        return _outdated(here, tries)
    context = [_named(here, row, part) for row in tries for part in (_takeovers(row.answer), row.context) if part]
    places = tuple(os.path.join(found.root, name) for found, names in projects.items() for name in names)
    looks = {versions_of(found): (found, row.ctx) for found, row in zip(projects, tries, strict=True)}
    for found, ctx in looks.values():
        context += _begun(found, ctx, call, places)
    client_hook.answer(call, "PreToolUse", "\n".join(context))
    return 0


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


def _begun(found: Place, ctx: Context | None, call: Call, paths: tuple[str, ...]) -> list[str]:
    """Look at all held files, and enter the call as one that is about to begin; return what the agent is told."""
    if ctx is None:
        return []
    results = edit_results.results_of(call) if paths else None
    texts = (call.tool, *client_input.commands(call))
    speaks = any(name in text for text in texts for name in ("interlock", "git"))
    began = watch.Began(call.session_id, call.tool_use_id, call.tool, paths, speaks, results)
    try:
        return [f"Interlock: {line}" for line in watch.look_now(ctx, found, began)]
    except OverBoundError:
        if all(_ASKS.fullmatch(text) for text in texts[1:]) and (texts[1:] or "interlock" in call.tool):
            return []  # to ask for what cannot be kept has to be possible
        raise


class _Try(NamedTuple):
    """What came of an edit in one project: what was newly granted, what waits for the agent, what to read again."""

    ctx: Context
    answer: ReserveAnswer
    granted: list[str]
    context: str
    stale: list[tuple[str, Missed]]


def _edit(ctx: Context, call: Call, names: list[str], mode: release_requests.Mode) -> _Try:
    waiting = release_requests.look(ctx)
    wanted = [quote(name) + "/**" * os.path.isdir(os.path.join(ctx.caller.root, name)) for name in names]
    context = release_requests.handle(ctx, waiting, mode, wanted)
    missed = _missed(ctx, names)
    known = any(covers(own, pattern) for own in waiting.own for pattern in wanted)
    reason = "" if known else f"edits it with {shown(call.tool)}"
    answer = calls.reserve(ctx, wanted, reason=reason)
    granted = [row["reservation_id"] for row in answer["reservations"] if row["pattern"] not in waiting.own]
    stale: list[tuple[str, Missed]] = []
    if not answer["errors"]:
        with calls.entered(ctx) as entry:
            stale = [row for row in missed if hook_state.once(entry, f"missed {row[0]} {row[1].begun}")]
            if not stale:
                hook_state.note_edits(entry, ctx.caller.root, names)
            if began := hook_state.strayed(entry, ctx.caller.root):
                context += (
                    f"\nInterlock: your session began in {shown(began)}, and this edit is in {shown(ctx.caller.root)}, "
                    "another checkout of the repository. If that is not meant, undo it and edit the file there."
                )
    return _Try(ctx, answer, granted, context, stale)


def _missed(ctx: Context, names: Sequence[str]) -> list[tuple[str, Missed]]:
    """Return the files that changed while others held them, since the agent did and before it got them again."""
    with calls.seen(ctx) as entry:
        rows = [(name, row) for name in names if (row := grant_log.missed(entry, quote(name))) is not None]
    changed = {name: hook_state.time_of(os.path.join(ctx.caller.root, name)) for name, _ in rows}
    since = [(name, row) for name, row in rows if row.begun - hook_state.GRAIN_SECONDS <= changed[name]]
    return [(name, row) for name, row in since if row.back is None or changed[name] < row.back]


def _refused(here: place.Place, tries: Sequence[_Try]) -> int:
    """Print why the edit may not go on, and release what was granted for it in other projects."""
    for row in tries[:-1]:
        if row.granted:
            calls.release(row.ctx, row.granted, report_unsaved=False)
    last = tries[-1]
    folder = "" if last.ctx.caller.root == here.root else last.ctx.caller.root
    errors = last.answer["errors"]
    lines = [line for refusal in errors[:MAX_SHOWN] for line in _explained(refusal, folder)]
    lines += [f"interlock: {len(errors) - MAX_SHOWN} more files of this edit."] if len(errors) > MAX_SHOWN else []
    lines += [_named(here, row, row.context) for row in tries if row.context]
    return _stopped(lines)


def _stopped(lines: Sequence[str]) -> int:
    sys.stderr.write("\n".join(lines) + "\n")
    return REFUSED


def _outdated(here: place.Place, tries: Sequence[_Try]) -> int:
    """Print what the agent has not read yet. The files stay reserved for it, and the same edit passes the next time."""
    lines: list[str] = []
    for row in tries:
        for name, missed in row.stale[:MAX_SHOWN]:
            file = shown(name if row.ctx.caller.root == here.root else os.path.join(row.ctx.caller.root, name))
            others = ", ".join(shown(other) for other in missed.others[:MAX_SHOWN])
            lines.append(f"interlock RSV211: `{file}` changed while {others} held it, after you did.")
    lines += [f"interlock RSV211: {more} more files." for row in tries if (more := len(row.stale) - MAX_SHOWN) > 0]
    fix = "read it again (`git log -p` and `git diff` show the changes), then edit; it is reserved for you."
    lines += [f"  expected: {RULES['RSV211']}", f"  fix: {fix}"]
    lines += [_named(here, row, part) for row in tries for part in (_takeovers(row.answer), row.context) if part]
    return _stopped(lines)


def _named(here: place.Place, row: _Try, text: str) -> str:
    """Return what is said about a project; of another one than the agent works in, with its folder."""
    root = row.ctx.caller.root
    return text if root == here.root else f"In {shown(root)}, where `interlock inbox` reads its messages:\n{text}"


def _guarded(command: str, call: Call, env: Mapping[str, str], client: str) -> int:
    from interlock.reservations.guard.check import check_command  # noqa: PLC0415 - editing tools do not need them

    found = place.find(call.cwd)
    opened = client_hook.opened(found, call, env, client) if os.path.lexists(found.store_path) else None
    known = {} if opened is None else {found.store_path: opened}
    named = {**env, **client_hook.identified(env, call, client)}
    reason = check_command(command, call.cwd, named, known, partial(owner_of_stash, found))
    return 0 if reason is None else _stopped([reason.rstrip()])


def _explained(refusal: Refusal, folder: str) -> list[str]:
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


def _calls(refusal: Refusal, folder: str) -> list[str]:
    conflict, call = refusal.get("conflict"), refusal.get("next")
    if conflict is None:
        return [] if call is None else [f"{call['tool']}(…)"]
    file = shown(conflict["pattern"])
    ask = f'negotiate_release(file="{file}", reason="…")'
    wait = f'reserve_files(patterns=["{file}"], reason="…", wait_seconds={WAIT_SECONDS})'
    if folder:
        there = f"cd '{shown(folder)}' && interlock"
        ask = f"{there} negotiate '{file}' --reason '…'"
        wait = f"{there} reserve '{file}' --wait {WAIT_SECONDS} --reason '…'"
    return [ask, wait] if conflict["reservation_id"] else [wait]


def _holder(conflict: Conflict) -> list[str]:
    """Return which file is meant, and the lease on it: why, since when and until when."""
    rows = [
        f"place: {shown(conflict['pattern'])}",
        f"reason: {shown(conflict['reason']) or 'none given'}",
        f"lease: {shown(conflict['held_pattern'])}, {lasting(conflict)} ({conflict['expires_at']})",
    ]
    if conflict["dirty"] is not None:
        rows.append(f"changes: {'uncommitted ones' if conflict['dirty'] else 'none that are uncommitted'}")
    return rows


def _takeovers(answer: ReserveAnswer) -> str:
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
