"""Checks of the entry points: the hooks of each client and of git, the entries of the server."""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from interlock.core.text import count
from interlock.doctor.installed import BEFORE, FIX, TITLES, TOOLS, hooks_of, missing_program, names_recorded, servers
from interlock.doctor.report import Check, Report, Scene, fail, good, warn
from interlock.install import find_launch, githooks
from interlock.install.hooks import HOOKS
from interlock.install.record import recorded
from interlock.reservations import GIT_HOOKS

BLOCKS_SINCE: Final = (2, 1, 295)
"""The first Claude Code that refuses a call when a hook cannot be run and has `onFailure`."""

QUICK_SECONDS: Final = 0.1
"""A hook runs before every edit; from here on an agent notices."""
SLOW_SECONDS: Final = 5.0
TRIES: Final = 5
SET_ASIDE: Final = (".pre-commit-config.y*ml", ".lintstagedrc*", "lint-staged.config.*")
"""The files of programs that save and remove unstaged changes while their checks run."""
AGAIN: Final = "Run `interlock init{}`."


def client_hooks(client: str, scene: Scene) -> Report:
    """Check that a client calls our hooks, and that their programs can be found."""
    found = hooks_of(scene.root, client)
    title = TITLES[client]
    again = AGAIN.format("" if client == "claude" else f" --client {client}")
    if found.problems:
        return fail(f"its settings cannot be read: {found.problems[0]}", "Fix that file.")
    if found.plugin is not None and not found.of_plugin:
        return fail(f"{title} has the {found.plugin.path}, and its hooks are not found", FIX.format(found.plugin.id))
    if found.recorded and not found.of_settings:
        return fail(f"init wrote hooks for {title}, and they are gone", again)
    if not found.handlers:
        main = _main_worktree(scene)
        if main is not None and hooks_of(main, client).of_settings:
            path = hooks_of(main, client).of_settings[0].path
            fix = f"Commit {path} there and bring the commit here, or run init here: {again}"
            return fail(
                f"the main worktree has hooks for {title}, and this one has none: its edits are not guarded", fix
            )
        return good(f"not installed; `interlock init --client {client}` does it")
    if found.off:
        return fail(f"{title} runs no hooks: {found.off} switches them off", f"Switch them on in {found.off}.")
    missing = [(row, word) for row in found.handlers if (word := missing_program(row.command, scene.root, scene.env))]
    if missing:
        row, word = missing[0]
        return fail(f"{row.path}: {row.event} starts {word}, which is not there", f"Install it there, or: {again}")
    wanted = next(row for row in HOOKS if row.client == client)
    events = set(wanted.entry(find_launch()))
    absent = sorted(events - {row.event for row in found.handlers})
    if BEFORE[client] in absent:
        return fail(f"no hook before an edit ({BEFORE[client]})", again)
    if absent:
        return warn(f"no hook for {', '.join(absent)}", again)
    files = list(dict.fromkeys(row.path for row in found.handlers))
    before = [row for row in found.handlers if row.event == BEFORE[client]]
    missed = [tool for tool in TOOLS[client] if not any(row.matches(tool) for row in before)]
    if missed:
        fix = f"Take the group of {BEFORE[client]} out of {before[0].path}, then: {again}"
        return warn(f"the matcher is not the one that init writes: nobody asks before {', '.join(missed)}", fix)
    if len({row.command for row in before}) > 1:
        fix = f"Take them out of one: {' or '.join(files)}."
        fix = f"The plugin is enough: interlock uninstall --client {client}" if found.plugin else fix
        return warn(f"every hook is called twice: {' and '.join(files)} have them", fix)
    return good(f"{count(found.handlers, 'hook')} in {', '.join(files)}")


def _main_worktree(scene: Scene) -> Path | None:
    common = Path(scene.place.common)
    main = common.parent
    return main if common.name == ".git" and main != Path(scene.place.root) else None


def failing(scene: Scene) -> Report:
    """Check that Claude Code refuses an edit when the hook itself cannot be run."""
    rows = [row for row in hooks_of(scene.root, "claude").handlers if row.event == BEFORE["claude"]]
    if not rows:
        return good("no hooks of Claude Code")
    if not all(row.blocks for row in rows):
        fix = 'Put `"onFailure": "block"` beside the command, or: interlock uninstall --client claude && interlock init'
        return warn("an edit passes when the hook cannot be run", fix)
    program = shutil.which("claude", path=scene.env.get("PATH", os.defpath))
    if program is None:
        return good("onFailure is block; claude is not on PATH, so its version is not known")
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=SLOW_SECONDS * 4, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return warn(f"{program} --version: {error}", "Check that claude starts.")
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    if numbers is None:
        return warn(f"{program} --version says no version", "Check that claude starts.")
    version = tuple(map(int, numbers.groups()))
    if version < BLOCKS_SINCE:
        known = ".".join(map(str, BLOCKS_SINCE))
        return warn(
            f"Claude Code {numbers[0]} lets an edit pass when the hook cannot be run", f"Upgrade it to {known}."
        )
    return good(f"Claude Code {numbers[0]} blocks")


