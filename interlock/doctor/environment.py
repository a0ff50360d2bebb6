"""Checks of this machine and this project: the program, the place, the agent."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from importlib import import_module, metadata
from pathlib import Path
from typing import Final

from interlock import __version__
from interlock.core.errors import InterlockError
from interlock.core.project import PROJECT
from interlock.doctor.installed import servers
from interlock.doctor.report import Report, Scene, fail, good, warn
from interlock.gates import load_config
from interlock.gates.sealed import sandbox
from interlock.install.githooks import program
from interlock.reservations import SqliteStore, identity, journal_mode, process, settings
from interlock.reservations.git import commands as git
from interlock.reservations.hooks.main import OFF

DISTRIBUTION: Final = "interlock-orchestrator"
OLDEST: Final = (3, 11)

_CLOSED: Final = "commands write in the export and a private /tmp alone, on a network of their own"
_OPEN: Final = (
    "the commands of a sealed gate can write where you can and reach the network; a run that loads a file of the "
    "checkout itself is refused (SEAL301)"
)


def python(scene: Scene) -> Report:  # noqa: ARG001 - the same for every project
    """Check the interpreter."""
    found = f"Python {sys.version.split()[0]} at {sys.executable}"
    if sys.version_info[:2] < OLDEST:
        return fail(found, "Install Interlock with Python 3.11 or later.")
    return good(found)


def packages(scene: Scene) -> Report:  # noqa: ARG001
    """Check that what Interlock needs is installed."""
    try:
        needs = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return fail(
            "the package is imported from a folder and not installed",
            "Install it from the checkout: pip install ./interlock",
        )
    names = [_name(line) for line in needs if "extra ==" not in line]
    missing = [name for name in names if not _is_installed(name)]
    if missing:
        return fail(
            f"not installed: {', '.join(missing)}", "Install it again from the checkout: pip install ./interlock"
        )
    return good(f"{DISTRIBUTION} {__version__}, and the {len(names)} packages that it needs")


def parser(scene: Scene) -> Report:  # noqa: ARG001
    """Check that the parser of shell commands can be loaded."""
    try:
        import_module("interlock.reservations.guard.syntax")
    except ImportError as error:
        return fail(
            f"{error}: commands that are looked at are refused while others hold files",
            "pip install tree-sitter tree-sitter-bash",
        )
    return good(f"tree-sitter {metadata.version('tree-sitter')}, bash {metadata.version('tree-sitter-bash')}")


def command(scene: Scene) -> Report:
    """Check that the name `interlock` starts this installation."""
    found = shutil.which("interlock", path=scene.env.get("PATH", os.defpath))
    own, _ = program()
    if found is None:
        fix = "Put it on PATH, or run `interlock init` again: it then names the interpreter."
        return warn(f"`interlock` is not on PATH; this is {own[0]}", fix)
    there = Path(found)
    if not _same_installation(there):
        return fail(
            f"`interlock` on PATH is {found}, another installation than {own[0]}", "Remove one of them from PATH."
        )
    return good(f"{found}, this installation")


def project(scene: Scene) -> Report:
    """Check which project this is."""
    where = scene.place
    if not where.common:
        fix = "Run `git init`, or continue without: git's own commands are then unguarded."
        return warn(f"{where.root}: no git repository", fix)
    by = f", named by {PROJECT}" if scene.env.get(PROJECT) else ""
    try:
        git.ask(where.root, ["rev-parse", "--git-dir"])
    except git.GitError as error:
        return fail(f"{where.root}: {error.message}", error.fix)
    return good(f"{where.root}, a git checkout{by}")


def worktree(scene: Scene) -> Report:
    """Check which checkouts share the store."""
    if not scene.place.common:
        return good("no repository, so one folder with one store")
    try:
        answer = git.ask(scene.place.root, ["worktree", "list", "--porcelain", "-z"])
    except git.GitError as error:
        return warn(error.message, error.fix)
    rows = [row.removeprefix("worktree ") for row in git.names(answer) if row.startswith("worktree ")]
    gone = [row for row in rows if not Path(row).exists()]
    if gone:
        return warn(f"{len(rows)} worktrees share one store; {gone[0]} is gone", "Run `git worktree prune`.")
    main = rows[0] == scene.place.root if rows else True
    if len(rows) == 1:
        return good("the only worktree")
    return good(f"{'the main' if main else 'a linked'} worktree; {len(rows)} in all share one store")


def client(scene: Scene) -> Report:  # noqa: ARG001
    """Check that the process of the agent's client is found."""
    pid, _ = process.client()
    if pid is None:
        fix = "Start the client outside of an init process, or set INTERLOCK_AGENT_ID for each agent."
        return warn("no client process above this one: a dead agent is known by its silence alone", fix)
    name = next((row.name for row in process.ancestors() if row.pid == pid), "")
    return good(f"process {pid} ({name})")


