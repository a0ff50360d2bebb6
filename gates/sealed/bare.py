"""The tests of the base once more without the seal: what passes bare and fails sealed is a fault of the set-up.

Answers T1: a wrong configuration must never be called a fault of the code. The same tree runs at the checkout's path
with the whole machine around it, its network, the user's variables, what git ignores, and no observer, so that what the
observer breaks is found as well. pytest writes a JUnit report for this; of other commands the exit status counts.
"""

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from interlock.core.finding import Finding
from interlock.gates.sealed.case import GateCase
from interlock.gates.sealed.execution import Workspace, workspace
from interlock.gates.sealed.outcomes import GOOD, TestRun
from interlock.gates.sealed.sandbox import Bind, Box, is_below

_MAX_BINDS: Final = 200
_MAX_FAULTS: Final = 20
_MAX_WORDS: Final = 300
_PARAMETERS: Final = re.compile(r"\[.*\]$", re.DOTALL)
_COMMITTED: Final = (
    ("git", "init", "-q"),
    ("git", "add", "-A"),
    ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "base"),
)
_HINTS: Final = (
    (re.compile(r"setuptools.scm|unable to detect version"),
     'env = { SETUPTOOLS_SCM_PRETEND_VERSION = "0" }: the .git of an export is empty'),
    (re.compile(r"not a git repository|Command '\['git'"),
     f"prepare = {json.dumps(_COMMITTED)}: the .git of an export is empty"),
    (re.compile(r"Network is unreachable|Temporary failure in name resolution|ENETUNREACH|EAI_AGAIN|getaddrinfo|"
                r"Name or service not known|Max retries exceeded|Connection ?[Rr]efused|ECONNREFUSED"),
     'network = "host"'),
    (re.compile(r"Read-only file system|EROFS|Permission denied"),
     "nothing there, and let the test write into a temporary folder: dependencies, tests and settings are read-only"),
)  # fmt: skip
"""What the message of a failed test says about the key that helps, where no file or variable of the machine does."""
_OTHERWISE: Final = "keep, env, pass_env, prepare or network, by what the log says; `sealed = false` gives the seal up"


def bare_faults(case: GateCase, sealed: TestRun, tail: str) -> list[Finding]:
    """Return what passes bare and not sealed, each with what to write; `tail` is the end of the sealed output."""
    status, passed = _run(case)
    if passed is None:
        if status != 0 or sealed.exit_status == 0:
            return []
        return [_fault(case, "the command", tail)]
    failing = {case_.id: case_.message or case_.outcome for case_ in sealed.cases if case_.outcome not in GOOD}
    failing |= dict.fromkeys(sealed.running, "it had begun when the run ended")
    faults = [_fault(case, name, message) for name, message in failing.items() if _junit(name) in passed]
    for path, message in (*sealed.broken, *sealed.skipped_files):
        module = path.removesuffix(".py").replace("/", ".")
        if any(classname == module or classname.startswith(f"{module}.") for classname, _ in passed):
            faults.append(_fault(case, path, message))
    if not faults and not sealed.cases and passed:
        faults.append(_fault(case, "the command", tail))
    return faults[:_MAX_FAULTS]


def _run(case: GateCase) -> tuple[int | None, set[tuple[str, str]] | None]:
    """Run the command bare; return its exit status, and the tests that passed by their names in a JUnit report."""
    with workspace(case, case.frozen.base) as here:
        report = here.folder / "bare.xml"
        options = f"{os.environ.get('PYTEST_ADDOPTS', '')} --junitxml={report} -o junit_family=xunit1".strip()
        env = {**os.environ, **case.seal.env, "PYTEST_ADDOPTS": options}
        env["PYTHONPYCACHEPREFIX"] = f"{here.folder}/bytecode"
        env["PATH"] = f"{here.seen(case.programs_folder)}:{env.get('PATH', os.defpath)}".lstrip(":")
        if not here.closed:
            env["PYTHONPATH"] = here.environment()["PYTHONPATH"]
        binds = (Bind(os.fspath(here.export), case.frozen.top), *_ignored(case, here))
        ended = here.run(case.gate.command, env=env, box=Box(binds, {}, bare=True))
        return ended.exit_status, _passed(report)


def _ignored(case: GateCase, here: Workspace) -> Iterator[Bind]:
    """Put what git ignores of the checkout into an export, by links where nothing can be mounted."""
    for path in [".git/", *case.store.ignored()][:_MAX_BINDS]:
        source, place = f"{case.frozen.top}/{path}".rstrip("/"), here.export / path
        if not os.path.lexists(source):
            continue
        with suppress(OSError):
            place.rmdir()
        place.parent.mkdir(parents=True, exist_ok=True)
        if os.path.islink(source) or not here.closed:
            with suppress(FileExistsError):
                place.symlink_to(os.readlink(source) if os.path.islink(source) else source)
            continue
        place.mkdir(exist_ok=True) if os.path.isdir(source) else place.touch()
        seen = source
        if os.path.basename(source) == "node_modules":  # tools write there, which would be a question to a person
            seen = f"{here.folder}/copies{source}"
            os.makedirs(os.path.dirname(seen))
            subprocess.run(["cp", "-a", source, seen], check=True, capture_output=True)
        yield Bind(seen, source)
    for target, source in case.environment.kept.items():
        if target != source and here.closed:
            yield Bind(source, target)


