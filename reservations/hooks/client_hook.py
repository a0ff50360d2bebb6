"""What the clients' hooks have in common: opening the project in the agent's name, and answering the client."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from functools import partial

from interlock.reservations import identity, place, process, settings
from interlock.reservations.hooks.client_input import Call
from interlock.reservations.leases import subagents
from interlock.reservations.leases.runtime import Caller, Context, Runtime
from interlock.reservations.store.choice import store_at


def opened(found: place.Place, call: Call, env: Mapping[str, str], client: str) -> Context:
    """Return the runtime of a project and the agent whose client called."""
    store = store_at(found)
    runtime = Runtime(
        store,
        settings.read(found.root),
        is_running=process.is_running,
        dirty=unsaved,
        changed_here=partial(unsaved, seconds=0.0),
        is_folder=place.is_folder,
    )
    known = identity.who(env, store, call.session_id, client, via="hook")
    name = subagents.name_of(known.name, call.agent_id)
    via = subagents.CLIENT if call.agent_id else "hook"
    return Context(runtime, Caller(name, known.kind, found.root, via, process.host(), known.pid, known.started))


def opened_if_used(found: place.Place, call: Call, env: Mapping[str, str], client: str) -> Context | None:
    """Return the same; None where nothing was ever reserved, so that nobody can lose anything."""
    from interlock.reservations.versions import watch  # noqa: PLC0415 - not for a quick yes

    return opened(found, call, env, client) if watch.is_watched(found) else None


def unsaved(root: str, patterns: tuple[str, ...], seconds: float | None = None) -> Mapping[str, bool | None]:
    """Return whether each pattern covers uncommitted changes, in whatever checkout; see `checkouts.unsaved`."""
    from interlock.reservations.git.checkouts import unsaved as look  # noqa: PLC0415 - only when somebody wants a file

    return look(root, patterns, seconds)


def identified(env: Mapping[str, str], call: Call, client: str) -> dict[str, str]:
    """Return the variables that let a program know the agent by its name; none when only the store knows it."""
    name = identity.stated_name(env, call.session_id, client) if call.session_id else ""
    name = subagents.name_of(name, call.agent_id) if name else ""
    return {identity.NAMES[0]: name, identity.EXPORTED: ""} if name else {}


def located(here: place.Place, cwd: str, paths: Iterable[str]) -> dict[place.Place, list[str]]:
    """Return the projects that may have leases on some files, each with the files' paths from its root.

    A path counts where its symbolic links lead, and as the link that it is itself. In another worktree it counts from
    the root of that one, where its files are, though they share their leases. One that is in no project is left out.
    """
    rows: dict[place.Place, dict[str, None]] = {}
    for path in paths:
        spelled = os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))
        for text in reversed(place.links(spelled)):
            for found in place.around(text, here):
                if place.inside(found.root, text) and text != found.root:
                    rows.setdefault(found, {})[os.path.relpath(text, found.root)] = None
    return {project: [*names] for project, names in rows.items()}


def answer(call: Call, default_event: str, context: str) -> None:
    """Give the agent some context, in the form that the clients read; nothing when there is none."""
    if not context:
        return
    output = {"hookEventName": call.event or default_event, "additionalContext": context}
    sys.stdout.write(json.dumps({"hookSpecificOutput": output}) + "\n")