def configured(scene: Scene) -> Report:
    """Check the project's configuration, and the `[reservations]` of the last commit, which count."""
    found = settings.report(scene.place.root)
    try:
        load_config(scene.root)
    except InterlockError as error:
        return fail(error.message, error.fix)
    for problem in found.problems:
        return (fail if problem.refuses else warn)(problem.text, problem.fix)
    lives = f"a lease lives {found.settings.ttl_minutes:g} min, escalation is {found.settings.escalation}"
    return good(f"valid; {lives}")


def switched(scene: Scene) -> Report:
    """Check that nobody has switched the hooks off."""
    if scene.env.get(OFF, "").strip().lower() == "off":
        return fail(f"{OFF}=off: no hook refuses anything", f"Unset {OFF}.")
    return good(f"{OFF} is not set to off")


def sqlite(scene: Scene) -> Report:  # noqa: ARG001
    """Say which SQLite this is, and which journal it writes."""
    mode, _ = journal_mode()
    kind = "a write-ahead log" if mode == "wal" else "a rollback journal, which is safe with this version"
    return good(f"SQLite {sqlite3.sqlite_version}; a new store gets {kind}")


def isolation(scene: Scene) -> Report:  # noqa: ARG001
    """Say how a sealed gate is isolated on this machine."""
    if sandbox.level() == "none":
        fix = "Install bubblewrap (`apt-get install bubblewrap`), or allow it to make user namespaces."
        return warn(f"level `none`: bubblewrap does not work here; {_OPEN}", fix)
    return good(f"level `namespaces`, by bubblewrap: {_CLOSED}")


def agent(scene: Scene) -> Report:
    """Check that every entry point finds the same agent."""
    store = scene.place.store_path
    names: dict[str, tuple[str, str]] = {}
    try:
        names["shell"] = names["git"] = _known(scene.env, store)
        # A client starts its server without what session-start gives the shell commands of the session.
        given = {identity.EXPORTED, identity.SESSION, *(identity.NAMES if scene.env.get(identity.EXPORTED) else ())}
        bare = {key: value for key, value in scene.env.items() if key not in given}
        for row in servers(scene.root):
            names[f"server of {row.client}"] = _known({**bare, **row.env}, store)
    except InterlockError as error:
        return fail(error.message, error.fix)
    shown = "; ".join(f"{place}: {name} ({rule})" for place, (name, rule) in names.items())
    if len({name.casefold() for name, _ in names.values()}) > 1:
        fix = "Set INTERLOCK_AGENT_ID in one place, before the client starts; take it out of its entries and commands."
        return fail(f"two entry points are two agents: {shown}", fix)
    name, rule = names["shell"]
    return good(f"you are {name}, by {rule}, at each of {len(names)} entry points: {', '.join(names)}")


def _known(env: Mapping[str, str], path: str) -> tuple[str, str]:
    """Return the name that a program with this environment finds, and by which rule."""
    with closing(SqliteStore(path if Path(path).exists() else ":memory:")) as store:  # one not there would be made
        found = identity.who(env, store)
    stated = identity.stated_name(env)
    given = next((name for name in identity.NAMES if env.get(name, "").strip() == found.name), "")
    if stated:
        return found.name, given if given and not env.get(identity.EXPORTED) else identity.SESSION
    if found.kind == "person":
        return found.name, "user@host"
    return found.name, given or f"what the session stored for process {found.pid}"


def _name(line: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else " " for char in line).split()[0]


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _same_installation(path: Path) -> bool:
    """Return whether a program belongs to this environment: by its folder, or by what its first line starts."""
    folder = Path(sys.prefix) / "bin"
    if path.resolve().parent == folder.resolve():
        return True
    try:
        first = path.read_bytes()[:512].split(b"\n", 1)[0]
    except OSError:
        return False
    return first.startswith(b"#!") and Path(os.fsdecode(first[2:]).split(" ")[0]).parent.resolve() == folder.resolve()
