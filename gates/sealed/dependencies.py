"""The dependencies of a gate's commands outside of the checkout: interpreters, their libraries, and where links lead.

Inside a sealed gate nothing is seen that a process of the user could change, unless it is recorded when the run begins.
What a distribution installs is seen as it is (`sandbox.SYSTEM`); where this user may write there, as root in a
container, files that changed since the run began are found by their time of change.
"""

import json
import os
import re
import subprocess
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interlock.gates.sealed import keep
from interlock.gates.sealed.base import LINK, Base
from interlock.gates.sealed.errors import SealError
from interlock.gates.sealed.keep import Place, is_bytecode
from interlock.gates.sealed.sandbox import PRIVATE, SYSTEM, is_below, is_system

_ASK_PYTHON: Final = """
import importlib.metadata, json, os, sys, sysconfig, urllib.parse
paths = sysconfig.get_paths()
finders = [each for name, each in sys.modules.items() if name.startswith("__editable__")]
found = [path for each in finders for path in getattr(each, "MAPPING", {}).values()]
found += [path for each in finders for row in getattr(each, "NAMESPACES", {}).values() for path in row]
projects = []
for each in importlib.metadata.distributions():
    origin = json.loads(each.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        projects.append(urllib.parse.unquote(urllib.parse.urlsplit(origin["url"]).path))
print(json.dumps({
    "executable": sys.executable, "prefixes": [sys.prefix, sys.base_prefix], "stdlib": paths["stdlib"],
    "folders": [paths["stdlib"], paths["platstdlib"], os.path.dirname(os.path.realpath(sys.executable))],
    "libraries": sysconfig.get_config_var("LIBDIR") or "", "path": [*sys.path, *found], "projects": projects,
}))
"""
_ASK_SECONDS: Final = 20
ABSOLUTE: Final = re.compile(r"(?<![\w.:/-])/[^\s'\":,;()\[\]]+")
"""An absolute path in a text."""

_SHEBANG_BYTES: Final = 512
_MAX_LINKS: Final = 40
_DROPPED: Final = frozenset({
    ".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", ".mypy_cache", ".pytest_cache", ".ruff_cache",
    ".hypothesis", ".interlock", "artifacts",
})  # fmt: skip
"""Folders directly in a project beside the checkout that its users do not import."""
_CONDA: Final = ("pkgs", "envs", "conda-bld")
_SHIMS: Final = ("bin", "libexec", "plugins", "version")
_SITES: Final = ("site-packages", "dist-packages")