def git_hooks(scene: Scene) -> Report:
    """Check that git runs our hooks: in the folder that it uses, executable, with a program that is there."""
    place = githooks.find(scene.root)
    if place is None:
        return good("no git repository")
    known = names_recorded(scene.root)
    states = {name: hook_state(place.folder / name) for name in GIT_HOOKS}
    if all(state == "absent" for state in states.values()) and not known & {f"{githooks.PREFIX}{n}" for n in GIT_HOOKS}:
        return warn("git's hooks are not installed: any commit passes", AGAIN.format(""))
    elsewhere = _shadowed(scene.root, place)
    bad = [f"{name}: {state}" for name, state in states.items() if state]
    if bad and elsewhere:
        fix = f"Unset it (`git config --unset core.hooksPath`), or install there: {AGAIN.format('')}"
        return fail(f"core.hooksPath is {place.configured}, and the hooks that init wrote are in {elsewhere}", fix)
    if bad:
        return fail(f"{place.folder}/{bad[0]}", "Uninstall and install again: interlock uninstall && interlock init")
    old = [name for name in GIT_HOOKS if not githooks.is_current(place.folder / name, name)]
    if old:
        fix = "Uninstall and install again: interlock uninstall && interlock init"
        return warn(f"{place.folder}/{old[0]} is not what init writes today", fix)
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
    word = shlex.split(command)[0]
    return "" if os.access(word, os.X_OK) else f"it starts {word}, which is not there"


def chained(scene: Scene) -> Report:
    """Check that the hooks that were there before init can be called."""
    place = githooks.find(scene.root)
    kept = [] if place is None else sorted(place.folder.glob(f"*{githooks.KEPT_SUFFIX}"))
    known = {row["path"] for row in recorded(scene.root) if row["name"].endswith(githooks.KEPT_SUFFIX)}
    gone = [name for name in sorted(known) if not os.path.lexists(scene.root / name)]
    if gone:
        fix = "Uninstall and install again: interlock uninstall && interlock init"
        return fail(f"{gone[0]} is gone, so every commit is refused", fix)
    dull = [path for path in kept if not os.access(path, os.X_OK)]
    if dull:
        return warn(f"{dull[0].name} is not executable: git did not run it, and nobody does", f"chmod +x {dull[0]}")
    return good(f"{', '.join(path.name for path in kept)} called first" if kept else "there was no hook before")


def set_aside(scene: Scene) -> Report:
    """Check whether a hook of the project takes unstaged work off the disk during a commit, that of others included."""
    found = [path.name for name in SET_ASIDE for path in sorted(scene.root.glob(name))]
    with suppress(OSError, ValueError, RecursionError):
        data: object = json.loads((scene.root / "package.json").read_bytes())
        found += ["package.json"] if isinstance(data, dict) and "lint-staged" in data else []
    if not found:
        return good("no hook is known that does")
    fix = "Run these checks in CI or by hand; or give each agent a worktree of its own: git worktree add"
    return warn(f"the hook of {found[0]} sets unstaged work of others aside, and may lose what they write then", fix)


def server(scene: Scene) -> Report:
    """Check that a client starts our server, and that its program can be found."""
    rows = servers(scene.root)
    if not rows:
        return warn("no client of this project starts the server", AGAIN.format(""))
    for row in rows:
        if not row.words:
            return fail(f"{row.path}: init wrote the entry, and it is gone", AGAIN.format(f" --client {row.client}"))
        word = missing_program(shlex.join(row.words), scene.root, {**scene.env, **row.env})
        if word:
            fix = f"Install it there, or take the entry out and: {AGAIN.format(f' --client {row.client}')}"
            return fail(f"{row.path} starts {word}, which is not there", fix)
    files = [row.path for row in rows if row.client == "claude"]
    if len(files) > 1:
        fix = "The plugin is enough: interlock uninstall --client claude"
        return warn(f"Claude Code starts the server twice: {' and '.join(files)} have it", fix)
    return good(", ".join(row.path for row in rows))


def latency(scene: Scene) -> Report:
    """Measure the hook that runs before each edit, as a client calls it, with a call that concerns nobody."""
    hooks = (row for client in BEFORE for row in hooks_of(scene.root, client).handlers if row.event == BEFORE[client])
    row = next(hooks, None)
    line = shlex.join((*githooks.program()[0], "hook", "pre-edit")) if row is None else row.command
    data = b'{"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {}}'
    times: list[float] = []
    for _ in range(TRIES):
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", line], input=data, capture_output=True, cwd=scene.root, env=dict(scene.env),
                timeout=SLOW_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return fail(f"`{line}` does not end within {SLOW_SECONDS:g} s", "Run it by hand with INTERLOCK_DEBUG=1.")
        times.append(time.perf_counter() - begun)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            fix = "Run it by hand with INTERLOCK_DEBUG=1."
            return fail(f"`{line}` ends with {done.returncode}: {said[0] if said else 'no output'}", fix)
    took = f"{median(times) * 1000:.0f} ms from start to end (median of {TRIES})"
    if median(times) > QUICK_SECONDS:
        fix = "Look at the load of this machine, and at what Python imports at its start: python -X importtime -c pass"
        return warn(took, fix)
    return good(took)


def _shadowed(root: Path, place: githooks.Place) -> str:
    """Return the folder that init wrote to, when git uses another one now; empty when it does not."""
    for row in recorded(root):
        folder = (root / row["path"]).parent
        if row["name"].startswith(githooks.PREFIX) and folder.resolve() != place.folder:
            return str(folder)
    return ""


HOOK_CHECKS: Final = tuple(
    Check(
        f"hooks-{row.client}", f"{row.title} asks before each edit",
        "reads its settings, looks for the programs", partial(client_hooks, row.client),
    )
    for row in HOOKS
)  # fmt: skip
