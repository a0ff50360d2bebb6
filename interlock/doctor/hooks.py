"""Checks of the entry points: the hooks of each client and of git, the entries of the server."""

import os
import shlex
from pathlib import Path
from typing import Final

from interlock.core.text import count
from interlock.doctor.installed import TITLES, Hooks, find_plugin, hooks_of, missing_program, names_recorded, servers
from interlock.doctor.report import Report, Scene, fail, good, warn
from interlock.install import githooks
from interlock.install.clients import EVENTS
from interlock.reservations import GIT_HOOKS

AGAIN: Final = "Run `interlock init{}`."
RENEW: Final = "Uninstall and install again: interlock uninstall && interlock init"


def client_hooks(client: str, scene: Scene) -> Report:
    """Check that a client calls our hooks, and that their programs can be found."""
    found = hooks_of(scene.root, client)
    title = TITLES[client]
    again = AGAIN.format("" if client == "claude" else f" --client {client}")
    if found.problems:
        return fail(f"its settings cannot be read: {found.problems[0]}", "Fix that file.")
    if found.recorded and not found.handlers:
        return fail(f"init wrote hooks for {title}, and they are gone", again)
    # Hooks that are switched off look installed in every other way.
    if found.handlers and found.off:
        return fail(f"{title} runs no hooks: {found.off} switches them off", f"Switch them on in {found.off}.")
    if found.handlers:
        return _installed(found, scene, again)
    if client == "claude" and (plugin := find_plugin(scene.root)):
        return good(f"the plugin {plugin} brings them; --prove does not try those")
    return good(f"not installed; `interlock init --client {client}` does it")


def _installed(found: Hooks, scene: Scene, again: str) -> Report:
    """Check that hooks of ours can be started, and are called as init would have them called."""
    for row in found.handlers:
        if word := missing_program(row.command, scene.root, scene.env):
            fix = f"Install it there, or take the hooks of Interlock out of {row.path} and: {again}"
            return fail(f"{row.path}: {row.event} starts {word}, which is not there", fix)
    before, *_ = EVENTS[found.client]
    # Without the hook before an edit nothing is refused at all; without another one less is put right.
    if before.name not in {row.event for row in found.handlers}:
        return fail(f"no hook before an edit ({before.name})", again)
    # The command may be another installation's, but a narrower matcher or a missing `onFailure` lets edits pass.
    written = {(row.event, row.matcher, row.blocks) for row in found.handlers}
    other = [
        event.name
        for event in EVENTS[found.client]
        if (event.name, event.matcher, ("onFailure", "block") in event.more) not in written
    ]
    if other:
        fix = f"interlock uninstall --client {found.client} && interlock init --client {found.client}"
        return warn(f"not as init writes them: {', '.join(other)}", fix)
    files = list(dict.fromkeys(row.path for row in found.handlers))
    return good(f"{count(found.handlers, 'hook')} in {', '.join(files)}")


def git_hooks(scene: Scene) -> Report:
    """Check that git runs our hooks, in the folder that it uses."""
    place = githooks.find(scene.root)
    if place is None:
        return good("no git repository")
    states = {name: hook_state(place.folder / name) for name in GIT_HOOKS}
    is_own = "git" in names_recorded(scene.root)
    if not is_own and all(state == "absent" for state in states.values()):
        return warn("git's hooks are not installed: any commit passes", AGAIN.format(""))
    for name, state in states.items():
        path = place.folder / name
        # An uninstall here does not touch a hook that another checkout's init wrote.
        fix = RENEW if is_own or state == "absent" else f"To renew it, {githooks.renew(path)}."
        if state:
            return fail(f"{path}: {state}", fix)
        if not githooks.is_current(path, name):
            return warn(f"{path} is not what init writes today", fix)
    return good(f"{', '.join(GIT_HOOKS)} in {place.folder}")


def hook_state(path: Path) -> str:
    """Return what keeps git from running our hook at a path: `absent`, another reason, or nothing."""
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        return str(error)
    command = githooks.command_of(text)
    if not command:
        return "a hook without a call of Interlock"
    if not os.access(path, os.X_OK):
        return "not executable, so git does not run it"
    # Git starts a hook with an environment of its own, so init has written the whole path.
    word = shlex.split(command)[0]
    return "" if os.access(word, os.X_OK) else f"it starts {word}, which is not there"


def server(scene: Scene) -> Report:
    """Check that a client starts our server, and that its program can be found."""
    rows = servers(scene.root)
    if not rows and (plugin := find_plugin(scene.root)):
        return good(f"the plugin {plugin} starts it")
    if not rows:
        return warn("no client of this project starts the server", AGAIN.format(""))
    for row in rows:
        again = AGAIN.format(f" --client {row.client}")
        if not row.words:
            return fail(f"{row.path}: init wrote the entry, and it is gone", again)
        word = missing_program(shlex.join(row.words), scene.root, {**scene.env, **row.env})
        if word:
            fix = f"Install it there, or take the entry out and: {again}"
            return fail(f"{row.path} starts {word}, which is not there", fix)
    return good(", ".join(row.path for row in rows))


def is_git_entry_point(folder: Path, root: Path, name: str) -> bool:
    """Return whether one of git's hooks is ours, or was and is gone."""
    state = hook_state(folder / name)
    return "git" in names_recorded(root) or state not in {"absent", "a hook without a call of Interlock"}