def ask_python(python: str, where: str) -> Mapping[str, Any]:
    """Return what a Python says about where it is installed and what it imports from, or raise `SEAL103`."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK_PYTHON], capture_output=True, timeout=_ASK_SECONDS, check=True, cwd=where
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        message = f"The Python {python} of a gate's command does not report where its packages are: {error}."
        raise SealError("SEAL103", message, "Repair it, or name another program in `command`.") from error


@dataclass
class Dependencies:
    """Collects what commands need outside of a checkout; `note` takes what is recorded the first time."""

    top: Path
    root: Path
    note: Callable[[str], None] = lambda _line: None
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    links: dict[str, str] = field(default_factory=dict[str, str])
    _asked: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def add(self, path: str, *, but: Iterable[str] = (), deep: bool = True) -> None:
        """Take a file or folder, without the folders `but` in it, and the symbolic links on the way to it.

        Nothing is taken that is seen anyway, or that is not there. A folder around the checkout or around HOME is no
        dependency.
        """
        real = self.follow(path)
        around = (os.fspath(self.top), os.path.realpath(os.path.expanduser("~")))
        if is_system(real) or is_below(real, around[:1]) or any(is_below(name, (real,)) for name in around):
            return
        if not os.path.lexists(real) or real in PRIVATE:
            return
        if is_below(real, ("/proc", "/dev", "/sys")) and not is_below(real, PRIVATE):
            return
        for place in self.places.values():
            inside = is_below(real, (place.path,)) and place.deep
            if inside and not is_below(real, [f"{place.path}/{name}" for name in place.but]):
                return
        self.places[real] = Place(real, tuple(sorted(but)), deep)

    def follow(self, path: str) -> str:
        """Return where a path leads, and keep the links on the way to it."""
        parts, at, number = deque(path.split("/")), "", 0
        while parts:
            name = parts.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                at = at.rpartition("/")[0]
                continue
            step = f"{at}/{name}"
            if number < _MAX_LINKS and os.path.islink(step):
                number += 1
                text = os.readlink(step)
                if not is_system(step) and not is_below(step, (os.fspath(self.top),)):
                    self.links[step] = text
                parts.extendleft(reversed(text.split("/")))
                at = "" if text.startswith("/") else at
            else:
                at = step
        return at or "/"

    def project(self, path: str) -> None:
        """Take a folder of another project, without its history, environments and caches."""
        self.add(path, but=[name for name in _DROPPED if os.path.isdir(f"{path}/{name}")])

    def program(self, path: str) -> None:
        """Take a program, and what it is installed with where it is an interpreter that is known."""
        python = interpreter_of(path)
        if python:
            self.python(python)
        real = os.path.realpath(path)
        prefix = os.path.dirname(os.path.dirname(real))
        whole = os.path.isdir(f"{prefix}/include/node") or os.path.isdir(f"{prefix}/src/runtime")
        self.add(prefix if whole and not self._general(prefix) else path)
        self.add(path)
        if os.path.isdir(f"{prefix}/lib/node_modules"):
            self.add(f"{prefix}/lib/node_modules")

    def python(self, python: str) -> None:
        """Take a Python: what it is installed in, its packages, and projects that are installed as editable."""
        answer = self.asked(python)
        path = dict.fromkeys((*answer["path"], *map(os.path.realpath, answer["path"])))
        for prefix in dict.fromkeys(answer["prefixes"]):
            if self._general(prefix):
                for name in answer["folders"]:
                    self.add(name)
                if answer["libraries"]:
                    self.add(answer["libraries"], deep=False)
                continue
            conda = _CONDA if os.path.isdir(f"{prefix}/conda-meta") else ()
            sites = [f"{answer['stdlib']}/{name}" for name in _SITES]
            unused = [name[len(prefix) + 1 :] for name in sites if is_below(name, (prefix,)) and name not in path]
            self.add(prefix, but=[name for name in (*conda, *unused) if os.path.isdir(f"{prefix}/{name}")])
        self.add(answer["executable"])
        for name in path:
            self.project(name)
        for name in answer["projects"]:
            if not any(is_below(each, (name,)) for each in path):
                self.project(name)

    @property
    def imported(self) -> list[str]:
        """The folders that the Pythons import from, as they say."""
        return [name for answer in self._asked.values() for name in (*answer["folders"], *answer["path"])]

    def asked(self, python: str) -> Mapping[str, Any]:
        """Return what a Python says of itself, or raise `SEAL103`."""
        if python not in self._asked:
            self._asked[python] = ask_python(python, os.fspath(self.root))
        return self._asked[python]

    @staticmethod
    def _general(prefix: str) -> bool:
        """Return whether a folder holds more than one installation."""
        home = os.path.realpath(os.path.expanduser("~"))
        return os.path.realpath(prefix) in (home, f"{home}/.local", "/opt", "/usr/local")

    def path_folder(self, folder: str) -> None:
        """Take the programs that links in a folder of PATH lead to, and what scripts of a version manager start."""
        if is_system(self.follow(folder)):
            return
        with suppress(OSError), os.scandir(folder) as entries:
            for item in entries:
                if item.is_symlink() and item.is_file():
                    self.add(item.path)
        if os.path.basename(folder) == "shims":
            for name in _SHIMS:
                self.add(f"{os.path.dirname(folder)}/{name}")

    def tree(self, base: Base) -> None:
        """Take what symbolic links of a base lead to outside of the checkout."""
        for path, entry in base.files.items():
            if entry.mode == LINK:
                text = os.fsdecode(base.store.object(entry.sha256))
                self.add(os.path.normpath(f"{base.top}/{os.path.dirname(path)}/{text}") if text[:1] != "/" else text)

    def records(self, kept: Iterable[str]) -> dict[str, str]:
        """Record, as `keep.record`, the places, those that links in them lead to, and kept folders of the checkout."""
        found: dict[str, str] = {}
        pending = {path: Place(path) for path in kept} | self.places
        while pending:
            for path, place in pending.items():
                found[path] = self.record(place)
                for link in keep.links(found[path]):
                    target = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
                    if not is_below(target, (path,)):
                        self._linked(link, target)
            pending = {path: place for path, place in self.places.items() if path not in found}
        return found

    def _linked(self, link: str, target: str) -> None:
        """Take what a link leads to, and for a package of node the packages that it finds above itself."""
        self.project(target)
        if "/node_modules/" in link and os.path.isdir(target):
            home = os.path.realpath(os.path.expanduser("~"))
            for folder in Path(os.path.realpath(target)).parents:
                if is_below(home, (os.fspath(folder),)) or is_below(os.fspath(self.top), (os.fspath(folder),)):
                    break
                if os.path.isdir(folder / "node_modules"):
                    self.add(f"{folder}/node_modules")

    def record(self, place: Place) -> str:
        """Record one place and return the digest of the record."""
        if os.path.isdir(place.path) and not keep.is_known(place):
            self.note(f"recording {place.path}")
        return keep.record(place)


def interpreter_of(program: str) -> str:
    """Return the Python that a program is or names in its first line; empty when it is none."""
    if os.path.basename(program).startswith(("python", "pypy")):
        return program
    try:
        with open(program, "rb") as file:
            line = file.read(_SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        return ""
    if not line.startswith(b"#!"):
        return ""
    words = os.fsdecode(line[2:]).split()
    found = next((word for word in words if os.path.basename(word).startswith(("python", "pypy"))), "")
    return found if os.path.isabs(found) else ""


def caches(needs: Dependencies, base: Base, given: Mapping[str, str]) -> dict[str, str]:
    """Take what the toolchains of a base read from their caches, by its lock files; return their variables."""
    home, found = os.path.expanduser("~"), dict[str, str]()

    def place(name: str, below: str) -> str:
        return given.get(name) or os.environ.get(name) or f"{home}/{below}"

    if sums := base.content(base.inside("go.sum")):
        folder = place("GOMODCACHE", "go/pkg/mod")
        for name, version in re.findall(r"^(\S+) (\S+?)(?:/go\.mod)? ", sums.decode("utf-8", "replace"), re.MULTILINE):
            escaped = re.sub(r"[A-Z]", lambda letter: f"!{letter[0].lower()}", name)
            needs.add(f"{folder}/{escaped}@{re.sub(r'[A-Z]', lambda letter: f'!{letter[0].lower()}', version)}")
            needs.add(f"{folder}/cache/download/{escaped}/@v")
        found["GOMODCACHE"] = folder
    if base.inside("Cargo.toml") in base.files:
        cargo, rustup = place("CARGO_HOME", ".cargo"), place("RUSTUP_HOME", ".rustup")
        lock = (base.content(base.inside("Cargo.lock")) or b"").decode("utf-8", "replace")
        packages = re.findall(r'^name = "([^"]+)"\nversion = "([^"]+)"\nsource = "registry', lock, re.MULTILINE)
        for kind in ("src", "cache"):
            for registry in _folders(f"{cargo}/registry/{kind}"):
                for name, version in packages:
                    needs.add(f"{registry}/{name}-{version}{'.crate' if kind == 'cache' else ''}")
        more = (("registry/index", packages), ("git", "git+" in lock))
        for name in ("bin", "config", "config.toml", *(name for name, needed in more if needed)):
            needs.add(f"{cargo}/{name}")
        for name in ("settings.toml", "update-hashes", "downloads", "tmp"):
            needs.add(f"{rustup}/{name}")
        for toolchain in _folders(f"{rustup}/toolchains"):
            needs.add(toolchain, but=["share/doc"] if os.path.isdir(f"{toolchain}/share/doc") else ())
        found |= {"CARGO_HOME": cargo, "RUSTUP_HOME": rustup}
    taken = [*needs.places, *needs.links]
    return {
        name: path
        for name, path in found.items()
        if any(is_below(each, (path, os.path.realpath(path))) for each in taken)
    }


def _folders(path: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(path) as entries:
        yield from sorted(item.path for item in entries if item.is_dir())


def writable_system(folders: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the folders of the distribution, and of those given, in which this user may write, as root may."""
    local = [entry for name in ("/usr/local", "/usr/local/lib") for entry in _folders(name)]
    found = [name for name in (*SYSTEM, "/usr/local", *local, *folders) if os.path.isdir(name) and is_system(name)]
    mine = sorted(
        {os.path.realpath(name) for name in found if os.access(name, os.W_OK) and not is_below(name, ("/sys",))}
    )
    return tuple(name for name in mine if not is_below(os.path.dirname(name), mine))


@contextmanager
def searching(folders: Iterable[str], since_ns: int) -> Generator[Callable[[], list[str]]]:
    """Look for files of the distribution whose status changed after a time, while a gate runs.

    Yields what waits for the end of the search and returns the files, absolute, bytecode left out. It raises a
    SealError (`SEAL104`) where this machine cannot be searched.
    """
    names = [name for name in folders if os.path.isdir(name)]
    if not names:
        yield list
        return
    seconds = f"@{since_ns // 10**9}.{since_ns % 10**9:09}"
    words = ["find", *names, "-newerct", seconds, "!", "-type", "d", "-print0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:

        def found() -> list[str]:
            output, _ = process.communicate()
            if process.returncode != 0 and not output:
                raise SealError(
                    "SEAL104",
                    "Folders of the distribution in which this user may write cannot be searched for changes.",
                    "Install GNU `find`, or run as a user who may not write to `/usr`.",
                )
            changed = (os.fsdecode(name) for name in output.split(b"\0") if name)
            return [name for name in changed if not is_bytecode(name)]

        try:
            yield found
        finally:
            process.kill()
