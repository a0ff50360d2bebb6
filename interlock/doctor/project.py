"""Checks of the machine and the project: the program, the isolation of gates, the configuration, the reservations."""

import os
import shutil
import sys
from contextlib import closing
from pathlib import Path

from interlock import __version__
from interlock.core import git
from interlock.core.errors import InterlockError
from interlock.core.text import count
from interlock.doctor.report import Report, Scene, fail, good, warn
from interlock.gates import load_config
from interlock.gates.sealed import sandbox
from interlock.install.githooks import program
from interlock.reservations import place, process, settings, store_at
from interlock.reservations.hooks.main import OFF


def command(scene: Scene) -> Report:
    """Check that the name `interlock` starts this installation."""
    found = shutil.which("interlock", path=scene.env.get("PATH", os.defpath))
    own, _ = program()
    if found is None:
        fix = "Put it on PATH, or run `interlock init` again: it then names the interpreter."
        return warn(f"`interlock` is not on PATH; this is {own[0]}", fix)
    # The clients start `interlock` by its name: another version there would answer the hooks.
    if not _same_installation(Path(found)):
        return fail(f"`interlock` on PATH is {found}, another installation than {own[0]}")
    return good(f"{found}, this installation: version {__version__}, Python {sys.version.split()[0]}")


def isolation(scene: Scene) -> Report:  # noqa: ARG001
    """Say what this platform has to keep the commands of a sealed gate apart, and to know agents by their process."""
    if sys.platform != "linux":
        return warn(
            "sealed gates need Linux: bubblewrap, and a kernel that says which process reports (SO_PEERCRED); psutil "
            "says here which processes run",
            "Run them on Linux, or set `sealed = false` for a gate: it then runs in the checkout itself.",
        )
    asked = "" if process.HAS_PROC else "; no /proc here: psutil says which processes run, and each hook takes longer"
    if sandbox.level() == "none":
        return warn(
            "level `none`: bubblewrap does not work here; the commands of a sealed gate can write where you can and "
            f"reach the network; a run that loads a file of the checkout itself is refused (SEAL301){asked}"
        )
    return good(
        "level `namespaces`, by bubblewrap: commands write in the export and a private /tmp alone, on a network of "
        f"their own{asked}"
    )


def project(scene: Scene) -> Report:
    """Check which project this is."""
    where = scene.place
    if not where.common:
        return warn(f"{where.root}: no git repository")
    asked = git.run(scene.root, ["rev-parse", "--git-dir"])
    # Git refuses a checkout that belongs to another user, and all of ours would be refused with it.
    if asked.status:
        return fail(f"{where.root}: {asked.why}", "Check that git works here: git status")
    return good(f"{where.root}, a git checkout")


def configured(scene: Scene) -> Report:
    """Check the project's configuration, and the `[reservations]` of the last commit, which count."""
    try:
        load_config(scene.root)
    except InterlockError as error:
        return fail(error.message, error.fix)
    found = settings.report(scene.place.root)
    for problem in found.problems:
        return (fail if problem.refuses else warn)(problem.text, problem.fix)
    return good(f"valid; a lease lives {found.settings.ttl_minutes:g} min, escalation is {found.settings.escalation}")


def switched(scene: Scene) -> Report:
    """Check that nobody has switched the hooks off."""
    if scene.env.get(OFF, "").strip().lower() == "off":
        return fail(f"{OFF}=off: no hook refuses anything")
    return good(f"{OFF} is not set to off")


def store(scene: Scene) -> Report:
    """Check the store of this project, and those of the projects around it: what is held there counts here too."""
    found: list[str] = []
    for row in (scene.place, *place.around(str(Path(scene.place.root) / "file"), scene.place)):
        if not place.is_used(row):
            continue  # the first reservation makes it
        try:
            with closing(store_at(row)) as opened, opened.transaction() as tx:
                where = "the database" if opened.is_shared else row.store_path
                found.append(f"{where}: {count(tx.leases(), 'lease')}, {len(tx.waiters())} waiting")
        except InterlockError as error:
            return fail(error.message, error.fix)
    return good("; ".join(dict.fromkeys(found)) or "no store yet")


def ignored(scene: Scene) -> Report:
    """Check that git leaves what runs write alone."""
    if not scene.place.common:
        return good("no git repository")
    # `--no-index`: a tracked file is not ignored for git, whatever the patterns say.
    if git.run(scene.root, ["check-ignore", "--no-index", "artifacts/interlock/events.jsonl"]).output:
        return good("artifacts/ is ignored")
    if git.run(scene.root, ["ls-files", "artifacts/interlock"]).output:
        return good("artifacts/ is kept with the code")
    return warn("git neither ignores artifacts/ nor keeps it")


def _same_installation(path: Path) -> bool:
    """Return whether a program belongs to this environment: by its folder, or by what its first line starts."""
    folder = Path(sys.prefix, "bin").resolve()
    if path.resolve().parent == folder:
        return True
    try:
        # A script of pip starts the interpreter of its environment; its first line says which one that is.
        first = path.read_bytes()[:512].split(b"\n", 1)[0]
    except OSError:
        return False
    return first.startswith(b"#!") and Path(os.fsdecode(first[2:]).split(" ")[0]).parent.resolve() == folder