def _passed(report: Path) -> set[tuple[str, str]] | None:
    try:
        root = ET.parse(report).getroot()  # noqa: S314 - pytest wrote it, and it decides nothing but a hint
    except (OSError, ET.ParseError):
        return None
    bad = ("failure", "error", "skipped")
    return {
        (node.get("classname", ""), node.get("name", "")) for node in root.iter("testcase")
        if not any(child.tag in bad for child in node)
    }  # fmt: skip


def _junit(identity: str) -> tuple[str, str]:
    """Return the names that a JUnit report of pytest has for the id of a test."""
    brackets = _PARAMETERS.search(identity)
    names = _PARAMETERS.sub("", identity).split("::")
    names[0] = names[0].removesuffix(".py").replace("/", ".")
    return ".".join(names[:-1]), names[-1] + (brackets[0] if brackets else "")


def _fault(case: GateCase, test: str, found: str) -> Finding:
    words = " ".join(found.split())[-_MAX_WORDS:] or "no message"
    text = f"{test} passes in the checkout and fails sealed: {words}."
    return Finding("SEAL401", "error", "keep", text, fix=next(_hints(case, found), _OTHERWISE))


def _hints(case: GateCase, message: str) -> Iterator[str]:
    """Yield what to write into the gate's table, the most certain first."""
    words = set(re.findall(r"[\w.-]+", message))
    words |= {part for word in words for part in word.split(".")}
    for name in os.environ:
        if name in words and name not in ("PATH", "HOME", "USER", "PWD", "LANG", "TERM", "SHELL"):
            yield f'pass_env = ["{name}"]'
    kept = [*case.environment.kept]
    for path in case.store.ignored():
        name = os.path.basename(path.rstrip("/"))
        place = f"{case.frozen.top}/{path}".rstrip("/")
        if {name, name.removesuffix(".py")} & words and not is_below(place, kept):
            rows = [*dict.fromkeys((*case.seal.keep, os.path.relpath(place, case.root)))]
            yield f"keep = {json.dumps(rows)}"
    yield from (fix for pattern, fix in _HINTS if pattern.search(message))


def foreign_code(case: GateCase, run: TestRun, root: str) -> Finding | None:
    """Return that other code was tested than that of the tree, which has such a file; None where nothing says so."""
    files = {path for path in case.files if path.endswith((".py", ".js", ".mjs", ".cjs", ".ts"))}
    tails = {tail for path in files for tail in _tails(path)}
    for name, path in run.loaded:
        if path.startswith(f"{root}/"):
            continue
        if path.startswith(f"{case.root}/") and not is_below(path, case.environment.kept):
            message = f"Without namespaces the code of the checkout itself was loaded: {path}."
            fix = (
                "Install bubblewrap, or allow user namespaces; or install the project without `-e`, and write "
                'env = { PYTHONPATH = "src" } into the gate\'s table, with the folder of the sources.'
            )
            return Finding("SEAL301", "error", "command", message, fix=fix)
        tail = "/".join(path.split("/")[-len(name.split(".")) - path.endswith("/__init__.py") :])
        if tail in tails and (tail.count("/") or tail in files):
            message = f"Other code is tested: {path} was loaded in place of that of {case.root}."
            return Finding("SEAL302", "error", "command", message, fix=_own(case))
    loaded = {name.partition(".")[0] for name, path in run.loaded if path.startswith(f"{root}/")}
    for folder, named in case.environment.packages.editable:
        if is_below(folder, (case.frozen.top, *case.environment.places)):
            continue
        with suppress(OSError):
            names = {entry.partition(".")[0] for entry in os.listdir(folder)} - loaded
            if any(f"{name}/__init__.py" in tails or f"{name}.py" in tails for name in names):
                message = f"The environment is that of another checkout: {named} leads to {folder}."
                return Finding("SEAL302", "error", "command", message, fix=_own(case))
    return None


def _tails(path: str) -> Iterator[str]:
    while path:
        yield path
        _, _, path = path.partition("/")


def _own(case: GateCase) -> str:
    return (
        f"Give {case.frozen.top} an environment of its own: `rm -rf .venv && python3 -m venv .venv && "
        ".venv/bin/pip install -e .` and what the tests need."
    )
