"""Where the code that was tested comes from: it has to be the export's, not another checkout's or the original one's.

An editable install, a `.pth` file or a variable can lead a test run to a second checkout of the same project, whose
files nobody judges. Such a file is known by its path, which ends as a path of the tree does. What lies in a place
that is empty when the command starts was put there by the tests themselves.
"""

import os
import re
from collections.abc import Collection, Iterable

from interlock.core.finding import Finding
from interlock.gates.checks.sealed import fault_of
from interlock.gates.sealed import sandbox
from interlock.gates.sealed.base import LINK
from interlock.gates.sealed.case import GateCase, not_sealed
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.export import Plan
from interlock.gates.sealed.outcomes import TestRun

_INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib(?:64)?/python\d")


def check_loaded(case: GateCase, files: Iterable[str], loaded: Collection[str]) -> None:
    """Refuse code of another checkout (`SEAL302`), or, without namespaces, of the original one (`SEAL301`)."""
    inside = f"{case.base.top}/"
    if sandbox.level() == "none":
        for path in loaded:
            if path.startswith(inside) and not any(path.startswith(f"{folder}/") for folder in case.kept):
                raise not_sealed(case, f"{path} of the checkout was loaded in place of the export's")
        return
    if found := foreign_code(case, files, loaded):
        raise SealError("SEAL302", f"{case.gate.id} tested other code: {found}.", own_environment(case))


def altered(plan: Plan, before: TestRun, now: TestRun) -> list[Finding]:
    """Return the files that keep their base content and were compiled from another text.

    What an import hook of the base makes of a text is the same there; what was written or moved is a fault of its own.
    """
    found: list[Finding] = []
    for path, digest in sorted({*now.sources} - {*before.sources}):
        inside = plan.base.inside(path)
        entry = plan.files.get(inside)
        if entry is None or entry.mode == LINK or inside in plan.laid_over or entry.sha256 == digest:
            continue
        if not any(f"{inside}/".startswith(f"{name}/") for name in now.touched):
            found.append(fault_of("apart", path, "it was compiled from another text than the one in the file"))
    return found


def foreign_code(case: GateCase, files: Iterable[str], loaded: Collection[str]) -> str:
    """Return in words the first file that was loaded from outside in place of one of the tree; empty without one."""
    top, kept = f"{case.base.top}/", tuple(f"{folder}/" for folder in case.kept)
    own = {path for path in loaded if path.startswith(top) and not path.startswith(kept)}
    empty = tuple(f"{place}/" for place in sandbox.PRIVATE)
    missed = (path for path in files if path.endswith(".py") and top + path not in own)
    by_tail = {name: path for path in missed for name in (path, case.base.outside(path)) if name}
    for path in loaded:
        if path in own or _INSTALLED.search(path) or (path.startswith(empty) and not path.startswith(kept)):
            continue
        tail = path
        while tail := tail.partition("/")[2]:
            # A module of a package has another name than one of the same file name at the top.
            if tail in by_tail and ("/" in tail or not os.path.exists(f"{os.path.dirname(path)}/__init__.py")):
                return f"{path} was loaded in place of {by_tail[tail]}"
    return ""


def own_environment(case: GateCase) -> str:
    """Return what helps where another checkout is found first."""
    return (
        f"Give {case.base.top} a virtual environment of its own (`python -m venv .venv`, `.venv/bin/pip install -e .`) "
        f"and write its program into `command` of [gates.{case.gate.id}], or name the sources: "
        'env = { PYTHONPATH = "src" }.'
    )
